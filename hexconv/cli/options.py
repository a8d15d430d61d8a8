"""Checks options that commands share, numbers and paths of results, before any work is done."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from hexconv.errors import InputError

LONGEST_SECONDS = 1_000_000
"""Eleven days: the system takes a wait in whole milliseconds, and no more than 2^31 of them."""
MOST_RUNS = 100_000
READ = (".toml", ".onnx", ".npz")
"""How the names of files end that commands read: no table or picture is written over one."""

Count = Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_RUNS))]
Seed = Annotated[int, Parameter(validator=Number(gte=0, lt=2**63))]
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
