"""Amounts of memory on a command line."""

import re

from hexconv.errors import InputError

UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def memory_bytes(text: str, option: str) -> int:
    """Bytes of `4MiB`, `512 KiB`, `0.5MiB` or `1048576`.

    >>> memory_bytes("4MiB", "--vtcm"), memory_bytes("0.5 KiB", "--vtcm"), memory_bytes("77", "--vtcm")
    (4194304, 512, 77)

    Raises:
        InputError: another unit, or not a whole number of bytes above 0.
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]*)", text.strip())
    unit = UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise InputError(option, repr(text), "an amount of memory: 4MiB, 512KiB or 1048576")
    size = float(match[1]) * unit
    if size < 1 or size != int(size):
        raise InputError(option, repr(text), "a whole number of bytes, 1 or more")
    return int(size)
