"""OKKernel's layouts of tensors in local and system memory: strides, and the bytes that every NPU reserves.

Element (n, c, h, w) of a tensor that starts at NPU q with offset R lies on NPU (q + c) mod X, at byte
R + itemsize * (n * ns + ((q + c) div X) * cs + h * hs + w * ws): a channel that wraps past the last NPU
goes on one row of channels further down.

A channel stride leads from channel c to channel c + npus: neighbours lie on neighbouring NPUs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError
from hexconv.layout.digits import Axis, Digit, Output
from hexconv.layout.mapping import Layout
from hexconv.layout.okk.chips import COMPACT_BYTES, Chip, check_end, check_shape, check_start, check_strides, itemsize

Shape = tuple[int, int, int, int]
Strides = tuple[int, int, int, int]


def channels_per_npu(chip: Chip, start_npu: int, channels: int) -> int:
    """How many rows of channels a tensor takes on each NPU (`okk_channle_num_per_npu`).

    >>> from hexconv.layout.okk.chips import CHIPS
    >>> channels_per_npu(CHIPS["bm1684"], 63, 66)
    3
    """
    return -(-(start_npu + channels) // chip.npus)


def aligned_strides(chip: Chip, start_npu: int, shape: Shape, unit_bytes: int) -> Strides:
    """Strides by which each channel starts on a multiple of the execution units' width (`tpu_aligned_stride`)."""
    _, c, h, w = shape
    c_stride = _round_up(h * w, chip.eu_elements(unit_bytes))
    return channels_per_npu(chip, start_npu, c) * c_stride, c_stride, w, 1


def line_aligned_strides(chip: Chip, start_npu: int, shape: Shape, unit_bytes: int) -> Strides:
    """Strides by which each row starts on a multiple of the execution units' width (`tpu_line_aligned_stride`)."""
    _, c, h, w = shape
    h_stride = _round_up(w, chip.eu_elements(unit_bytes))
    return channels_per_npu(chip, start_npu, c) * h * h_stride, h * h_stride, h_stride, 1


def compact_strides(chip: Chip, start_npu: int, shape: Shape) -> Strides:
    """Strides that leave nothing between rows and channels (`okk_compact_stride`)."""
    _, c, h, w = shape
    return channels_per_npu(chip, start_npu, c) * h * w, h * w, w, 1


def continuous_strides(shape: Shape) -> Strides:
    """Dense strides in system memory (`okk_continuous_stride`); there a channel stride leads to the next channel."""
    _, c, h, w = shape
    return c * h * w, h * w, w, 1


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


NAMED = ("aligned", "line-aligned", "compact")


def local(
    chip: Chip,
    name: str,
    shape: Sequence[int],
    dtype: str,
    *,
    start_npu: int = 0,
    offset_bytes: int = 0,
    strides: Sequence[int] = (),
) -> Layout:
    """The layout of a tensor (n, c, h, w) in local memory.

    Args:
        chip: the chip whose memory it is.
        name: its name: `aligned`, `line-aligned`, `compact`, or `strided` with `strides`.
        shape: n, c, h, w.
        dtype: the dtype of the elements.
        start_npu: the NPU of channel 0.
        offset_bytes: the offset of the tensor in each NPU's memory.
        strides: the strides in elements, for `strided`.

    Returns:
        A layout with outputs `npu` and `byte`; `byte` counts from the start of the NPU's local memory.

    Raises:
        InputError: the chip refuses the size, start, alignment or end.
    """
    sizes, width = check_shape(chip, shape), itemsize(dtype)
    compact = name in ("compact", "strided")
    check_start(chip, start_npu, offset_bytes, COMPACT_BYTES if compact else chip.eu_bytes)
    steps = check_strides(strides) if name == "strided" else named_strides(chip, name, start_npu, sizes, width)
    layout = _scattered(chip, name, sizes, steps, width, start_npu, offset_bytes)
    check_end(chip, offset_bytes, used_elements(chip, start_npu, sizes, steps) * width)
    return layout


def named_strides(chip: Chip, name: str, start_npu: int, shape: Shape, unit_bytes: int) -> Strides:
    """The strides of a named layout in local memory."""
    if name == "compact":
        return compact_strides(chip, start_npu, shape)
    find = {"aligned": aligned_strides, "line-aligned": line_aligned_strides}[name]
    return find(chip, start_npu, shape, unit_bytes)


def system(shape: Sequence[int], dtype: str, *, offset_bytes: int = 0, strides: Sequence[int] = ()) -> Layout:
    """The layout of a tensor (n, c, h, w) in system memory, continuous without strides; one output, `byte`.

    A size may be 0: then nothing is stored. Tensors in local memory can't have a size of 0.
    """
    n, c, h, w = sizes = _four(shape)
    steps = check_strides(strides) if strides else continuous_strides((n, c, h, w))
    reach = 1 + sum(step * (size - 1) for step, size in zip(steps, sizes, strict=True))
    return Layout(
        name="system-strided" if strides else "continuous",
        axes=tuple(Axis(letter, size) for letter, size in zip("NCHW", sizes, strict=True)),
        outputs=(Output("byte", max(reach, n * steps[0]) if n * c * h * w else 0, offset_bytes, itemsize(dtype)),),
        digits=tuple(Digit(letter, "byte", stride=step) for letter, step in zip("NCHW", steps, strict=True)),
        itemsize_bytes=itemsize(dtype),
    )


def strides_of(layout: Layout) -> tuple[int, ...]:
    """One stride per axis of a tensor in local or system memory, in elements; storage modes count units.

    >>> strides_of(system((2, 3, 4, 5), "float32"))
    (60, 20, 5, 1)
    """
    leading = [[d for d in layout.digits_of(axis=axis.name) if d.output == "byte"] for axis in layout.axes]
    unit = max((d.modulus or 1 for d in leading[0]), default=1)
    return tuple(digits[0].stride // unit for digits in leading)


def used_elements(chip: Chip, start_npu: int, shape: Shape, strides: Strides) -> int:
    """How many elements the tensor spans, up to and including its last one, on the NPU where it reaches furthest."""
    n, c, h, w = shape
    rows = channels_per_npu(chip, start_npu, c)
    # The first row may be empty everywhere but at its end, the last is used: the reach is that of row `rows
    # - 1`.
    return 1 + (n - 1) * strides[0] + (rows - 1) * strides[1] + (h - 1) * strides[2] + (w - 1) * strides[3]


def _scattered(
    chip: Chip, name: str, shape: Shape, strides: Strides, width: int, start_npu: int, offset_bytes: int
) -> Layout:
    n, c, h, w = shape
    n_stride, c_stride, h_stride, w_stride = strides
    room = max(n * n_stride, used_elements(chip, start_npu, shape, strides))
    return Layout(
        name=name,
        axes=(Axis("N", n), Axis("C", c, shift=start_npu), Axis("H", h), Axis("W", w)),
        outputs=(Output("npu", chip.npus), Output("byte", room, offset_bytes, width)),
        digits=(
            Digit("C", "npu", modulus=chip.npus),
            Digit("N", "byte", stride=n_stride),
            Digit("C", "byte", divisor=chip.npus, stride=c_stride),
            Digit("H", "byte", stride=h_stride),
            Digit("W", "byte", stride=w_stride),
        ),
        itemsize_bytes=width,
    )


def _four(shape: Sequence[int]) -> Shape:
    """Check that a shape has four sizes; system memory has no limits of instructions."""
    if len(shape) != 4 or any(size < 0 for size in shape):
        raise InputError("okk: shape", str(list(shape)), "four sizes from 0 on: n,c,h,w")
    n, c, h, w = shape
    return n, c, h, w


def empty_blocks(chip: Chip, start_npu: int, channels: int) -> int:
    """How many blocks per batch hold no channel of the tensor.

    >>> from dataclasses import replace
    >>> from hexconv.layout.okk.chips import CHIPS
    >>> four = replace(CHIPS["bm1684"], npus=4)
    >>> empty_blocks(four, 0, 6), empty_blocks(four, 3, 6)
    (2, 6)
    """
    return channels_per_npu(chip, start_npu, channels) * chip.npus - channels


def check_apart(one: Layout, other: Layout) -> None:
    """Refuse tensors whose rooms overlap, even where one lies only in empty blocks of the other.

    Instructions work on all NPUs at once and may write into the empty blocks of their tensors.

    Raises:
        InputError: the rooms overlap; the text says whether elements overlap too.
    """
    first, second = _room(one), _room(other)
    shared = range(max(first.start, second.start), min(first.stop, second.stop))
    if not shared:
        return
    both = (_used(one, shared) & _used(other, shared)).sum()
    what = f"{both} bytes of elements" if both else "empty blocks"
    allowed = f"offsets from {first.stop} on"
    if first.start >= len(second):
        allowed = f"{allowed}, or up to {first.start - len(second)}"
    raise InputError(f"okk: {_words(other)}", f"{what} of {_words(one)}", allowed)


def _room(layout: Layout) -> range:
    """The range of bytes in each NPU's local memory that is reserved for the tensor."""
    byte = layout.outputs[1]
    return range(byte.base, byte.base + byte.extent * byte.unit)


def _used(layout: Layout, window: range) -> NDArray[np.bool_]:
    """Whether an element lies at each byte of a window, as an array [NPUs, bytes of the window]."""
    start = _room(layout).start
    held: NDArray[Any] = layout.pack(np.ones(layout.shape, np.bool_), fill=False)
    return np.repeat(held, layout.itemsize_bytes, axis=1)[:, window.start - start : window.stop - start]


def _words(layout: Layout) -> str:
    room = _room(layout)
    return f"{layout.name} {list(layout.shape)} (bytes {room.start} to {room.stop - 1} of each NPU)"
