"""Options that commands share: what a number may be, and where files may go; refused before anything is done."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from hexconv.errors import InputError

LONGEST_SECONDS = 1_000_000
"""Eleven days: a wait is given to the system in whole milliseconds, of which it takes 2^31."""
MOST_RUNS = 100_000

Count = Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_RUNS))]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lt=2**63))]
Seconds = Annotated[float, Parameter(validator=Number(gt=0, lte=LONGEST_SECONDS))]


def check_file(option: str, path: Path | None, *endings: str) -> None:
    """Find out before the work whether its result can be written.

    Args:
        option: that the path was given with.
        path: of the file to be; None where none was asked for.
        endings: what its name may end in; without any, as it likes.

    Raises:
        InputError: it ends in something else, there is no such folder, or nothing can be written there.
    """
    if path is None:
        return
    if endings and path.suffix not in endings:
        raise InputError(option, str(path), f"a file that ends in {' or '.join(endings)}")
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
    """Find out before the work whether its results can be written into a folder, which is made when there are some.

    Raises:
        InputError: it is a file, or lies in one, or nothing can be written there.
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
