"""The kinds of number that a case file may hold, and validation errors in one line: path, value, what is expected."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any, TypeVar, cast

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from hexconv.errors import InputError, did_you_mean

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
    return tuple(cast(list[object], value)) if isinstance(value, list) else value


Pair = Annotated[tuple[Size, Size], BeforeValidator(_pair)]
"""(h, w); `2` in a case file means `[2, 2]`."""


LONGEST_SHOWN = 60
A_NUMBER = "constrained-int"
"""What pydantic puts behind the path of a field that may be a number or a word, where it is no such number."""
Checked = TypeVar("Checked", bound=type)
KNOWN_KEYS: dict[str, tuple[str, ...]] = {"": ("chain", "plan", "documented")}
"""The known keys of each table of a case file; each dataclass adds its fields (`in_one_line`)."""


def first_complaint(error: ValidationError, table: str = "") -> InputError:
    """Return the first fault of a file: its path, what was given, and what is allowed. Misspelt keys come first.

    A table refuses fields that don't go together by a ValueError of the field, what is given and what is expected.
    Where a field may be a number or a word, each is a complaint of its own: what both expect is told.

    Args:
        error: pydantic's error.
        table: the name of the validated table, where it is only a part of the file.
    """
    details = error.errors()
    detail = next((detail for detail in details if detail["type"] == "unexpected_keyword_argument"), details[0])
    location = (*table.split("."), *detail["loc"]) if table else detail["loc"]
    kinds = [detail]
    if location[-1:] == (A_NUMBER,):
        location = location[:-1]
        kinds = [each for each in reversed(details) if each["loc"][:-1] == detail["loc"][:-1]]
    path = _path(location)
    if detail["type"] == "unexpected_keyword_argument":
        inside = ".".join(part for part in location[:-1] if isinstance(part, str))
        return _unknown_key(path, location[-1], KNOWN_KEYS.get(inside, ()))
    if detail["type"] in ("missing", "missing_argument"):
        return InputError.because(f"{path} is missing", "it is required: give it a value")
    match detail.get("ctx", {}).get("error"):
        case ValueError(args=(field, given, expected)):
            return InputError(f"{path}.{field}", given, expected)
        case _:
            return InputError(path, _shown(detail["input"]), ", or ".join(map(_allowed, kinds)))


def in_one_line(table: str) -> Callable[[Checked], Checked]:
    """Decorate a dataclass: a fault in Python then raises the same `InputError` of one line as a fault in a file.

    Args:
        table: where its fields stand in a case file, `chain`.
    """

    def wrap(kind: Checked) -> Checked:
        make = kind.__init__
        KNOWN_KEYS[table] = tuple(field.name.rstrip("_") for field in fields(kind))

        @wraps(make)
        def made(*args: Any, **fields: Any) -> None:
            try:
                make(*args, **fields)
            except ValidationError as error:
                raise first_complaint(error, table) from None

        kind.__init__ = made
        return kind

    return wrap


def check_keys(table: Mapping[str, object], path: str, known: Sequence[str]) -> None:
    """Refuse a key that a table doesn't have.

    Args:
        table: the table as the file has it.
        path: the path of the table, empty for the file's own keys.
        known: the keys that the table may have.

    Raises:
        InputError: a key is not known; the text has the first one, and the nearest known key.
    """
    for key in table:
        if key not in known:
            raise _unknown_key(_path((path, key) if path else (key,)), key, known)


def _path(location: tuple[int | str, ...]) -> str:
    """Turn pydantic's location into a path, such as `chain.conv[0].kernel`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{_short(part)}"
    return text.lstrip(".")


def _unknown_key(path: str, key: object, known: Sequence[str]) -> InputError:
    """Describe an unknown key, with the keys of its table, the nearest first."""
    return InputError.no_such(path, "an unknown key", known, str(key))


def _shown(value: object) -> str:
    """Write the given value, short enough for a line."""
    return _short(f"{value!r}")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _allowed(detail: ErrorDetails) -> str:
    """Turn pydantic's description of the expected value into a phrase."""
    message = re.sub("^(Value error, |Input should be |.* should have |String should match )", "", detail["msg"])
    message = message.replace(" after validation", "")
    # What pydantic expected of a word: "'float32', 'float16' or 'int8'".
    words = re.findall(r"'([^']*)'", detail.get("ctx", {}).get("expected", ""))
    return did_you_mean(str(detail["input"]), words) + message[:1].lower() + message[1:]
