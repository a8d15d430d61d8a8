"""Channel blocks that fit: how many channels lie together in a tensor of a nest of rows.

An input of 1 to 3 channels is dense where that takes fewer packets: its pixels lie side by side as they arrive.
Otherwise the kernel's scalar stores widen each of them to 8 bytes. An intermediate lies in blocks of 32 channels, or of
64 or 128 where tiles narrow so many together, or in narrow blocks, which are filled up less:

    NHCW8w16c    8 neighbouring pixels of 16 channels are a vector
    NHCW16w8c    16 neighbouring pixels of 8 channels
    NHCW32w4c    32 neighbouring pixels of 4 channels: what one product multiplies where lanes are pixels, and what 4
                 channels of a tile narrow to

A conv with channels as lanes (`hexconv.kernel.channels`) reads narrow blocks of 8 or 16 as it reads others. It makes
them where tiles fill vectors of them (`makes_blocks` there). A conv with pixels as lanes deals what it reads to planes
of words (`hexconv.kernel.planes`), and shuffles the words that it makes to pixels: the fewer channels lie together,
the fewer instructions that takes. Blocks of 4 take none.

Beside a tensor in blocks of 4 every conv has pixels as lanes, which may not pay for each conv by itself. One behind a
dense input has pixels as lanes, or multiplies windows of dense rows (`hexconv.kernel.dense`). So the layouts of all
tensors are chosen together: those of the fewest packets, by the estimates of forms (`hexconv.kernel.form`), and of
the fewest bytes where packets are equal.

Blocks stay wide beside a conv of groups, which reads and makes vectors of 4 pixels of 32 channels, and where elements
are int16, whose high and low bytes lie in rows of their own.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf

from hexconv.kernel.form import columns_read
from hexconv.kernel.layouts import logical
from hexconv.kernel.row_conv import LayoutChoice, RowConv, conv_number, with_split
from hexconv.kernel.tiles import BYTES, VECTOR_BYTES, WORD_CHANNELS
from hexconv.layout import packed
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.extents import REMEMBERED

NARROW_UNITS = (WORD_CHANNELS, 8, 16)
"""The channels of narrow blocks."""
DENSE_TAG, DENSE_UNIT = "NHWC", 1
"""How a dense input lies, and the channels that a step along its axis C counts."""
PACKETS_OF_PIXEL = 1.5
"""What a copy of a pixel of few channels takes, of all pixels of a row in one loop."""
MOST_KNOWN = 1 << 14
"""The number of convs that are not alike whose packets are kept, beside how their tensors may lie."""
_KNOWN: dict[Hashable, Sequence[Sequence[float]]] = {}
STORED_PIXELS = 8
"""The pixels from a store of a tile to the next one: of blocks of 8 channels, tiles of channels store half a vector."""


@dataclass(frozen=True)
class _Way:
    """Tensors up to one of them: the packets and bytes of rows of all, and how each of them lies."""

    packets: float
    bytes: int
    lies: tuple[LayoutChoice, ...]

    def beside(self, packets: float, to: LayoutChoice) -> "_Way":
        """Add the packets of a conv, and the bytes of what it makes."""
        return _Way(self.packets + packets, self.bytes + to.row_bytes, (*self.lies, to))


def chosen_blocks(
    chain: Chain, wide: Sequence[LayoutChoice], is_hvx: Sequence[bool], k_split: int
) -> list[LayoutChoice]:
    """Choose how every tensor of a chain lies.

    Args:
        chain: the chain, in which convs have the groups that HVX computes (`hexconv.kernel.grouped`).
        wide: how every tensor lies without narrow blocks.
        is_hvx: for each conv, whether HVX instructions compute it.
        k_split: blocks of output channels of a step.
    """
    serves = [is_hvx[index] and _can_be_narrow(chain, index) for index in range(len(chain.conv))]
    ways = [_Way(0.0, 0, (wide[0],))]
    dense = LayoutChoice(packed(DENSE_TAG, logical(tensor_extents(chain)[0])), DENSE_UNIT)
    if serves[0] and chain.input[3] < WORD_CHANNELS and _conv(chain, 0, dense, wide[1], k_split).forms:
        ways = [_Way(_widening(chain, wide[0]), 0, (wide[0],)), _Way(0.0, 0, (dense,))]
    for index, served in enumerate(serves):
        found = [wide[index + 1]]
        if served and all(serves[index + 1 : index + 2]) and index + 1 < len(serves):
            found += _narrow(chain, index + 1, found[0].row_bytes)
        rows, sources = tensor_extents(chain)[index + 1].logical_rows, tuple(way.lies[-1] for way in ways)
        between = _packets(chain, index, sources, tuple(found), served, k_split)
        ways = [
            min((way.beside(rows * packets, to) for way, packets in zip(ways, row, strict=True)), key=_cost)
            for to, row in zip(found, between, strict=True)
        ]
    return list(min(ways, key=_cost).lies)


def _cost(way: _Way) -> tuple[float, int]:
    return way.packets, way.bytes


def _widening(chain: Chain, wide: LayoutChoice) -> float:
    """The packets that widen the pixels of an input to those of its cache: each is copied into a row that is filled."""
    _, rows, columns, _ = chain.input
    return rows * columns * (PACKETS_OF_PIXEL + wide.layout.physical_shape[-1] / VECTOR_BYTES)


@lru_cache(REMEMBERED)
def _narrow(chain: Chain, tensor: int, wide_bytes: int) -> tuple[LayoutChoice, ...]:
    """Narrow blocks of a tensor, of those that take fewer bytes of a row than wide ones; all of k_split share them."""
    extents = tensor_extents(chain)[tensor]
    units = (unit for unit in NARROW_UNITS if ceil(extents.channels / unit) * unit * extents.columns < wide_bytes)
    return tuple(found for unit in units if (found := _in_blocks(chain, tensor, unit)).row_bytes < wide_bytes)


@lru_cache(REMEMBERED)
def _in_blocks(chain: Chain, tensor: int, unit: int) -> LayoutChoice:
    """Blocks of `unit` channels for a tensor, as wide as convs store and load."""
    extents, pixels = tensor_extents(chain)[tensor], VECTOR_BYTES // unit
    batch, rows, columns, channels = logical(extents)
    first, end = extents.valid_columns
    apart = pixels if unit == WORD_CHANNELS else STORED_PIXELS
    stored = first + (ceil((end - first) / apart) - 1) * apart + pixels
    layout = packed(
        f"NHCW{pixels}w{unit}c",
        (batch, rows, max(columns, stored, columns_read(chain, tensor, unit)), channels),
        logical="NHWC",
    )
    return LayoutChoice(layout, unit)


def _can_be_narrow(chain: Chain, index: int) -> bool:
    """Whether conv `index`, which HVX computes, can read and make narrow blocks: of bytes, some, without groups."""
    first, end = tensor_extents(chain)[index + 1].valid_columns
    return chain.dtype in BYTES and chain.conv[index].groups == 1 and first < end


LayoutChoices = tuple[LayoutChoice, ...]


def _packets(
    chain: Chain, index: int, sources: LayoutChoices, targets: LayoutChoices, served: bool, k_split: int
) -> Sequence[Sequence[float]]:
    """The packets of a row of a conv, [target][source]; infinite where it can't read or make what lies so."""
    if not served:
        reads = [inf if source.is_narrow or source.is_dense else 0.0 for source in sources]
        return [[inf if to.is_narrow else each for each in reads] for to in targets]
    ends = tuple(each.of_row for each in sources), tuple(each.of_row for each in targets)
    key = conv_number(chain, index, "hvx", k_split), *ends
    if key not in _KNOWN:
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        convs = [[_conv(chain, index, source, to, k_split) for source in sources] for to in targets]
        _KNOWN[key] = [[conv.row_packets for conv in row] for row in convs]
    return _KNOWN[key]


def _conv(chain: Chain, index: int, source: LayoutChoice, to: LayoutChoice, k_split: int) -> RowConv:
    return RowConv(chain, index, source, to, "hvx", with_split(k_split))
