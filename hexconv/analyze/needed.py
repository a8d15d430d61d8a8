"""What a chain needs at least, whatever the plan: bytes that must be moved, and MACs.

Traffic. Every element of the input and of the filters that the result depends on is read once, every element of the
packed output written once. An element of the input counts if some output of the chain reaches it: a stride leaves rows
unread, and so may padding. A tap of a filter counts if it ever meets a logical element and not only padding. Rows and
columns are independent of each other in both, so that two lists per tensor say it all.

MACs. Those of the logical outputs of every conv, once: N x H x W x K outputs of C x kernel products each.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hexconv.analyze.footprint import DTYPE_BYTES
from hexconv.spec import Chain, Conv2d, tensor_extents

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """What is moved and what is computed.

    Attributes:
        traffic_bytes: by tensor: `input`, `filter1`, ..., read; `output`, written.
        macs: multiply-accumulates by conv: `conv1`, ...
    """

    traffic_bytes: dict[str, int]
    macs: dict[str, int]


@dataclass(frozen=True)
class _Reached:
    """What outputs reach along one axis: the logical indices of the source, and the taps that meet any of them."""

    indices: Indices
    taps: int


def needed_work(chain: Chain) -> Work:
    """The least that any plan moves and computes.

    >>> pointwise = Conv2d(out_channels=32, stride=(2, 2))
    >>> needed_work(Chain(input=(1, 8, 8, 4), conv=(pointwise,)))
    Work(traffic_bytes={'input': 256, 'filter1': 512, 'output': 8192}, macs={'conv1': 2048})
    """
    filter_bytes, last = DTYPE_BYTES[chain.dtype_of_filters], len(chain.conv) - 1
    traffic = {"output": prod(tensor_extents(chain)[-1].packed_shape) * DTYPE_BYTES[chain.output_dtype(last)]}
    rows, columns = (np.arange(size) for size in chain.shapes[-1][1:3])
    for index in reversed(range(len(chain.conv))):
        conv, source = chain.conv[index], chain.shapes[index]
        down, across = _reached(conv, 0, rows, source[1]), _reached(conv, 1, columns, source[2])
        rows, columns = down.indices, across.indices
        traffic[f"filter{index + 1}"] = prod(chain.filter_shapes[index][:2]) * down.taps * across.taps * filter_bytes
    traffic["input"] = chain.input[0] * len(rows) * len(columns) * chain.input[3] * DTYPE_BYTES[chain.dtype]
    macs = {f"conv{i + 1}": prod(chain.shapes[i + 1]) * macs_per_output(chain, i) for i in range(len(chain.conv))}
    return Work(dict(reversed(traffic.items())), macs)


def needed_macs(chain: Chain) -> int:
    """Multiply-accumulates of the logical outputs of every conv, each once.

    >>> needed_macs(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2, kernel=(3, 3)),)))
    2592
    """
    return sum(needed_work(chain).macs.values())


def macs_per_output(chain: Chain, index: int) -> int:
    """Products in one sum of conv `index`."""
    return prod(chain.filter_shapes[index][1:])


def _reached(conv: Conv2d, axis: int, outputs: Indices, size: int) -> _Reached:
    """What some outputs of a conv reach of a source of `size`, along rows (0) or columns (1)."""
    stride, dilation = conv.stride[axis], conv.dilation[axis]
    before = (conv.padding.top, conv.padding.left)[axis]
    reached, taps = np.zeros(size, bool), 0
    for tap in range(conv.kernel[axis]):
        at = np.asarray(outputs) * stride + tap * dilation - before
        met = at[(at >= 0) & (at < size)]
        reached[met] = True
        taps += bool(met.size)
    return _Reached(np.flatnonzero(reached), taps)
