"""A validation error as one line: the field's path in the file, what was given, what is allowed."""

import difflib

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hexconv.errors import InputError

KNOWN_KEYS = {
    "": ("chain", "plan"),
    "chain": ("input", "dtype", "zero_point", "conv"),
    "chain.conv": (
        "out_channels",
        "kernel",
        "stride",
        "dilation",
        "padding",
        "groups",
        "bias",
        "activation",
        "filter_zero_point",
        "requantize",
    ),
    "chain.conv.requantize": ("multiplier", "shift", "zero_point", "rounding"),
    "plan": ("k_split", "h_split", "order", "halo", "filters", "kernel", "storage", "arch"),
}


def first_complaint(error: ValidationError, where: str) -> InputError:
    """The first thing wrong with a file: its path, what was given, what may stand there; misspelt keys come first."""
    details = error.errors()
    detail = next((detail for detail in details if detail["type"] == "unexpected_keyword_argument"), details[0])
    path = _path(detail["loc"])
    if detail["type"] == "unexpected_keyword_argument":
        return InputError(f"{where}: {path}", "an unknown key", _nearest(detail["loc"]))
    if detail["type"] in ("missing", "missing_argument"):
        return InputError(f"{where}: {path}", "nothing", "a value; this key is required")
    return InputError(f"{where}: {path}", _shown(detail["input"]), _allowed(detail))


def _path(location: tuple[int | str, ...]) -> str:
    """`chain.conv[0].kernel`, from pydantic's location."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def _nearest(location: tuple[int | str, ...]) -> str:
    """The keys of that table, the nearest first."""
    table = ".".join(part for part in location[:-1] if isinstance(part, str))
    known = KNOWN_KEYS.get(table, ())
    close = difflib.get_close_matches(str(location[-1]), known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}the keys here are {', '.join(known)}"


def _shown(value: object) -> str:
    """What was given, short enough for a line."""
    text = f"{value!r}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _allowed(detail: ErrorDetails) -> str:
    """Pydantic's own words for what is allowed, as a phrase."""
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return message[:1].lower() + message[1:]
