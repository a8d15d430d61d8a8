"""Which tensors of few channels lie in a way of their own: dense inputs, and intermediates in blocks of 4 channels.

An input of 1 to 3 channels is dense where that takes fewer packets: its pixels lie side by side as they arrive.
Otherwise the kernel's scalar stores widen each of them to 8 bytes. Of intermediates, those of few channels
between convs whose lanes are pixels lie in blocks of 4 channels.

    NHCW32w4c    32 neighbouring pixels of 4 channels are a vector: what one product multiplies, and what 4 channels
                 of a tile narrow to

Blocks of 32 would be filled up where channels are no multiple of 32. A conv that reads such blocks deals them to planes
of words (`hexconv.kernel.hvx.planes`), and one that makes them shuffles words to pixels. Blocks of 4 take neither.

A conv beside a tensor in blocks of 4 has pixels as lanes. That may not pay for each conv by itself. One behind a dense
input has pixels as lanes, or multiplies windows of dense rows (`hexconv.kernel.hvx.dense`). So the layouts of all
tensors are chosen together: those of the fewest packets, by the estimates of `hexconv.kernel.hvx.pixels`, and of the
fewest bytes where packets are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, gcd, inf, prod

from hexconv.kernel.forms import logical
from hexconv.kernel.hvx.pixels import (
    fits_pixels,
    lanes_between,
    packets_of_channels,
    packets_of_dense,
    packets_of_pixels,
    serves_pixels,
)
from hexconv.kernel.hvx.plane import Plane, plane_in
from hexconv.kernel.hvx.planes import LANES
from hexconv.kernel.hvx.tiles import PAIR_BYTES, WORD_CHANNELS
from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK

FOURS_TAG = "NHCW32w4c"
DENSE_TAG, DENSE_UNIT = "NHWC", 1
"""How a dense input lies, and the channels that a step along its axis C counts."""
STORES_OF_PACKET = 2


@dataclass(frozen=True)
class Lies:
    """One way in which a tensor may lie: its layout, and the channels that a step along its axis C counts."""

    layout: Layout
    unit: int

    @property
    def is_fours(self) -> bool:
        """Whether it lies in blocks of 4 channels."""
        return self.unit == WORD_CHANNELS

    @property
    def is_dense(self) -> bool:
        """Whether it is an input whose pixels lie side by side."""
        return self.unit == DENSE_UNIT

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of the tensor, of which an element is a byte."""
        return prod(self.layout.physical_shape[2:])


def filled_columns(extents: Extents) -> list[int]:
    """The columns at which vectors of the fringe are stored in a row in blocks of 4 channels.

    Stores of results cover whole vectors from the first logical column on. What else is stored is padding.

    >>> filled_columns(Extents(1, 8, 70, 12, top=1, left=1, logical_rows=6, logical_columns=68))
    [0]
    >>> filled_columns(Extents(1, 8, 100, 12, top=1, left=1, logical_rows=6, logical_columns=68))
    [0, 96]
    """
    first, end = extents.valid_columns
    reached = first + ceil((end - first) / LANES) * LANES
    return [at for at in range(0, extents.columns, LANES) if at < first or min(at + LANES, extents.columns) > reached]


@dataclass(frozen=True)
class _Way:
    """Tensors up to one of them: the packets and bytes of rows of all, and how each of them lies."""

    packets: float
    bytes: int
    lies: tuple[Lies, ...]


def chosen_blocks(chain: Chain, wide: Sequence[Lies], is_hvx: Sequence[bool], k_split: int) -> list[Lies]:
    """Choose how every tensor of a chain lies.

    Args:
        chain: the chain, in which convs have the groups that HVX computes (`hexconv.kernel.grouped`).
        wide: how every tensor lies without blocks of 4 channels.
        is_hvx: for each conv, whether HVX instructions compute it.
        k_split: blocks of output channels of a step.
    """
    serves = [is_hvx[index] and serves_pixels(chain, index) for index in range(len(chain.conv))]
    ways = [_Way(0.0, 0, (wide[0],))]
    if serves[0] and chain.input[3] < WORD_CHANNELS:
        dense = Lies(packed(DENSE_TAG, logical(tensor_extents(chain)[0])), DENSE_UNIT)
        ways = [_Way(_widening(chain, wide[0]), 0, (wide[0],)), _Way(0.0, 0, (dense,))]
    for index, served in enumerate(serves):
        found = [wide[index + 1]]
        if served and all(serves[index + 1 : index + 2]) and index + 1 < len(serves):
            found += _fours(chain, index + 1, wide[index + 1])
        ways = [min((_next(chain, index, way, to, served, k_split) for way in ways), key=_cost) for to in found]
    return list(min(ways, key=_cost).lies)


def _cost(way: _Way) -> tuple[float, int]:
    return way.packets, way.bytes


def _widening(chain: Chain, wide: Lies) -> float:
    """The packets of the stores that fill up the pixels of an input to those of its cache."""
    _, rows, columns, channels = chain.input
    stores = filling_stores(channels, wide.layout.physical_shape[-1])
    return rows * columns * stores / STORES_OF_PACKET


def filling_stores(start: int, end: int) -> int:
    """Count the stores from byte `start` of a pixel to byte `end`, all as long as the address of the first allows.

    >>> [filling_stores(start, 8) for start in (1, 2, 3, 4, 6, 8)], [filling_stores(start, 32) for start in (12, 13)]
    ([7, 3, 5, 1, 1, 0], [5, 19])
    """
    return (end - start) // gcd(start, PAIR_BYTES)


def _fours(chain: Chain, tensor: int, wide: Lies) -> list[Lies]:
    """Blocks of 4 channels for a tensor, unless blocks of 32 take as few bytes: as wide as convs store and load."""
    extents = tensor_extents(chain)[tensor]
    first, end = extents.valid_columns
    plane = Plane(ceil(extents.channels / WORD_CHANNELS), 0, WORD_CHANNELS, 0)
    planes = lanes_between(chain, tensor, plane, CHANNEL_BLOCK, 1).planes
    stored = first + ceil((end - first) / LANES) * LANES
    read = planes.read_lanes if planes.is_direct else extents.columns
    batch, rows, columns, channels = logical(extents)
    layout = packed(FOURS_TAG, (batch, rows, max(columns, stored, read), channels), logical="NHWC")
    found = Lies(layout, WORD_CHANNELS)
    return [found] if found.row_bytes < wide.row_bytes else []


def _next(chain: Chain, index: int, way: _Way, to: Lies, served: bool, k_split: int) -> _Way:
    """Add the packets of conv `index`, and the bytes of what it makes."""
    rows = tensor_extents(chain)[index + 1].logical_rows
    packets = rows * _packets(chain, index, way.lies[-1], to, served, k_split)
    return _Way(way.packets + packets, way.bytes + to.row_bytes, (*way.lies, to))


def _packets(chain: Chain, index: int, source: Lies, to: Lies, served: bool, k_split: int) -> float:
    """The packets of a row of a conv; infinite where it can't read or make what lies so."""
    has_to = source.is_fours or source.is_dense or to.is_fours
    if not served:
        return inf if has_to else 0.0
    plane = plane_in(source.layout, source.unit)
    lanes = lanes_between(chain, index, plane, to.unit, k_split)
    of_pixels = packets_of_pixels(lanes) if fits_pixels(plane) else inf
    if source.is_dense and not to.is_fours and fits_pixels(plane):
        return min(of_pixels, packets_of_dense(lanes))
    return of_pixels if has_to else min(of_pixels, packets_of_channels(lanes))
