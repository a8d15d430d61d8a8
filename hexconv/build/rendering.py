"""Renders C and text from the templates beside this file; whatever fills them in passes the whitelist, last of all."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from hexconv.whitelist import Code

PACKAGE = "hexconv.build"


def rendered(template: str, words: Mapping[str, Any], package: str = PACKAGE) -> str:
    """Fill in one template of a package, such as `chain.h`, and return its text.

    Numbers and `Code` are rendered as they are; any other text goes through `hexconv.whitelist.plain`.
    """
    return _environment(package).get_template(f"{template}.j2").render(words)


@cache
def _environment(package: str) -> Environment:
    """Return the environment of a package's templates, which may include those of `hexconv.build`."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(PACKAGE)]),
        autoescape=False,  # `finalize` escapes, for C
        finalize=_passed,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["join"] = _joined
    return environment


def _joined(values: Iterable[object], between: str) -> Code:
    """Join texts by what stands literally in a template."""
    return Code(between).join(map(Code.escape, values))  # noqa: S704


def _passed(value: object) -> object:
    return value if isinstance(value, (int, float)) else Code.escape(value)
