"""The packets of the matrix engine that compute a tile of a conv, and the HVX code that requantises its sums.

A row of tiles starts at its left end with sums of zero. One tile takes the packets of its own crouton, which came with
the tile before it, a store of what is complete, the packets of the crouton to the right, and a store of the rest
(`hexconv.kernel.croutons`). Each packet is a call; on the simulator a model performs it
(`run/simulator/harness/hmx.c`).

    for wo:
        if wo == 0: clear; multiply(crouton 0)
        store the columns of the sums from `last` on as output columns 0 .. 7 - last
        multiply(crouton wo + 1); store the columns before `last` as output columns 8 - last .. 7
        for 16 x 4 pixels: bytes of sums -> sums -> results

With `requantize.engine = "fast"` a store writes results themselves, by one bias table of the engine's converts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod

import numpy as np
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad

from hexconv.compute.requantised import converts
from hexconv.kernel import NestLayouts
from hexconv.kernel.engine import (
    CROUTON_BYTES,
    EXPONENTS,
    LINE_BYTES,
    RECTIFIED,
    TABLE_WORDS,
    TABLES_WORDS,
    TAP_BYTES,
    WHOLE,
    WHOLE_SCALE,
    TapPacket,
    TileRow,
    convert_tables,
    is_converted,
    kernel_copies,
    read_blocks,
    table_word,
    tables_words,
    tap_bytes,
)
from hexconv.kernel.engine_words import PREFIX
from hexconv.kernel.row_conv import RowConv, row_conv
from hexconv.kernel.tiles import VECTOR_BLOCKS
from hexconv.lower.conv_step import with_constants
from hexconv.lower.crouton_rows import FRINGE, READ, WRITE, CroutonRow, CroutonRows, Fringe
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.narrow_sums import Lanes, narrow
from hexconv.lower.hvx.parameters import Constants, offsets, scales, scales_of
from hexconv.lower.hvx.stores import BLOCK_PIXELS, as_codes
from hexconv.lower.rows_of_pixels import TOUCH
from hexconv.lower.unfolded_rows import UnfoldedRows
from hexconv.lower.widened_filters import WIDENED, WidenedFilter
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.activations import TABLE
from hexconv.spec.capacities import SCOPE
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK
from hexconv.spec.names import numbered
from hexconv.spec.vectors import CODES, CONVERTS, OF_CHANNELS, Array, in_lookup_order, in_whole_blocks
from hexconv.tir import marks
from hexconv.tir.statements import Block, Number, int32
from hexconv.tir.trees import steps_of

Interleaving = Callable[[tirx.Expr, tirx.Expr], tirx.Expr]
SUMS, RESULTS = "hexconv_engine_sums", "hexconv_engine_results"
ZERO = int32(0)
COLUMN_BIT, ROW_BIT = 5, 8
"""Where the last column and the last row of the taps stand in the address of the activations."""
PLANE_WORDS = CROUTON_BYTES // 4


@dataclass(frozen=True)
class EngineSums:
    """One tile of sums, 8 by 8 pixels of 32 channels: their bytes, in four planes.

    Attributes:
        number: the number of the conv, from 1.
        source: the first crouton of the row of tiles that it reads.
        below: the two croutons below that: taps may lie in two slabs.
        weights: the first weight of its 32 channels.
        sums: where its sums begin; None where they stay in the engine, which converts them.
        tile: its number in the row of tiles.
        block: its block of 32 output channels.
        target: where its results begin, where the engine makes them; else None.
    """

    number: int
    source: TensorLoad
    below: tuple[TensorLoad, TensorLoad]
    weights: TensorLoad
    sums: TensorLoad | None
    tile: tirx.Expr
    block: tirx.Expr
    target: TensorLoad | None


@dataclass(frozen=True)
class EngineResults:
    """The results of one tile.

    Attributes:
        number: the number of the conv, from 1.
        sums: where its sums begin, in four planes; None where the results are there already.
        target: where its results begin.
        block: its block of 32 output channels.
    """

    number: int
    sums: TensorLoad | None
    target: TensorLoad
    block: tirx.Expr


@dataclass(frozen=True)
class MultipliedRow:
    """Croutons of a row of tiles that a conv multiplies.

    Attributes:
        at: the tile.
        source: the tensor that is read.
        copies: how many kernels there are for a block of inputs.
        taps: the taps of a kernel.
        tap_bytes: the weights of one.
        reads_below: whether a packet reads the crouton below.
    """

    at: EngineSums
    source: Extents
    copies: int
    taps: int
    tap_bytes: int
    reads_below: bool

    def emit(self, block: Block, tile: Number, packets: Sequence[TapPacket], channel_blocks: int) -> None:
        """Emit the packets of a crouton, in all blocks of its channels; weights across a line go tap by tap."""

        def one(to: Block, channels: tirx.Expr) -> None:
            for copy, each in product(range(self.copies), packets):
                kernel = self.at.weights.indices[0] + (channels * self.copies + copy) * (self.taps * self.tap_bytes)
                if not self._may_cross(each):
                    self._call(to, each, tile, channels, kernel)
                    continue

                def some(to: Block, packets: Sequence[TapPacket], kernel: tirx.Expr = kernel) -> None:
                    for packet in packets:
                        self._call(to, packet, tile, channels, kernel)

                in_line = tirx.bitwise_and(kernel + each.first * TAP_BYTES, int32(LINE_BYTES - 1))
                is_cut = in_line + each.taps * TAP_BYTES > LINE_BYTES
                to.when(is_cut, partial(some, packets=each.one_by_one))
                to.when(tirx.Not(is_cut), partial(some, packets=[each]))

        block.loop("rc_outer", channel_blocks, one)

    def _may_cross(self, packet: TapPacket) -> bool:
        """Whether a line of VTCM ends inside of the packet's weights of any of the kernels in the cache."""
        size, kernel_bytes = prod(map(int, self.at.weights.source.shape)), self.taps * self.tap_bytes
        return size > LINE_BYTES and bool(packet.crosses(np.arange(0, size, kernel_bytes)).any())

    def _call(self, block: Block, packet: TapPacket, tile: Number, channels: tirx.Expr, kernel: tirx.Expr) -> None:
        slabs = [each.indices[0] for each in (self.at.source, *self.at.below)]
        source = slabs[packet.slab]
        column = tile + self.source.images.index(packet.image) * self.source.phase_columns
        crouton = source + (column * self.source.channel_blocks + channels) * CROUTON_BYTES
        tap = int32(packet.column << COLUMN_BIT | packet.row << ROW_BIT)
        # The range of the packet lies in the low bits of the distance: fewer channels make it less.
        left_out = (TAP_BYTES - self.tap_bytes) // CHANNEL_BLOCK
        below = slabs[packet.slab + 1] - source - left_out if self.reads_below else int32(-left_out)
        weights = _pointer(self.at.weights, kernel + packet.first * self.tap_bytes)
        operands = _pointer(self.at.source, crouton), tap, below, weights
        _call(block, packet.name, *operands, int32(packet.taps * self.tap_bytes - 1))


@dataclass(frozen=True)
class EngineConv:
    """A conv of the matrix engine.

    Attributes:
        conv: the conv.
        tables: the argument with its bias tables.
        scales: the per-channel values of its requantisation, if there are any.
        converts: VTCM for the tables of one block of channels.
        has_low_words: whether their low words lie there from the beginning on: those of four exponents never change.
        table: the argument that results are looked up in, if there is one.
    """

    conv: RowConv
    tables: tirx.Buffer
    scales: Constants | None
    converts: tirx.Buffer
    has_low_words: bool
    table: tirx.Buffer | None

    @classmethod
    def of(cls, conv: RowConv, converts: tirx.Buffer, has_low_words: bool) -> "EngineConv":
        """Declare the arguments of a conv."""
        words, name = conv.out_blocks * tables_words(conv.spec), numbered(CONVERTS, conv.number)
        tables = tirx.decl_buffer((words,), "int32", name, data_alignment=instructions.BYTES)
        scales = None if is_converted(conv.spec) else scales_of(conv, "global")
        known = (CODES,), conv.chain.dtype, numbered(TABLE, conv.number)
        codes = tirx.decl_buffer(*known, data_alignment=instructions.BYTES) if conv.has_table else None
        return cls(conv, tables, scales, converts, has_low_words, codes)

    @property
    def constants(self) -> list[tirx.Buffer]:
        """The arguments that it has in the place of its bias, multipliers and shifts."""
        return [self.tables, *([self.scales.argument] if self.scales else [])]

    def emit_sums(self, at: EngineSums) -> tirx.Stmt:
        """Emit the packets of a tile of sums."""
        block, target = Block(), self._extents[1]
        rows = TileRow.rows_of(self.conv.chain, self.conv.index, *self._extents)
        for number, row in enumerate(rows):
            tile = at.tile - number * target.phase_columns

            def emit(to: Block, tile: tirx.Expr = tile, row: TileRow = row) -> None:
                self._emit_row(to, at, tile, row)

            if target.phases == WHOLE:
                emit(block)
            else:
                block.when(tirx.all(tile >= 0, tile < target.phase_columns), emit)
        return block.statement()

    @property
    def _extents(self) -> tuple[Extents, Extents]:
        """The tensor that it reads, and that which it makes."""
        source, target = tensor_extents(self.conv.chain)[self.conv.number - 1 :][:2]
        return source, target

    def _emit_row(self, block: Block, at: EngineSums, at_tile: tirx.Expr, of_row: TileRow) -> None:
        """Emit the packets of a tile of sums, the tile `at_tile` of a row of its phase image."""
        conv, of, packets = self.conv.spec, self._extents[0], of_row.packets()
        beyond, tiles, end = of_row.packets(is_beyond=True), of_row.tiles, of_row.end
        last_row = max(each.row for each in packets)

        def multiply(to: Block, tile: Number, packets: Sequence[TapPacket] = packets) -> None:
            known = self.conv.chain, self.conv.index
            row = MultipliedRow(at, of, kernel_copies(*known), prod(conv.kernel), tap_bytes(*known), last_row > 0)
            row.emit(to, tile, packets, read_blocks(*known))

        def begin(to: Block) -> None:
            _call(to, "clear")
            self._stage_tables(to, at.block)
            if at.sums is None:
                _call(to, "bias", self._table)
            multiply(to, ZERO)

        def read_next(to: Block) -> None:
            if tiles < of_row.croutons:
                to.when(at_tile + 1 < tiles, lambda inner: multiply(inner, at_tile + 1))
                to.when(at_tile + 1 >= tiles, lambda inner: multiply(inner, at_tile + 1, beyond))
            else:
                multiply(to, at_tile + 1)
            if not of_row.spills_last:
                store_rest(to)

        def store_rest(to: Block) -> None:
            self._store(to, at, COLUMN_BLOCK - end, "_after", retains=True)

        block.when(at_tile == 0, begin)
        if end:
            self._store(block, at, COLUMN_BLOCK - end, "_before", retains=False)
            block.when(at_tile + 1 < of_row.croutons, read_next)
            if of_row.spills_last:
                store_rest(block)
        else:
            block.when(at_tile > 0, lambda to: multiply(to, at_tile))
            self._store(block, at, 0, "_after", retains=False)

    def _stage_tables(self, block: Block, number: tirx.Expr) -> None:
        """Write the tables of a block of channels to VTCM: a copy, or those of four exponents, which add the same."""
        size = tables_words(self.conv.spec)
        if not is_converted(self.conv.spec):
            added = instructions.moved(tirx.BufferLoad(self.tables, [tirx.Ramp(number * size, 1, size)]))
            added = block.bind("added", added, instructions.VECTOR)
            for begin in range(CHANNEL_BLOCK, TABLES_WORDS, TABLE_WORDS):
                block.store(self.converts, tirx.Ramp(begin, 1, CHANNEL_BLOCK), added)
            if not self.has_low_words:
                _store_low_words(block, self.converts)
            return

        def vector(at: Block, place: tirx.Expr) -> None:
            words = tirx.Ramp(number * size + place * instructions.WORDS, 1, instructions.WORDS)
            to = tirx.Ramp(place * instructions.WORDS, 1, instructions.WORDS)
            at.store(self.converts, to, instructions.moved(tirx.BufferLoad(self.tables, [words])))

        block.loop("vector", size // instructions.WORDS, vector)

    @property
    def _table(self) -> tirx.Expr:
        """Where the first table of the staged block of channels begins."""
        return tirx.address_of(tirx.BufferLoad(self.converts, [ZERO]))

    def _store(self, block: Block, at: EngineSums, split: int, side: str, retains: bool) -> None:
        """Store results, or all bytes of the sums, on one side of a column; the last store drops the sums, or not."""
        column, kept = int32(split << COLUMN_BIT), "_retain" if retains else ""
        if at.target is not None:
            _call(block, f"store{side}{kept}_sat", _pointer(at.target, at.target.indices[0]), column)
        if at.sums is not None:
            _call(block, f"store_bytes{side}{kept}", _pointer(at.sums, at.sums.indices[0]), column, self._table)

    def emit_results(self, at: EngineResults) -> tirx.Stmt:
        """Emit HVX code that puts the bytes of sums together, narrows them, and stores four pixels at a time."""
        block, how, sums = Block(), self.conv.narrowing, at.sums
        if sums is None:
            return self._emit_clamp(at)
        assert how
        lanes = _in_fours(block, self.scales.lanes(block, at.block * CHANNEL_BLOCK)) if self.scales else []

        def four_pixels(inner: Block, number: tirx.Expr) -> None:
            words = [sums.indices[0] + place * PLANE_WORDS + number * instructions.WORDS for place in range(4)]
            bytes_ = [tirx.BufferLoad(sums.source, [tirx.Ramp(word, 1, instructions.WORDS)]) for word in words]
            bytes_ = [inner.bind("plane", load, instructions.VECTOR) for load in bytes_]
            narrowed = instructions.clamped_bytes(narrow(inner, _whole(inner, bytes_), how, lanes), *self.conv.codes)
            place = tirx.Ramp(at.target.indices[0] + number * instructions.BYTES, 1, instructions.BYTES)
            inner.store(at.target.source, place, self._codes(inner, narrowed))

        block.loop("pixels", BLOCK_PIXELS // VECTOR_BLOCKS, four_pixels)
        return block.statement()

    def _codes(self, block: Block, results: tirx.Expr) -> tirx.Expr:
        """Return uint8 results as the codes that it stores, elements of its dtype."""
        bytes_ = results if self.table is None else block.bind("bytes", results, instructions.VECTOR)
        codes = as_codes(block, self.conv, self.table, bytes_)
        return tirx.reinterpret(f"{self.conv.chain.dtype}x{instructions.BYTES}", codes)

    def _emit_clamp(self, at: EngineResults) -> tirx.Stmt:
        """Hold results between two codes where the convert doesn't, and look them up where the conv has a table."""
        block, codes = Block(), _codes_behind(self.conv)

        def vector(inner: Block, number: tirx.Expr) -> None:
            place = tirx.Ramp(at.target.indices[0] + number * instructions.BYTES, 1, instructions.BYTES)
            load = tirx.reinterpret(instructions.VECTOR, tirx.BufferLoad(at.target.source, [place]))
            found = inner.bind("codes", load, instructions.VECTOR)
            inner.store(at.target.source, place, self._codes(inner, instructions.clamped_bytes(found, *codes)))

        if codes == BYTES and self.table is None and self.conv.makes_unsigned:
            return tirx.Evaluate(ZERO)
        block.loop("vector", CROUTON_BYTES // instructions.BYTES, vector)
        return block.statement()


BYTES = (0, 255)


def _codes_behind(conv: RowConv) -> tuple[int, int]:
    """The codes between which HVX holds what a convert makes: the convert itself can hold it above the zero point."""
    least, most = conv.codes
    return (0 if _is_rectified(conv) else least), most


def _is_rectified(conv: RowConv) -> bool:
    """Whether codes begin with the zero point, as behind a relu."""
    assert conv.spec.requantize
    zero_point = conv.spec.requantize.zero_point - INTEGER_RANGE[conv.chain.dtype][0]
    return conv.codes[0] == zero_point > 0


def _whole(block: Block, planes: Sequence[tirx.Expr]) -> list[tirx.Expr]:
    """Put bytes 0 to 3 of 128 sums together: word i of vector k is sum 4i + k, whose byte narrowing puts in its place.

    Every instruction may take any of HVX's units: those that multiply are busy in most packets.
    """
    of_bytes = instructions.interleaved_low_bytes, instructions.interleaved_high_bytes
    of_halves = instructions.interleaved_low_halfwords, instructions.interleaved_high_halfwords
    low, high = (_each(block, "halves", of_bytes, *planes[place : place + 2]) for place in (0, 2))
    even, odd = (_each(block, "sums", of_halves, *pair) for pair in zip(low, high, strict=True))
    return [even[0], odd[0], even[1], odd[1]]


def _each(block: Block, name: str, ways: Sequence[Interleaving], low: tirx.Expr, high: tirx.Expr) -> list[tirx.Expr]:
    return [block.bind(name, way(high, low), instructions.VECTOR) for way in ways]


def _in_fours(block: Block, lanes: Lanes) -> list[Lanes]:
    """Give the words of `_whole` the values of their channels: word i of vector k is of channel 4i + k modulo 32."""

    def dealt(value: tirx.Expr) -> list[tirx.Expr]:
        pair = block.bind("both", instructions.deal_words(value, value), instructions.PAIR)
        return [
            block.bind("lanes", half(pair), instructions.VECTOR) for half in (instructions.lower, instructions.upper)
        ]

    fours = {name: [four for half in dealt(value) for four in dealt(half)] for name, value in lanes.items()}
    return [{name: values[place] for name, values in fours.items()} for place in (0, 2, 1, 3)]


def _pointer(like: TensorLoad, index: Number) -> tirx.Expr:
    return tirx.address_of(tirx.BufferLoad(like.source, [index]))


def _call(block: Block, name: str, *operands: tirx.Expr) -> None:
    block.run(tirx.call_extern("int32", f"{PREFIX}{name}", *operands))


def _store_low_words(block: Block, converts: tirx.Buffer) -> None:
    """Store the low words of the tables of four exponents."""
    for place, exponent in enumerate(EXPONENTS):
        word = instructions.signed(table_word(exponent, WHOLE_SCALE))
        block.store(converts, tirx.Ramp(place * TABLE_WORDS, 1, CHANNEL_BLOCK), instructions.splat(word))


def emit_tiles(main: tirx.PrimFunc, convs: Sequence[RowConv]) -> tirx.PrimFunc:
    """Emit what every mark stands for (flat buffers, caches that share memory)."""
    converts = tirx.decl_buffer((TABLES_WORDS,), "int32", CONVERTS, scope=SCOPE, data_alignment=instructions.BYTES)
    has_low_words, ahead = not any(is_converted(conv.spec) for conv in convs), Block()
    ahead.allocate(converts)
    if has_low_words:
        _store_low_words(ahead, converts)
    made = {conv.number: EngineConv.of(conv, converts, has_low_words) for conv in convs}
    ends, dtype = tensor_extents(convs[0].chain), convs[0].chain.dtype

    def emitted(statement: tirx.Evaluate) -> tirx.Stmt:
        if sums := marks.read(SUMS, EngineSums, statement):
            return made[sums.number].emit_sums(sums)
        if results := marks.read(RESULTS, EngineResults, statement):
            return made[results.number].emit_results(results)
        if fringe := marks.read(FRINGE, Fringe, statement):
            return fringe.emit()
        if row := marks.read(READ, CroutonRow, statement):
            by = ends[0].unfolded
            reader = UnfoldedRows(ends[0], by, dtype) if by else CroutonRows(ends[0], dtype)
            return reader.emit_read(row)
        if widened := marks.read(WIDENED, WidenedFilter, statement):
            return widened.emit()
        if row := marks.read(WRITE, CroutonRow, statement):
            return CroutonRows(ends[-1], dtype).emit_write(row)
        return statement

    def touched(store: tirx.BufferStore) -> tirx.Stmt:
        return tirx.Evaluate(ZERO) if marks.is_named(store.value, TOUCH) else store

    body = tvm_ffi.structural_map(main.body, (tirx.BufferStore, touched))
    body = tvm_ffi.structural_map(body, (tirx.Evaluate, emitted))
    body = tirx.SeqStmt([*steps_of(ahead.statement()), *steps_of(body)])
    own = {conv.table.name: conv.table for conv in made.values() if conv.table is not None}
    arguments = with_constants(main, [conv.constants for conv in made.values()])
    arguments = [own.get(argument.name, argument) for argument in arguments]
    # Not a schedule any more, in which TVM would cut caches to what code other than the packets' reads and writes.
    return tirx.PrimFunc(arguments, body, attrs=main.attrs).without_attr("s_tir")


def engine_constants(
    chain: Chain, index: int, layouts: NestLayouts, plan: Plan, given: Mapping[str, Array]
) -> dict[str, Array]:
    """Lay out the constants of conv `index` (from 0) of a chain, from what it is given, by argument."""
    conv = row_conv(chain, index, layouts, plan, "hmx")
    name = numbered(TABLE, conv.number)
    table = {name: in_lookup_order(given[name])} if conv.has_table else {}
    if is_converted(conv.spec):
        return {**table, numbered(CONVERTS, conv.number): _convert_tables(conv, given)}
    names = [numbered(what, conv.number) for what in OF_CHANNELS if what != "bias"]
    whole = {name: in_whole_blocks(given[name]) for name in names if name in given}
    return {
        **table,
        numbered(CONVERTS, conv.number): offsets(conv, given),
        **scales(conv, {**given, **whole}),
    }


def _convert_tables(conv: RowConv, given: Mapping[str, Array]) -> Array:
    """Lay out the tables by which the engine makes results of sums, for all channels of a conv."""
    how, number = conv.spec.requantize, conv.number
    assert how
    by = converts(how, conv.chain.dtype, {what: given[numbered(what, number)] for what in how.vectors})
    low = table_word(by.exponent, by.scale, by.offset, RECTIFIED if _is_rectified(conv) else 0)
    words, added = np.zeros((2, conv.out_blocks * CHANNEL_BLOCK), np.int64)
    words[: conv.spec.out_channels], added[: conv.spec.out_channels] = low, by.added
    return convert_tables(words, added + offsets(conv, given))


def engine_convs(chain: Chain, layouts: NestLayouts, plan: Plan) -> tuple[RowConv, ...]:
    """Return the convs of a chain that the matrix engine computes, with the groups that HVX has none of."""
    convs = (row_conv(chain, index, layouts, plan, "hmx") for index in range(len(chain.conv)))
    return tuple(replace(conv, chain=chain) for conv in convs)
