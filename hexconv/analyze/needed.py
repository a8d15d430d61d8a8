"""Lower bounds of a chain, whatever the plan: the bytes that must be moved, and the MACs that must be done.

The pixels that must be read are found backwards from the chain's output, all of which is needed. A pixel of a tensor is
read if a tap of the next conv meets it while that conv computes a pixel that is read itself, or if it is added to such
a pixel. So rows and columns that a stride or a dilation steps over are not needed, nor those behind the last stride,
nor those that only unneeded pixels read. A conv reads rows and columns independently of each other: an area, which is a
list of each, per conv that reads a tensor is enough. If a pixel is read, all of its channels are: the groups of a conv
read all channels of its source together.

Traffic. Every element of the input that is read counts once, and so does every element of the packed output. A tap of a
filter counts if it meets a logical pixel, and not only padding, from any pixel that is read. Biases, vectors of
multipliers, shifts and slopes, and tables count once, as they are given.

MACs. Every pixel of a conv's output that is read counts once, with its K output channels of C x kernel products each.
Products with padding count like any other: every kernel multiplies them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from hexconv.analyze.caches import DTYPE_BYTES
from hexconv.kernel import output_layout
from hexconv.spec import Chain, Conv2d
from hexconv.spec.extents import REMEMBERED
from hexconv.spec.names import conv_name, filter_name
from hexconv.spec.vectors import vectors_bytes

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """What is moved and what is computed: bytes between memory and caches, and multiply-accumulates.

    Attributes:
        traffic_bytes: the bytes by tensor: `input`, `filter1`, `bias1`, ... are read, `output` is written.
        macs: the multiply-accumulates by conv: `conv1`, ...
    """

    traffic_bytes: dict[str, int]
    macs: dict[str, int]


Area = tuple[Indices, Indices]
"""All pairs of some rows and some columns."""


@dataclass(frozen=True)
class _Reached:
    """What outputs read along one axis: the logical indices of the source, and the taps that meet any of them."""

    indices: Indices
    taps: Indices


def _apart(areas: Sequence[Area]) -> list[Area]:
    """Leave out areas that others contain; mostly one is left."""
    found = list[Area]()
    for area in sorted(areas, key=lambda area: -len(area[0]) * len(area[1])):
        if not any(all(np.isin(one, other).all() for one, other in zip(area, more, strict=True)) for more in found):
            found.append(area)
    return found


def _count(areas: Sequence[Area]) -> int:
    """Count the pairs that are in any of some areas."""
    if len(areas) == 1:
        return len(areas[0][0]) * len(areas[0][1])
    is_in = np.zeros([1 + max((int(area[axis].max(initial=0)) for area in areas), default=0) for axis in (0, 1)], bool)
    for rows, columns in areas:
        is_in[np.ix_(rows, columns)] = True
    return int(is_in.sum())


@lru_cache(REMEMBERED)
def needed_work(chain: Chain) -> Work:
    """The bytes and the MACs that every plan moves and computes at least.

    >>> pointwise = Conv2d(out_channels=32, stride=(2, 2))
    >>> needed_work(Chain(input=(1, 8, 8, 4), conv=(pointwise,)))
    Work(traffic_bytes={'input': 256, 'filter1': 512, 'output': 8192}, macs={'conv1': 2048})
    """
    filter_bytes, last = DTYPE_BYTES[chain.dtype_of_filters], len(chain.conv) - 1
    traffic = {"output": prod(output_layout(chain).physical_shape) * DTYPE_BYTES[chain.output_dtype(last)]}
    rows, columns = (np.arange(size) for size in chain.shapes[-1][1:3])
    areas: dict[int, list[Area]] = {last + 1: [(rows, columns)]}
    macs: dict[str, int] = {}
    for index in reversed(range(len(chain.conv))):
        conv, source, outputs = chain.conv[index], chain.shapes[index], _apart(areas[index + 1])
        if conv.add:
            areas.setdefault(conv.add.tensor, []).extend(outputs)
        made = chain.input[0] * _count(outputs) * conv.out_channels
        macs[conv_name(index + 1)] = made * macs_per_output(chain, index)
        read = [[_reached(conv, axis, area[axis], source[axis + 1]) for axis in (0, 1)] for area in outputs]
        areas.setdefault(index, []).extend((down.indices, across.indices) for down, across in read)
        taps = _count([(down.taps, across.taps) for down, across in read])
        if not conv.pool:
            traffic[filter_name(index + 1)] = prod(chain.filter_shapes[index][:2]) * taps * filter_bytes
    traffic["input"] = chain.input[0] * _count(_apart(areas[0])) * chain.input[3] * DTYPE_BYTES[chain.dtype]
    return Work(dict(reversed(traffic.items())) | vectors_bytes(chain), dict(reversed(macs.items())))


def needed_macs(chain: Chain) -> int:
    """The multiply-accumulates of all outputs of all convs that are read, each output counted once.

    >>> needed_macs(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2, kernel=(3, 3)),)))
    2592
    """
    return sum(needed_work(chain).macs.values())


def macs_per_output(chain: Chain, index: int) -> int:
    """How many products one output element of conv `index` sums; none in a pool."""
    return prod(chain.filter_shapes[index][1:])


def _reached(conv: Conv2d, axis: int, outputs: Indices, size: int) -> _Reached:
    """What `outputs` of a conv read of a source of `size` indices, along rows (axis 0) or columns (axis 1)."""
    stride, dilation = conv.stride[axis], conv.dilation[axis]
    before = (conv.padding.top, conv.padding.left)[axis]
    reached, taps = np.zeros(size, bool), np.zeros(conv.kernel[axis], bool)
    for tap in range(conv.kernel[axis]):
        at = np.asarray(outputs) * stride + tap * dilation - before
        met = at[(at >= 0) & (at < size)]
        reached[met] = True
        taps[tap] = met.size > 0
    return _Reached(np.flatnonzero(reached), np.flatnonzero(taps))
