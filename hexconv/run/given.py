"""Tensors that a user gives instead of drawn ones: weights and input from `.npz` files, checked against their chain.

A file has arrays by the names of a run: `filter1` (OIHW, the dtype of the chain's filters) and `bias1` ([K], the dtype
of its sums) for its first conv, and so on; `input` (NHWC, the chain's dtype). `hexconv import --weights` writes such
files, and so does `hexconv run --save`, whose `output` is not read.
"""

import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from pydantic import ValidationError

from hexconv.errors import InputError, Unsupported
from hexconv.run.fills import Fills, fills_text, tensor_names
from hexconv.run.runner import Array
from hexconv.run.tensors import Tensors
from hexconv.spec import Chain
from hexconv.spec.room import sums_refusal
from hexconv.spec.weights import with_limits
from hexconv.spec.wrong import first_complaint

DRAWN = "random"
"""Where tensors come from that no file gives."""
ENDING = ".npy"
ALSO_IN_A_FILE = ("input", "output")
"""What a file of weights may have besides: a run that was kept has all of it."""
HEADERS: dict[tuple[int, int], Any] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Given:
    """What is given for a run of a chain; all else is drawn.

    Attributes:
        weights: filters and biases by name, all that the chain has, or none at all.
        image: NHWC.
        weights_from: the file of the weights, or `random`.
        image_from: the file of the input, or `random`.
    """

    weights: dict[str, Array] | None = None
    image: Array | None = None
    weights_from: str = DRAWN
    image_from: str = DRAWN

    def over(self, drawn: Tensors) -> Tensors:
        """The tensors of a run: these where they are given, else those that were drawn."""
        image = drawn.image if self.image is None else self.image
        if self.weights is None:
            return replace(drawn, image=image)
        numbers = range(1, len(drawn.filters) + 1)
        filters = tuple(self.weights[f"filter{number}"] for number in numbers)
        return Tensors(image, filters, tuple(self.weights.get(f"bias{number}") for number in numbers))

    def fill(self, fills: Fills) -> str:
        """In words, what fills the tensors that are drawn.

        >>> Given(image=np.zeros(1)).fill(("most", "least", "random")), Given().fill(("most", "most"))
        ('least,random', 'most')
        """
        drawn = fills[0 if self.image is None else 1 : len(fills) if self.weights is None else 1]
        return fills_text(drawn) if drawn else "given"


def given(chain: Chain, weights: Path | None, image: Path | None) -> Given:
    """Read what is given.

    Args:
        chain: that it is for.
        weights: a file of weights; without one they are drawn.
        image: a file with the input; without one it is drawn.

    Raises:
        InputError: a file can't be read, has an array of another shape or dtype, lacks one, has one that the chain
            doesn't, or has values that are no finite numbers.
    """
    names = tensor_names(chain)
    return Given(
        None if weights is None else read_arrays(weights, chain, names[1:], (*names, *ALSO_IN_A_FILE)),
        None if image is None else read_arrays(image, chain, ("input",), (*names, *ALSO_IN_A_FILE))["input"],
        DRAWN if weights is None else str(weights),
        DRAWN if image is None else str(image),
    )


def weights_beside(case: Path) -> Path | None:
    """The file of weights that lies beside a case file, if one does: `NAME.npz` beside `NAME.toml`."""
    beside = case.with_suffix(".npz")
    return beside if beside.exists() else None


def bounded(chain: Chain, weights: dict[str, Array] | None) -> Chain:
    """The chain with the limits that its weights have: what its sums can reach is then known from these.

    Raises:
        InputError: a filter or a bias goes further than its conv states, or than int32 does.
        Unsupported: sums and bias together can leave int32.
    """
    if weights is None or not chain.is_integer:
        return chain
    numbers = range(1, len(chain.conv) + 1)
    filters, biases = [weights[f"filter{number}"] for number in numbers], [weights.get(f"bias{n}") for n in numbers]
    try:
        limited = with_limits(chain, filters, biases)
    except ValidationError as error:  # of limits that int32 itself can't hold
        raise first_complaint(error).within("the weights' own limits") from None
    if refusal := sums_refusal(limited, "plain"):
        raise Unsupported(refusal)
    return limited


def read_arrays(path: Path, chain: Chain, names: tuple[str, ...], known: tuple[str, ...]) -> dict[str, Array]:
    """Arrays of an `.npz` file; nothing of one is read before its shape and dtype are seen to be right.

    Args:
        path: of the file.
        chain: that they are for.
        names: of the arrays to read.
        known: all names that the file may have.

    Raises:
        InputError: as in `given`.
    """
    wanted = f"an .npz file with {', '.join(names)}, as numpy.savez writes it"
    try:
        if not S_ISREG(path.stat().st_mode):
            raise InputError(str(path), "no regular file", wanted)
        with zipfile.ZipFile(path) as file:
            there = {entry.removesuffix(ENDING): entry for entry in file.namelist()}
            _check_names(path, there, names, known)
            return {name: _read(path, name, file, there[name], chain) for name in names}
    except UNREADABLE as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
        raise InputError(str(path), f"an unreadable file ({reason})", wanted) from None


def _check_names(path: Path, there: dict[str, str], names: tuple[str, ...], known: tuple[str, ...]) -> None:
    """All that is wanted is there, and nothing that the chain has no use for."""
    for name in names:
        if name not in there:
            raise InputError(str(path), f"no {name}", f"the arrays {', '.join(names)}")
    for name in there:
        if name not in known:
            raise InputError(str(path), f"an array {name}", f"{', '.join(dict.fromkeys(known))}, which the chain has")


def _read(path: Path, name: str, file: zipfile.ZipFile, entry: str, chain: Chain) -> Array:
    """One array; what its header says is checked before any of it is allocated."""
    shape, dtype = _form(chain, name)
    with file.open(entry) as stream:
        given_shape, given_dtype = _header(stream)
    if given_dtype.hasobject:
        raise InputError(f"{path}: {name}", "pickled Python objects", f"numbers of {dtype}: objects are never loaded")
    if given_dtype != np.dtype(dtype):
        raise InputError(f"{path}: {name}", given_dtype.name, f"{dtype}, the dtype that the chain has it in")
    if given_shape != shape:
        raise InputError(f"{path}: {name}", f"the shape {list(given_shape)}", f"{list(shape)}, the chain's")
    with file.open(entry) as stream:
        array = np.ascontiguousarray(npy.read_array(stream, allow_pickle=False))
    lost = 0 if chain.is_integer else int(np.sum(~np.isfinite(array)))
    if lost:
        raise InputError(f"{path}: {name}", f"{lost} values that are no finite numbers", "finite numbers")
    return array


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of an array in a file."""
    version = npy.read_magic(stream)
    if version not in HEADERS:
        raise ValueError(f"an array in version {version} of numpy's format")
    shape, _, dtype = HEADERS[version](stream)
    return shape, dtype


def _form(chain: Chain, name: str) -> tuple[tuple[int, ...], str]:
    """Shape and dtype of a tensor of a chain."""
    if name == "input":
        return tuple(chain.input), chain.dtype
    index = int(name.removeprefix("filter").removeprefix("bias")) - 1
    if name.startswith("filter"):
        return tuple(chain.filter_shapes[index]), chain.dtype_of_filters
    return (chain.conv[index].out_channels,), chain.accumulator_dtype
