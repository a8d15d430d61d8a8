"""Options that commands share: numbers, amounts of memory, shapes and paths of results, checked before any work."""

import os
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from hexconv.errors import InputError

LONGEST_SECONDS = 1_000_000
"""Eleven days: the system takes a wait in whole milliseconds, and no more than 2^31 of them."""
MOST_RUNS = 100_000
MODEL_ENDING = ".onnx"
READ = (".toml", ".onnx", ".npz")
"""How the names of files end that commands read: no table or picture is written over one."""

UNITS = {"B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
"""Bytes by the unit's name in capitals: units with an I are powers of two, the others powers of ten."""

Count = Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_RUNS))]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lt=2**63))]
Rate = Annotated[float, Parameter(validator=Number(gte=1e-9, lte=1e6))]
Seconds = Annotated[float, Parameter(validator=Number(gt=0, lte=LONGEST_SECONDS))]


def check_file(option: str, path: Path | None, *endings: str) -> None:
    """Check before the work whether its result can be written to a file.

    Args:
        option: the option that states the path.
        path: the file to write; None if none was asked for.
        endings: what its name may end in; any ending if none is given.

    Raises:
        InputError: the name ends in something else, or as a case, a model or weights do; its folder is missing; or the
            file can't be written.
    """
    if path is None:
        return
    if endings and path.suffix not in endings:
        raise InputError(option, str(path), f"a file that ends in {' or '.join(endings)}")
    if not endings and path.suffix in READ:
        raise InputError(option, str(path), f"a file that doesn't end in {path.suffix}, as those that are read do")
    try:
        if path.is_dir():
            raise InputError.because(f"{option}: {path} is a folder", "name a file")
        if not path.parent.is_dir():
            raise InputError.because(f"{option}: no folder {path.parent}", f"make it: mkdir -p {path.parent}")
        may_write = os.access(path if path.exists() else path.parent, os.W_OK)
    except (OSError, ValueError) as error:
        raise InputError.because(f"{option}: {path}: {_reason(error)}", "name a path that can be written") from None
    if not may_write:
        raise InputError.because(f"{option}: {path} may not be written", "name another path")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def check_folder(option: str, path: Path | None) -> None:
    """Check before the work whether its results can be written into a folder, which is made when there are results.

    Raises:
        InputError: the path is a file, or lies in one, or nothing can be written there.
    """
    if path is None:
        return
    try:
        there = next(place for place in (path, *path.absolute().parents) if place.exists())
        may_write = os.access(there, os.W_OK)
    except (OSError, ValueError) as error:
        raise InputError.because(f"{option}: {path}: {_reason(error)}", "name a folder that can be written") from None
    if not there.is_dir():
        raise InputError.because(f"{option}: {there} is a file", "name a folder")
    if not may_write:
        raise InputError.because(f"{option}: {there} may not be written", "name another folder")


def model_of(paths: Sequence[Path]) -> Path | None:
    """Return the model that paths name; None if they name case files.

    Raises:
        InputError: a model was named beside other files.
    """
    if not any(path.suffix == MODEL_ENDING for path in paths):
        return None
    if len(paths) > 1:
        raise InputError("CASE", f"{len(paths)} files, one of them a model", "one model, or case files alone")
    return paths[0]


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


def stated_shapes(command: str, texts: Sequence[str]) -> dict[str, list[int]]:
    """Return the sizes of inputs by their names, from options `--shape NAME=1,3,224,224`.

    Raises:
        InputError: an option has another form, or a size out of range.
    """
    return dict(_stated(command, text) for text in texts)


def _stated(command: str, text: str) -> tuple[str, list[int]]:
    """Return the name and the sizes in `NAME=1,3,224,224`."""
    from hexconv.spec.fields import LARGEST_SIZE  # imported here, so that `--help` doesn't wait for pydantic

    name, equals, sizes = text.rpartition("=")
    numbers = [int(size) if size.strip().isdecimal() else 0 for size in sizes.split(",")]
    if not equals or not name or not all(0 < number <= LARGEST_SIZE for number in numbers):
        raise InputError(f"{command}: --shape", repr(text), f"NAME=1,3,224,224, sizes of 1 to {LARGEST_SIZE}")
    return name, numbers
