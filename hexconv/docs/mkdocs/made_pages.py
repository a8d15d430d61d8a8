"""Add to the site what is not a page of this folder.

These are the pages that are made from the code, files of other folders, and the site's own styles and scripts; and
the examples of docstrings, as the page on the Python API shows them.
"""

from pathlib import Path
from textwrap import indent
from typing import Any

from griffe import Extension, Object
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from hexconv.docs.mkdocs.reference_pages import drawings, pages
from hexconv.docs.mkdocs.release_notes import changes_page
from hexconv.report.plots.plot import dark_rules
from reports.columns import columns_page
from reports.operator_differences import operators_page

ROOT = Path(__file__).parents[3]
ASSETS = Path(__file__).with_name("assets")
ELSEWHERE = {"reference/layouts.md": "hexconv/layout/README.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add these files to those that mkdocs found."""
    texts = pages() | {"reference/columns.md": columns_page(), "reference/operators.md": operators_page()}
    texts["changes.md"] = changes_page()
    texts |= {path: (ROOT / source).read_text(encoding="utf-8") for path, source in ELSEWHERE.items()}
    texts["reference/layouts.md"] += f"\n{drawings()}"
    texts["assets/drawings.css"] = dark_rules('[data-md-color-scheme="slate"] .drawing')
    texts |= {f"assets/{path.name}": path.read_text(encoding="utf-8") for path in sorted(ASSETS.iterdir())}
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files


class Examples(Extension):
    """Set the doctests of docstrings as code: the reader of Google's style takes them in a section alone."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Put a heading over each paragraph of a docstring that is a doctest."""
        if obj.docstring:
            parts = obj.docstring.value.split("\n\n")
            headed = (f"Examples:\n{indent(part, '    ')}" if part.startswith(">>> ") else part for part in parts)
            obj.docstring.value = "\n\n".join(headed)
