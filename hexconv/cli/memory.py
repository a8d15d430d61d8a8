"""Reads amounts of memory on a command line."""

import re
from fractions import Fraction

from hexconv.errors import InputError

UNITS = {"B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
"""Bytes by the unit's name in capitals: units with an I are powers of two, the others powers of ten."""


def memory_bytes(text: str, option: str) -> int:
    """Return how many bytes an amount is, such as `4MiB`, `4 MB`, `512 KiB`, `0.5MiB` or `1048576B`.

    >>> [memory_bytes(text, "--vtcm") for text in ("4MiB", "4 MB", "0.5 KiB", "77B")]
    [4194304, 4000000, 512, 77]

    Raises:
        InputError: the unit is missing or unknown, or the amount is no whole number of bytes above 0.
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]*)", text.strip(), re.ASCII)
    unit = UNITS.get(match[2].upper()) if match else None
    if match and not match[2]:
        raise InputError(option, f"{text!r} without a unit", f"an amount of memory: say {match[1]}MiB or {match[1]}B")
    if match is None or unit is None:
        raise InputError(option, repr(text), "an amount of memory: 4MiB, 4MB, 512KiB or 1048576B")
    size = Fraction(match[1]) * unit
    if size < 1 or size.denominator != 1:
        raise InputError(option, repr(text), "a whole number of bytes, 1 or more")
    return int(size)
