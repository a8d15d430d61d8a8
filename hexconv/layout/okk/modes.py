"""Storage modes of the BM1684: four, two or two elements of one axis side by side in one unit.

4N (8-bit) and 2N (16-bit) join neighbours along n to 32-bit units; 2IC (float32 weights I, O, H, W) joins
neighbours along the input channels to 64-bit units. Strides are counted in units, of the new shape: for 4N
(ceil(n / 4), c, h, w).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError, Unsupported
from hexconv.layout.digits import Axis, Digit, Output
from hexconv.layout.mapping import Layout
from hexconv.layout.okk.chips import COMPACT_BYTES, Chip, check_end, check_shape, check_start, check_strides
from hexconv.layout.okk.local_memory import Shape, named_strides, used_elements


@dataclass(frozen=True)
class Mode:
    """A storage mode.

    Attributes:
        name: `4n`, `2n`, `2ic`.
        axes: logical order; the first is joined, the second is scattered over the NPUs.
        joined: how many elements a unit has.
        dtypes: the dtypes that it stores.
        arrangement: how units are placed where no strides are given.
    """

    name: str
    axes: str
    joined: int
    dtypes: tuple[str, ...]
    arrangement: str

    @property
    def itemsize_bytes(self) -> int:
        """Bytes of an element."""
        return {"4n": 1, "2n": 2, "2ic": 4}[self.name]


MODES = {
    mode.name: mode
    for mode in (
        Mode("4n", "NCHW", 4, ("int8", "uint8"), "aligned"),
        Mode("2n", "NCHW", 2, ("int16", "uint16"), "aligned"),
        Mode("2ic", "IOHW", 2, ("float32",), "compact"),
    )
}


def joined(
    chip: Chip,
    name: str,
    shape: Sequence[int],
    dtype: str,
    *,
    start_npu: int = 0,
    offset_bytes: int = 0,
    arrangement: str = "",
    strides: Sequence[int] = (),
) -> Layout:
    """The layout of a tensor in a storage mode: outputs `npu` and `byte`.

    Args:
        chip: the BM1684.
        name: `4n`, `2n` or `2ic`.
        shape: n, c, h, w; for 2ic i, o, h, w.
        dtype: int8 or uint8 (4n), int16 or uint16 (2n), float32 (2ic).
        start_npu: the NPU of channel 0 (2ic: of output channel 0).
        offset_bytes: the offset of the tensor in each NPU's memory.
        arrangement: how units are placed, `aligned` or `compact`; the mode's own by default.
        strides: the strides in units, instead of an arrangement.

    Raises:
        InputError: the mode doesn't store the dtype, or the chip refuses the tensor.
        Unsupported: the chip is another; other chips have other modes for the same purpose.
    """
    mode = MODES[name]
    if chip.name != "bm1684":
        raise Unsupported(f"okk: storage mode {name} is the BM1684's; {chip.name} doesn't have it")
    if dtype not in mode.dtypes:
        raise InputError(f"okk {name}: dtype", dtype, " or ".join(mode.dtypes))
    first, *rest = check_shape(chip, shape)
    units: Shape = (-(-first // mode.joined), rest[0], rest[1], rest[2])
    unit_bytes = mode.joined * mode.itemsize_bytes
    placed = "strided" if strides else arrangement or mode.arrangement
    check_start(chip, start_npu, offset_bytes, chip.eu_bytes if placed == "aligned" else COMPACT_BYTES)
    steps = check_strides(strides) if strides else named_strides(chip, placed, start_npu, units, unit_bytes)
    used = used_elements(chip, start_npu, units, steps)
    check_end(chip, offset_bytes, used * unit_bytes)
    room = max(units[0] * steps[0], used)
    return _layout(chip, mode, tuple(shape), steps, room, start_npu, offset_bytes)


def _layout(
    chip: Chip,
    mode: Mode,
    shape: tuple[int, ...],
    steps: tuple[int, ...],
    room_units: int,
    start_npu: int,
    offset_bytes: int,
) -> Layout:
    first, scattered, *plane = mode.axes
    n_stride, c_stride, *plane_strides = (step * mode.joined for step in steps)
    return Layout(
        name=mode.name,
        axes=tuple(
            Axis(letter, size, start_npu if letter == scattered else 0)
            for letter, size in zip(mode.axes, shape, strict=True)
        ),
        outputs=(
            Output("npu", chip.npus),
            Output("byte", room_units * mode.joined, offset_bytes, mode.itemsize_bytes),
        ),
        digits=(
            Digit(scattered, "npu", modulus=chip.npus),
            Digit(first, "byte", divisor=mode.joined, stride=n_stride),
            Digit(first, "byte", modulus=mode.joined),
            Digit(scattered, "byte", divisor=chip.npus, stride=c_stride),
            *(Digit(letter, "byte", stride=step) for letter, step in zip(plane, plane_strides, strict=True)),
        ),
        itemsize_bytes=mode.itemsize_bytes,
    )


class View(NamedTuple):
    """The same memory of a tensor under another shape and type.

    Attributes:
        shape: its four sizes.
        dtype: its type, `int8x4`, `uint16x2`, `float32x2`, or a plain one.
    """

    shape: Shape
    dtype: str


def unit_view(name: str, shape: Sequence[int], dtype: str) -> View:
    """The view of a tensor as units of a storage mode; strides are counted in units.

    >>> unit_view("4n", (6, 5, 4, 5), "int8")
    View(shape=(2, 5, 4, 5), dtype='int8x4')
    """
    joined, (n, c, h, w) = MODES[name].joined, shape
    return View((-(-n // joined), c, h, w), f"{dtype}x{joined}")


def join_units(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Join the elements of an array into units, as unsigned numbers of the unit's width; missing elements are 0.

    Args:
        name: `4n`, `2n` or `2ic`.
        array: (n, c, h, w) of 1, 2 or 4 bytes an element; for 2ic (i, o, h, w).

    Returns:
        (ceil(n / joined), c, h, w) of uint32, for 2ic of uint64; the first element has the lowest bits.
    """
    joined = MODES[name].joined
    whole = np.pad(array, [(0, -array.shape[0] % joined), (0, 0), (0, 0), (0, 0)])
    grouped = np.moveaxis(whole.reshape(-1, joined, *array.shape[1:]), 1, -1)
    return np.ascontiguousarray(grouped).view(_unit(name))[..., 0]


def split_units(units: NDArray[Any], first: int, dtype: str) -> NDArray[Any]:
    """The first `first` elements along n (2ic: along i) that units hold; undoes `join_units`."""
    elements = np.moveaxis(np.ascontiguousarray(units)[..., None].view(dtype), -1, 1)
    return elements.reshape(-1, *units.shape[1:])[:first]


def _unit(name: str) -> np.dtype[Any]:
    mode = MODES[name]
    return np.dtype(f"<u{mode.joined * mode.itemsize_bytes}")
