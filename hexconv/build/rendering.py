"""Renders C and text from the templates beside this file."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def rendered(template: str, words: Mapping[str, Any], package: str = "hexconv.build") -> str:
    """Fill in one template of a package, such as `chain.h`, and return its text."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=False,  # templates are C and Markdown, filled in from a validated case
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(f"{template}.j2").render(words)
