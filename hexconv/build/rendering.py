"""C and text out of the templates beside this file."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def rendered(template: str, words: Mapping[str, Any], package: str = "hexconv.build") -> str:
    """The text of one template of a package, `chain.h`, filled in."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=False,  # C and Markdown, no HTML; whatever is put in comes from a validated case
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(f"{template}.j2").render(words)
