"""The kinds of number a case file may hold, and how a small TOML value widens to a pair or to four sides."""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

STRICT = ConfigDict(extra="forbid", strict=True)
"""Pydantic's settings: unknown keys are errors, and a string or a boolean is never read as a number."""

LARGEST_SIZE = 2**20
"""No axis of a conv is longer than this; larger numbers in a case file are slips."""

Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
Rows = Annotated[int, Field(ge=0, le=LARGEST_SIZE)]


def _pair(value: object) -> object:
    """Widen one number to both axes; a list [h, w] stays as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value)
    return tuple(value) if isinstance(value, list) else value


Pair = Annotated[tuple[Size, Size], BeforeValidator(_pair)]
"""(h, w); `2` in a case file means `[2, 2]`."""
