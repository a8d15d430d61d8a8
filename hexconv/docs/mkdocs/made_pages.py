"""Pages that the site has besides the files of this folder: made from the code, or files that stand elsewhere."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from hexconv.cli.layout_pictures import drawings
from hexconv.cli.reference import pages

ROOT = Path(__file__).parents[3]
ELSEWHERE = {"reference/layouts.md": "hexconv/layout/README.md", "changes.md": "CHANGELOG.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add them to what mkdocs found."""
    texts = pages() | {path: (ROOT / source).read_text(encoding="utf-8") for path, source in ELSEWHERE.items()}
    texts["reference/layouts.md"] += f"\n{drawings()}"
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files
