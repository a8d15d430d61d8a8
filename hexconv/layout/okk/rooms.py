"""The rooms of tensors in local memory: every NPU reserves as many bytes, even where a tensor's blocks stay empty."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError
from hexconv.layout.layout import Layout
from hexconv.layout.okk.chips import Chip
from hexconv.layout.okk.strides import channels_per_npu


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
