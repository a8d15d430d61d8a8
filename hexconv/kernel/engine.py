"""The matrix engine (HMX) as plans see it: its packets, bias tables, lines of VTCM, and how it wants filters.

How a conv becomes packets: `hexconv.kernel.croutons`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby, pairwise, product
from typing import Any

import numpy as np

from hexconv.kernel.layouts import FEW_INPUTS_TAG, FILTER_TAG, Diagonal, NestLayouts, Packing
from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Conv2d
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK, Extents, blocks, unstored_columns
from hexconv.spec.kernels import Kernel, signed_zero_point
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.phases import Phases, stride_phases
from hexconv.spec.vectors import Array

CROUTON_BYTES = ROW_BLOCK * COLUMN_BLOCK * CHANNEL_BLOCK
TAP_BYTES = CHANNEL_BLOCK * CHANNEL_BLOCK
"""The weights of a tap, of all channels."""
FOUR_BYTES = 4 * CHANNEL_BLOCK
"""The weights of four inputs of a tap, a vector; the engine takes whole ones."""
TAP_MACS = ROW_BLOCK * COLUMN_BLOCK * CHANNEL_BLOCK * CHANNEL_BLOCK
TABLE_WORDS = 2 * CHANNEL_BLOCK
TABLE_BYTES = 4 * TABLE_WORDS
EXPONENTS = (24, 16, 8, 0)
"""The exponents of the stores that write bytes 0 to 3 of a sum."""
TABLES_WORDS = len(EXPONENTS) * TABLE_WORDS
"""The words of the bias tables of a block of 32 output channels, in VTCM."""
RECTIFIED = 2
"""The shape of a convert that makes negative sums 0."""
WHOLE_SCALE = 2048
"""The scale that takes a byte as it is."""


@dataclass(frozen=True)
class EnginePackets:
    """Packets of the matrix engine; of many plans, arrays stand in the place of numbers.

    Attributes:
        multiplies: packets that multiply.
        taps: what they multiply: taps of 64 positions by 32 inputs by 32 outputs.
        stores: packets that store sums.
        table_loads: packets that load a bias table.
        clears: packets that clear the sums.
    """

    multiplies: int = 0
    taps: int = 0
    stores: int = 0
    table_loads: int = 0
    clears: int = 0

    def __add__(self, other: "EnginePackets") -> "EnginePackets":
        """Return the packets of both."""
        return EnginePackets(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    def times(self, count: Any) -> "EnginePackets":
        """Return the packets of so many."""
        return EnginePackets(*(count * each for each in astuple(self)))

    @property
    def of_one(self) -> "EnginePackets":
        """The same where there is one plan, as plain numbers."""
        return EnginePackets(*(int(np.asarray(each).item()) for each in astuple(self)))

    @property
    def macs(self) -> Any:
        """The multiply-accumulates that the engine does, of fringe and of padding too."""
        return self.taps * TAP_MACS


MOST_DILATED = 2
"""The largest distance of taps that a packet takes together, on either side."""
WHOLE = (1, 1)
"""The phase images of a tensor that is no strided conv's source."""


@dataclass(frozen=True)
class TapPacket:
    """A packet that multiplies a crouton by some taps of a kernel.

    Attributes:
        name: the function of the packet (`hexconv.kernel.engine_words`).
        row, column: its last tap, counted in rows and columns of the crouton.
        first: how many taps lie in front of its own in the filter.
        taps: its taps.
        image: the phase image that it reads, down and across.
        slab: how many slabs below the first one that is read its crouton lies.
    """

    name: str
    row: int
    column: int
    first: int
    taps: int
    image: Phases = (0, 0)
    slab: int = 0

    def crosses(self, kernel_byte: Any) -> Any:
        """Whether its weights lie on both sides of a line of VTCM; of many kernels, by where they begin, an array."""
        begin = kernel_byte + self.first * TAP_BYTES
        return begin // LINE_BYTES != (begin + self.taps * TAP_BYTES - 1) // LINE_BYTES

    @property
    def one_by_one(self) -> "tuple[TapPacket, ...]":
        """The packets that multiply its taps one by one: a line never ends inside of one.

        >>> from hexconv.spec import Conv2d
        >>> (packet,) = tap_packets(Conv2d(out_channels=1, kernel=(2, 2)))
        >>> [(each.name, each.row, each.column, each.first) for each in packet.one_by_one][:3]
        [('multiply_all_single', 0, 0, 0), ('multiply_all_single', 0, 1, 1), ('multiply_single_single', 1, 0, 2)]
        """
        by_row, by_column = (
            self.name.removeprefix("multiply").strip("_").split("_") if "_" in self.name else ("all", "all")
        )
        places = product(_places(by_row, self.row), _places(by_column, self.column))
        return tuple(
            replace(
                self, name=f"multiply_{'single' if row else 'all'}_single", row=row, column=column, first=at, taps=1
            )
            for at, (row, column) in enumerate(places, self.first)
        )


def _places(mode: str, last: int) -> Sequence[int]:
    """Return the rows or columns of the taps that a packet multiplies."""
    modes = {"all": range(last + 1), "dilate": range(0, last + 1, MOST_DILATED), "above": range(last, ROW_BLOCK)}
    return modes.get(mode, [last])


def _classes(taps: int, dilation: int, phases: int) -> list[list[int]]:
    """Sort taps along an axis by the phase that they read, whatever the phase of the output."""
    found = dict[int, list[int]]()
    for tap in range(taps):
        found.setdefault(tap * dilation % phases, []).append(tap)
    return [*found.values()]


def packed_taps(conv: Conv2d, images: Phases) -> tuple[int, ...]:
    """Return the order of taps in a filter: those of one phase together, the last column of each row first.

    Where no packet takes the columns of a phase together, its taps lie column by column: a packet then takes all rows.

    >>> from hexconv.spec import Conv2d
    >>> convs = [Conv2d(out_channels=1, kernel=kernel) for kernel in ((2, 3), (1, 3))]
    >>> packed_taps(convs[0], (1, 1)), packed_taps(convs[1], (2, 2))
    ((2, 1, 0, 5, 4, 3), (2, 0, 1))
    >>> packed_taps(Conv2d(out_channels=1, kernel=(2, 2), dilation=(1, 3)), (1, 1))
    (1, 3, 0, 2)
    """
    rows, columns = (_classes(*axis) for axis in zip(conv.kernel, conv.dilation, images, strict=True))
    found = list[int]()
    for a, b in product(rows, columns):
        places = ((row, column) for row in a for column in reversed(b))
        if goes_down(conv, images, b):
            places = ((row, column) for column in reversed(b) for row in a)
        found += [row * conv.kernel[1] + column for row, column in places]
    return tuple(found)


def goes_down(conv: Conv2d, images: Phases, columns: Sequence[int]) -> bool:
    """Whether some outputs have no packet for all columns of a phase, so that its taps lie column by column.

    Args:
        conv: the conv.
        images: the phase images of the source.
        columns: the columns of the kernel that read one phase.
    """
    return any(
        len(_pieces(_columns_of_sums(conv, images, columns, phase))) > 1 for phase in range(images[1] // conv.stride[1])
    )


def _columns_of_sums(conv: Conv2d, images: Phases, columns: Sequence[int], phase: int) -> list[int]:
    """Return the columns of a crouton that columns of the kernel are multiplied at, for outputs of a phase."""
    last = last_column(conv, images, phase)
    return [last - (conv.stride[1] * phase + column * conv.dilation[1]) // images[1] for column in reversed(columns)]


def _pieces(places: Sequence[int]) -> list[tuple[str, int, int]]:
    """Cut taps at some places of a crouton into packets: the mode of each, its last place, and how many taps it has."""
    apart = {after - before for before, after in pairwise(places)}
    if places[0] == 0 and apart <= {1}:
        return [("all", places[-1], len(places))]
    if places[0] == 0 and apart <= {MOST_DILATED}:
        return [("dilate", places[-1], len(places))]
    return [("single", place, 1) for place in places]


@dataclass(frozen=True)
class RowPieces:
    """The row taps of some packets, all of one slab.

    Attributes:
        mode: the mode of rows.
        row: the row in the slab that the packet names: the last one, or the first one of those up to the slab's end.
        rows: how many row taps there are.
        slab: the slab.
    """

    mode: str
    row: int
    rows: int
    slab: int


def _row_pieces(places: Sequence[int], one_by_one: bool) -> list[RowPieces]:
    """Cut taps at some rows, counted from the first slab's, into packets: taps up to a slab's last row go together.

    >>> [(piece.mode, piece.row, piece.slab) for piece in _row_pieces((6, 7, 8, 9), False)]
    [('above', 6, 0), ('all', 1, 1)]
    """
    found = list[RowPieces]()
    for slab, of_slab in groupby(places, lambda place: place // ROW_BLOCK):
        rows = [place % ROW_BLOCK for place in of_slab]
        pieces = [("single" if row else "all", row, 1) for row in rows] if one_by_one else _pieces(rows)
        if not one_by_one and 1 < len(rows) < ROW_BLOCK and rows == [*range(rows[0], ROW_BLOCK)]:
            pieces = [("above", rows[0], len(rows))]
        found += [RowPieces(*piece, slab) for piece in pieces]
    return found


def last_column(conv: Conv2d, images: Phases, phase: int) -> int:
    """Return the last column of the taps of a phase: where all padding is stored, that of output 0 in the sums."""
    return (conv.stride[1] * phase + conv.reach[1] - 1) // images[1]


def tap_packets(
    conv: Conv2d,
    images: Phases = WHOLE,
    phase: Phases = (0, 0),
    is_beyond: bool = False,
    unstored: int = 0,
    lead: int = 0,
) -> tuple[TapPacket, ...]:
    """Return the packets that multiply croutons by all taps, one where taps are 1 or 2 apart in one image.

    Args:
        conv: the conv.
        images: the phase images of the source.
        phase: the phase of the outputs.
        is_beyond: whether the crouton lies right of the last tile, so that only what it adds to that tile counts: the
            first column of a kernel adds nothing there.
        unstored: the columns of padding left of those that are stored.
        lead: the stored rows above the first one that is read.

    >>> from hexconv.spec import Conv2d
    >>> [each.name for each in tap_packets(Conv2d(out_channels=1, kernel=(3, 3), dilation=(2, 1)))]
    ['multiply_dilate_all']
    >>> [(each.row, each.first) for each in tap_packets(Conv2d(out_channels=1, kernel=(3, 3), dilation=(3, 2)))]
    [(0, 0), (3, 3), (6, 6)]
    >>> [(each.image, each.taps) for each in tap_packets(Conv2d(out_channels=1, kernel=(3, 3), stride=2), (2, 2))]
    [((0, 0), 4), ((0, 1), 2), ((1, 0), 2), ((1, 1), 1)]
    >>> stem = Conv2d(out_channels=1, kernel=(7, 7), stride=2)
    >>> [(each.name, each.taps) for each in tap_packets(stem, (2, 2))][:2]
    [('multiply', 16), ('multiply_all_single', 4)]
    """
    down, right = (
        [divmod(before + stride * at + tap * apart, count) for tap in range(taps)]
        for taps, stride, apart, count, at, before in zip(
            conv.kernel, conv.stride, conv.dilation, images, phase, (lead, 0), strict=True
        )
    )
    last = last_column(conv, images, phase[1])
    found, first = list[TapPacket](), 0
    for rows in _classes(conv.kernel[0], conv.dilation[0], images[0]):
        for columns in _classes(conv.kernel[1], conv.dilation[1], images[1]):
            image = down[rows[0]][1], right[columns[0]][1]
            every = _columns_of_sums(conv, images, columns, phase[1])
            kept = [column for column in every if column < last - unstored] if is_beyond else every
            places = [down[row][0] for row in rows]
            if goes_down(conv, images, columns):
                for column, piece in product(every, _row_pieces(places, one_by_one=False)):
                    if column in kept:
                        name = f"multiply_{piece.mode}_single"
                        found.append(TapPacket(name, piece.row, column, first, piece.rows, image, piece.slab))
                    first += piece.rows
                continue
            across = _pieces(kept) if kept else []
            for piece in _row_pieces(places, one_by_one=kept != every):
                at = first
                for by_column, column, of_columns in across:
                    name = "multiply" if piece.mode == by_column == "all" else f"multiply_{piece.mode}_{by_column}"
                    taps = piece.rows * of_columns
                    found.append(TapPacket(name, piece.row, column, at, taps, image, piece.slab))
                    at += taps
                first += piece.rows * len(every)
    return tuple(found)


@dataclass(frozen=True)
class TileRow:
    """A row of tiles of one phase of what a conv makes, and the row of croutons that it reads.

    Attributes:
        conv: the conv.
        images: the phase images of the source.
        phase: the phase of the outputs.
        croutons: the croutons of the source.
        tiles: the tiles.
        columns: the columns of outputs in them.
        unstored: the columns of padding left of those that are stored; None where all padding is stored.
        lead: the stored rows of the source above the first one that is read.
    """

    conv: Conv2d
    images: Phases
    phase: Phases
    croutons: int
    tiles: int
    columns: int
    unstored: int | None
    lead: int

    @classmethod
    def rows_of(cls, chain: Chain, index: int, source: Extents, target: Extents) -> "tuple[TileRow, ...]":
        """Return a row of each phase of what conv `index` (from 0) of a chain makes.

        Args:
            chain: the chain as its nest has it.
            index: the number of the conv.
            source: the tensor that it reads.
            target: the tensor that it makes.
        """
        unstored, conv = unstored_columns(chain, index, target), chain.conv[index]
        sizes = source.phase_columns, target.phase_columns, target.columns
        return tuple(cls(conv, source.phases, phase, *sizes, unstored, source.lead) for phase in target.images)

    @property
    def end(self) -> int:
        """The column of the sums in which output 0 stands."""
        return last_column(self.conv, self.images, self.phase[1]) - (self.unstored or 0)

    @property
    def spills_last(self) -> bool:
        """Whether sums right of the last crouton are outputs, without a crouton there: its padding isn't stored."""
        return self.unstored is not None and self.columns > self.tiles * COLUMN_BLOCK - self.end

    @property
    def read(self) -> int:
        """The croutons that are read: one more than tiles where products leave the last."""
        return min(self.croutons, self.tiles + 1) if self.end > 0 else self.tiles

    def packets(self, is_beyond: bool = False) -> tuple[TapPacket, ...]:
        """The packets of a crouton, or of that right of the last tile."""
        return tap_packets(self.conv, self.images, self.phase, is_beyond, self.unstored or 0, self.lead)

    @property
    def multiplied(self) -> Iterator[tuple[TapPacket, int]]:
        """The packets of the row, for a kernel of 32 inputs and outputs, and the croutons each reads."""
        beyond = max(self.read - self.tiles, 0)
        yield from ((packet, self.read - beyond) for packet in self.packets())
        yield from ((packet, beyond) for packet in self.packets(is_beyond=True))

    @property
    def halves(self) -> int:
        """How often sums are stored: on both sides of a column, but where nothing right of the last tile is output."""
        if self.end == 0:
            return self.tiles
        return self.tiles + (self.tiles if self.spills_last else self.read - 1)


def row_packets(chain: Chain, index: int, source: Extents, target: Extents) -> EnginePackets:
    """Count the packets of a row of tiles of one block of output channels, of all phases.

    Args:
        chain: the chain.
        index: the number of the conv, from 0.
        source: the tensor that is read.
        target: the tensor that is made.
    """
    conv, kernels = chain.conv[index], read_blocks(chain, index) * kernel_copies(chain, index)
    found = EnginePackets()
    for row in TileRow.rows_of(chain, index, source, target):
        stores = row.halves * (1 if is_converted(conv) else len(EXPONENTS))
        found = found + EnginePackets(
            multiplies=kernels * sum(times for _, times in row.multiplied),
            taps=kernels * sum(packet.taps * times for packet, times in row.multiplied),
            stores=stores,
            table_loads=1 if is_converted(conv) else stores,
            clears=1,
        )
    return found


def is_converted(conv: Conv2d) -> bool:
    """Whether the engine's own convert makes the results of a conv, not HVX."""
    return conv.requantize is not None and conv.requantize.engine == "fast"


def tables_words(conv: Conv2d) -> int:
    """Return the words that a conv has in memory for the bias tables of a block of 32 output channels.

    Tables of four exponents differ in them alone: memory has what they add to the sums, once.
    """
    return TABLE_WORDS if is_converted(conv) else CHANNEL_BLOCK


LARGEST_WEIGHT = 127
"""The engine's weights are signed bytes."""
LINE_BYTES = 1 << 18
"""A line of VTCM: an operand of the engine that lies on both sides of one is a fault."""
MOST_LINES = 256
"""The most lines that buffers are placed in: 64 MiB, more than any VTCM. What takes more is not placed."""


def vtcm_taken(rooms: Sequence[Any], kernel: Kernel | None) -> Any:
    """Return the VTCM that buffers take: all together; those of the matrix engine keep clear of lines.

    Args:
        rooms: the bytes of each buffer, in whole granules; numbers, or arrays for many plans.
        kernel: the kernel of the plan.
    """
    return clear_of_lines(rooms) if kernel == "hmx" else sum(rooms)


def clear_of_lines(rooms: Sequence[Any]) -> Any:
    """Return the VTCM that buffers take, where each that fits into a line of 256 KiB lies in one.

    The largest is placed first. A buffer goes behind those of the first line that has room for it; one that is larger
    than a line begins with a line of its own.

    Args:
        rooms: the bytes of each buffer, in whole granules; numbers, or arrays for many plans.

    >>> [int(clear_of_lines([room << 10 for room in rooms])) >> 10 for rooms in ((200, 100, 300), (200, 100, 50))]
    [612, 356]
    """
    every = np.array(np.broadcast_arrays(*rooms), np.int64).reshape(len(rooms), -1)
    needed = -(-every // LINE_BYTES).sum(axis=0)
    sizes = -np.sort(-np.where(needed <= MOST_LINES, every, 0), axis=0)
    filled = np.zeros((min(int(needed.max()), MOST_LINES), sizes.shape[1]), np.int64)
    lines, plans = np.arange(len(filled))[:, None], np.arange(sizes.shape[1])
    for room in sizes:
        used = np.where(filled > 0, lines + 1, 0).max(axis=0)
        at = np.where(room > LINE_BYTES, used, np.argmax(filled + room <= LINE_BYTES, axis=0))
        whole, rest = np.divmod(room, LINE_BYTES)
        is_full = (lines >= at) & (lines < at + whole) & (room > LINE_BYTES)
        filled = np.where(is_full, LINE_BYTES, filled)
        last = np.minimum(np.where(room > LINE_BYTES, at + whole, at), len(filled) - 1)
        filled[last, plans] += np.where(room > LINE_BYTES, rest, room)
    ends = np.where(filled > 0, lines * LINE_BYTES + filled, 0).max(axis=0)
    ends = np.where(needed <= MOST_LINES, ends, every.sum(axis=0))
    return ends.reshape(np.shape(rooms[-1]))


def placed_clear_of_lines(rooms: Sequence[int]) -> tuple[int, ...]:
    """Return where each of some buffers begins, by the rule of `clear_of_lines`.

    >>> [place >> 10 for place in placed_clear_of_lines([room << 10 for room in (200, 100, 50)])]
    [0, 256, 200]
    """
    filled, places = dict[int, int](), [0] * len(rooms)
    for number in sorted(range(len(rooms)), key=lambda number: -rooms[number]):
        room, unused = rooms[number], max(filled, default=-1) + 1
        free = (line for line in range(unused) if filled.get(line, 0) + room <= LINE_BYTES)
        first = next(free, unused) if room <= LINE_BYTES else unused
        places[number] = first * LINE_BYTES + filled.get(first, 0)
        for line in range(first, first + max(-(-room // LINE_BYTES), 1)):
            filled[line] = min(filled.get(line, 0) + room - (line - first) * LINE_BYTES, LINE_BYTES)
    return tuple(places)


def table_word(exponent: Any, scale: Any, offset: Any = 0, shape: int = 0) -> Any:
    """Return the low word of a channel in a bias table; numbers, or arrays of channels.

    Args:
        exponent: a power of two, 0 to 31.
        scale: 12 bits.
        offset: what is added to results, in sixteenths, 12 bits.
        shape: 0, or 2 for what is no less than 0 before the offset.

    >>> hex(table_word(24, 2048)), hex(table_word(0, 2047)), hex(table_word(0, 2048, 0xABC, 2))
    ('0x6000', '0x800103ff', '0x55e40000')
    """
    of_scale = (scale & 1) << 31 | (1 - (scale >> 11 & 1)) << 16 | scale >> 1 & 1023
    return (
        of_scale
        | (offset >> 4 & 255) << 23
        | (offset >> 3 & 1) << 22
        | (offset & 7) << 19
        | shape << 17
        | exponent << 10
    )


def engine_diagonal(chain: Chain, index: int) -> Diagonal | None:
    """Return the blocks that conv `index` multiplies where it has groups: 32 outputs by the blocks that they read."""
    conv, channels = chain.conv[index], chain.shapes[index][3]
    one_group = Diagonal(conv.groups, channels // conv.groups, conv.out_channels // conv.groups)
    return one_group if conv.groups > 1 else None


def read_blocks(chain: Chain, index: int) -> int:
    """Return how many blocks of 32 inputs conv `index` multiplies for a block of 32 outputs."""
    diagonal = engine_diagonal(chain, index)
    return diagonal.width if diagonal else blocks(chain.shapes[index][3], CHANNEL_BLOCK)


def engine_filter(chain: Chain, index: int) -> Layout:
    """Return the layout of the filter of conv `index`: whole blocks of inputs, of groups those around the diagonal."""
    outputs, inputs, rows, columns = chain.filter_shapes[index]
    diagonal, copies = engine_diagonal(chain, index), kernel_copies(chain, index)
    tag = FILTER_TAG.replace("8i", f"{fours(chain, index)}i")
    return packed(tag, (outputs, diagonal.channels if diagonal else inputs, copies * rows, columns))


FOURS_TAG = "OIHW32o4i"
"""For filters of which not all fours of 32 inputs are there: a cache has zeros behind them."""


def filter_argument(chain: Chain, index: int) -> Layout:
    """Return the layout of the filter of conv `index` in memory, without the zeros that its cache holds.

    A depthwise conv has one weight for an output and a tap, of 32 that the engine multiplies. Of a dense conv, the last
    32 inputs may have fewer fours. With a zero point a depthwise filter has no zeros: all are less by it.

    >>> from hexconv.spec import Chain, Conv2d
    >>> convs = Conv2d(out_channels=24), Conv2d(out_channels=48, kernel=(3, 3), groups=48)
    >>> chains = [Chain(input=(1, 8, 8, 48), dtype="uint8", filter_dtype="int8", conv=(conv,)) for conv in convs]
    >>> [filter_argument(chain, 0).physical_shape for chain in chains]
    [(1, 12, 1, 1, 32, 4), (2, 1, 3, 3, 32)]
    """
    outputs, inputs, rows, columns = chain.filter_shapes[index]
    shape = outputs, inputs, kernel_copies(chain, index) * rows, columns
    conv, depthwise = chain.conv[index], packed(FEW_INPUTS_TAG, shape)
    is_depthwise = conv.groups == conv.out_channels > inputs == 1
    if is_depthwise and depthwise.elements >= FOUR_BYTES and not less_zero_point(chain, index):
        return depthwise
    if not conv.is_grouped and 4 * fours(chain, index) == CHANNEL_BLOCK and blocks(inputs, 4) % (CHANNEL_BLOCK // 4):
        return packed(FOURS_TAG, shape)
    return engine_filter(chain, index)


def is_widened(chain: Chain, index: int) -> bool:
    """Whether HVX widens the filter of conv `index`, always: the copy engine would copy it byte by byte."""
    return filter_argument(chain, index).name == FEW_INPUTS_TAG


def fours(chain: Chain, index: int) -> int:
    """Return how many times four input channels of a crouton conv `index` multiplies.

    All, but of a first conv those that it has: the engine takes no weights for others. It stays with all where a line
    of VTCM might end inside of the filter: taps of 1 KiB end where lines do.

    >>> from hexconv.spec import Conv2d
    >>> chains = [Chain(input=(1, 8, 8, some), dtype="uint8", conv=(Conv2d(out_channels=1),)) for some in (21, 32)]
    >>> [fours(chain, 0) for chain in chains]
    [6, 8]
    """
    (outputs, inputs, rows, columns), most = chain.filter_shapes[index], CHANNEL_BLOCK // 4
    own = blocks(inputs, 4)
    if index or chain.conv[index].is_grouped or own >= most:
        return most
    filter_bytes = blocks(outputs, CHANNEL_BLOCK) * kernel_copies(chain, index) * rows * columns * own * FOUR_BYTES
    return own if 2 * filter_bytes <= LINE_BYTES else most


def tap_bytes(chain: Chain, index: int) -> int:
    """Return the bytes of weights that conv `index` has for 32 outputs of a tap, and a block of inputs."""
    return fours(chain, index) * FOUR_BYTES


def kernel_copies(chain: Chain, index: int) -> int:
    """Return how many kernels conv `index` multiplies: beside its own those of what its zero point takes off."""
    return 1 + len(less_zero_point(chain, index))


def less_zero_point(chain: Chain, index: int) -> tuple[int, ...]:
    """Return signed bytes that sum to what a filter's zero point takes off each weight; none where it is 0.

    >>> from hexconv.spec import Conv2d
    >>> convs = [Conv2d(out_channels=1, filter_zero_point=zero) for zero in (128, 130, 0)]
    >>> chains = [Chain(input=(1, 8, 8, 1), dtype="uint8", conv=(conv,)) for conv in convs]
    >>> [less_zero_point(chain, 0) for chain in chains]
    [(), (-2,), (127, 1)]
    """
    taken_off = -signed_zero_point(chain, index)
    parts = (taken_off,) if taken_off <= LARGEST_WEIGHT else (LARGEST_WEIGHT, taken_off - LARGEST_WEIGHT)
    return parts if taken_off else ()


def engine_packing(chain: Chain, index: int) -> Packing:
    """Return how the filter of conv `index` is packed for the engine: its weights have a sign."""
    shift = -MADE_UNSIGNED if chain.dtype_of_filters == "uint8" else 0
    taps = packed_taps(chain.conv[index], stride_phases(chain)[index])
    added = less_zero_point(chain, index)
    unfolded = chain.unfolded.kernel if chain.unfolded and index == 0 else (1, 1)
    memory, cached = filter_argument(chain, index), engine_filter(chain, index)
    return Packing(
        "int8",
        shift,
        pads_zeros=True,
        diagonal=engine_diagonal(chain, index),
        taps=taps,
        added=added,
        unfolded=unfolded,
        memory=memory if memory != cached else None,
    )


def in_croutons(chain: Chain, documented: NestLayouts) -> NestLayouts:
    """Return the documents' layouts with filters that are packed for the engine."""
    convs = range(len(chain.conv))
    return replace(
        documented,
        filters=tuple(engine_filter(chain, index) for index in convs),
        packings=tuple(engine_packing(chain, index) for index in convs),
        flips=chain.dtype == "int8",
    )


def convert_tables(words: Array, added: Array) -> Array:
    """Return the tables of all blocks of channels by which sums become results: 32 low words, then 32 high ones.

    Args:
        words: the low word of every channel, whole blocks of 32 channels.
        added: what every channel adds to its sums.
    """
    tables = np.concatenate([each.reshape(-1, CHANNEL_BLOCK) for each in (words, added)], axis=-1)
    return tables.astype(np.int64).astype(np.uint32).view(np.int32).ravel()
