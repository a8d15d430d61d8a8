"""Emit one step of a conv without HVX: row by row, pixel by pixel, some channels at a time.

offsets of the step's channels, where they come for the first time
    for y, x: sum of the window, if the filter has a zero point
              for some channels: sums, then elements of the target

Products are summed one by one, or a word of 4 input channels at a time. The layouts of the nest say where an element
lies; `hexconv.compute` says in TE how a sum becomes an element.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx

from hexconv.compute.stored import Position
from hexconv.compute.te import Filter, centred, finished, first_channel
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.scalar import SCALAR_LANES, WORD_LANES, scalar_channels
from hexconv.kernel.tiles import WORD_CHANNELS
from hexconv.lower.conv_step import ConvStep, StepOperands, each_row
from hexconv.lower.scalar_operands import Arguments, FlatCache, ScalarInner, scalar_inner
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.tir.statements import Block, int32, scalar_register

Sums = Sequence[tirx.Buffer]
Total = Callable[[int], tirx.Expr]
"""The sum of a lane, int32, or int64 where sums saturate later."""
Tap = Callable[[Block, tirx.Expr, tirx.Expr, tirx.Expr], None]
"""What is emitted for a tap: row of the source's cache, row and column of the filter."""
PAIRS = SCALAR_LANES // WORD_LANES
"""The registers of sums of words, each of which holds two."""


@dataclass(frozen=True)
class Pixel:
    """A pixel of the output, of which some channels are computed.

    Attributes:
        inner: the conv.
        operands: what its step multiplies.
        y: the row, counted from the step's slab.
        x: the stored column.
        ahead: the first channel of the source that the filter has for the channels that are computed, counted from that
            of the step's first channel.
    """

    inner: ScalarInner
    operands: StepOperands
    y: tirx.Expr
    x: tirx.Expr
    ahead: tirx.Expr | int = 0

    def each_tap(self, block: Block, tap: Tap) -> None:
        """Loop over the taps of a window."""
        rows, columns = self.inner.conv.spec.kernel

        def row(at: Block, rh: tirx.Expr) -> None:
            source = at.bind("row", self.inner.source_row(self.operands, self.y, rh))
            at.loop("rw", columns, lambda inner, rw: tap(inner, source, rh, rw))

        block.loop("rh", rows, row)


def registers(block: Block, inner: ScalarInner) -> Sums:
    """Allocate the sums of some channels apart from each other: LLVM would make a vector of sums side by side."""
    count, dtype = (PAIRS, "int64") if inner.form.sums_words else (SCALAR_LANES, inner.sum_dtype)
    return [block.allocate(scalar_register(f"sum{number}", dtype)) for number in range(count)]


def sum_products(block: Block, pixel: Pixel, sums: Sums, channel: tirx.Expr) -> Total:
    """Sum the products of the channels from `channel` on, counted from the step's first channel."""
    inner, source = pixel.inner, pixel.inner.source_cache(pixel.operands)
    filter = pixel.inner.filter_cache(pixel.operands)

    def value(row: tirx.Expr, rw: tirx.Expr, of: Any, lane: int = 0) -> tirx.Expr:
        at = Position(0, row, inner.source_column(pixel.x, rw), of)
        element = inner.source.element_at(source.behind(lane), at)  # pyright: ignore[reportArgumentType]
        return centred(element, inner.conv.in_zero, "int32")

    def weight(lane: int, of: Any, rh: tirx.Expr, rw: tirx.Expr) -> tirx.Expr:
        cache = filter.behind(lane * WORD_CHANNELS)
        stored = Filter(cache, inner.conv.filter[0], inner.form.inputs, 0)  # pyright: ignore[reportArgumentType]
        element = stored.element_at(channel, of, rh, rw)
        return centred(element, inner.conv.filter_zero, "int32")

    def product(of_source: tirx.Expr, of_filter: tirx.Expr) -> tirx.Expr:
        return (of_source * of_filter).astype(inner.sum_dtype)  # a product of int16 fits int32

    def of_all_channels(block: Block, row: tirx.Expr, rh: tirx.Expr, rw: tirx.Expr) -> None:
        def one(at: Block, of: tirx.Expr) -> None:
            shared = at.bind("value", value(row, rw, pixel.ahead + of))
            for lane in range(SCALAR_LANES):
                _add(at, sums[lane], product(shared, weight(lane, of, rh, rw)))

        block.loop("rc", inner.form.inputs, one)

    def of_own_group(block: Block, row: tirx.Expr, rh: tirx.Expr, rw: tirx.Expr) -> None:
        def one(at: Block, of: tirx.Expr) -> None:
            for lane in range(SCALAR_LANES):
                # The first of some lanes is the first one of a group, and so is the first one of the lane's group.
                first = lane // inner.form.inputs * inner.form.inputs
                _add(at, sums[lane], product(value(row, rw, channel + of, first), weight(lane, of, rh, rw)))

        block.loop("rc", inner.form.inputs, one)

    _clear(block, sums, inner.sum_dtype)
    pixel.each_tap(block, of_own_group if inner.form.has_own_inputs else of_all_channels)
    return lambda lane: got(sums[lane])


def _clear(block: Block, sums: Sums, dtype: str) -> None:
    for register in sums:
        put(block, register, tirx.const(0, dtype))


def _add(block: Block, register: tirx.Buffer, product: tirx.Expr) -> None:
    put(block, register, got(register) + product)


def put(block: Block, register: tirx.Buffer, value: tirx.Expr) -> None:
    """Store a value in a register."""
    block.store(register, int32(0), value)


def got(register: tirx.Buffer) -> tirx.Expr:
    """Load what a register holds."""
    return tirx.BufferLoad(register, [int32(0)])


PAIR_BYTES = WORD_CHANNELS * WORD_LANES
ONES = 0x0101010101010101


def sum_words(block: Block, pixel: Pixel, sums: Sums, channel: tirx.Expr, offset: Callable[[int], tirx.Expr]) -> Total:
    """Sum word by word, as `sum_products` does element by element; add `offset` (int64) to the sum of each lane."""
    inner, filter = pixel.inner, pixel.inner.filter_cache(pixel.operands)

    def tap(block: Block, row: tirx.Expr, rh: tirx.Expr, rw: tirx.Expr) -> None:
        def word(at: Block, of: tirx.Expr) -> None:
            values = at.bind("values", _source_word(at, pixel, row, rw, of), "int64")
            for pair in range(PAIRS):
                weights = _filter_word(inner, filter, channel, pair, of, rh, rw)
                _accumulate(at, sums[pair], _multiplied(inner.conv.is_signed), values, weights)

        _each_word(block, inner, word)

    for pair in range(PAIRS):
        put(block, sums[pair], tirx.const(0, "int64"))
    pixel.each_tap(block, tap)

    def total(lane: int) -> tirx.Expr:
        return (_lane(got(sums[lane // WORD_LANES]), lane) + offset(lane)).astype("int32")

    return total


def window_sum(block: Block, pixel: Pixel) -> tirx.Expr:
    """Sum all source elements under a pixel's window, as int64."""
    inner = pixel.inner
    window = block.allocate(scalar_register("window", "int64"))
    put(block, window, tirx.const(0, "int64"))

    def tap(at: Block, row: tirx.Expr, _rh: tirx.Expr, rw: tirx.Expr) -> None:
        def word(block: Block, of: tirx.Expr) -> None:
            _accumulate(
                block, window, _multiplied(inner.conv.is_signed), _source_word(block, pixel, row, rw, of), _ones()
            )

        _each_word(at, inner, word)

    pixel.each_tap(block, tap)
    return block.bind("window_sum", _lane(got(window), 0), "int64")


def stage_offsets(block: Block, inner: ScalarInner, operands: StepOperands, first: tirx.Expr, groups: Any) -> None:
    """Store the offsets that the source's zero point makes for a step's channels; `first` is the first logical one."""
    offsets, filter = inner.offsets, inner.filter_cache(operands)
    assert offsets is not None, "only a zero point makes offsets"
    rows, columns = inner.conv.spec.kernel
    of_zeros = inner.conv.in_zero * inner.conv.filter_zero * rows * columns * words_of(inner) * WORD_CHANNELS
    sums = registers(block, inner)

    def group(block: Block, index: tirx.Expr) -> None:
        channel = index * SCALAR_LANES
        for pair in range(PAIRS):
            put(block, sums[pair], tirx.const(0, "int64"))

        def word(at: Block, of: tirx.Expr, rh: tirx.Expr, rw: tirx.Expr) -> None:
            for pair in range(PAIRS):
                weights = _filter_word(inner, filter, channel, pair, of, rh, rw)
                _accumulate(at, sums[pair], _multiplied(False), weights, _ones())

        block.loop(
            "rh",
            rows,
            lambda at, rh: at.loop(
                "rw", columns, lambda tap, rw: _each_word(tap, inner, lambda some, of: word(some, of, rh, rw))
            ),
        )
        for lane in range(SCALAR_LANES):
            total = _lane(got(sums[lane // WORD_LANES]), lane)
            value = tirx.const(_wrapped(of_zeros), "int64") - total * tirx.const(inner.conv.in_zero, "int64")
            block.store(offsets, first + channel + lane, value.astype("int32"))

    block.loop("group", groups, group)


def _wrapped(value: int) -> int:
    """Return the int32 that an integer is modulo 2**32; TVM refuses a wider one where it narrows what is around it."""
    return (value + 2**31) % 2**32 - 2**31


def words_of(inner: ScalarInner) -> int:
    """Count the words of a pixel, those of its last plane that hold no logical channel included."""
    planes, channels = _planes(inner)
    return planes * channels // WORD_CHANNELS


def _planes(inner: ScalarInner) -> tuple[int, int]:
    """Count the planes of channels that are multiplied, which don't lie side by side, and the channels of each."""
    extents = {output.name: output.extent for output in inner.source.layout.outputs}
    inside = next((extent for name, extent in extents.items() if name.endswith("c")), None)
    if inside is None:
        return 1, extents["C"]
    return inner.form.diagonal.width if inner.form.diagonal else extents["C"], inside


def _each_word(block: Block, inner: ScalarInner, word: Callable[[Block, tirx.Expr], None]) -> None:
    """Loop over the words of a pixel; `word` gets the first channel of each."""
    planes, channels = _planes(inner)

    def plane(at: Block, index: tirx.Expr) -> None:
        words = channels // WORD_CHANNELS
        at.loop("word", words, lambda inside, number: word(inside, index * channels + number * WORD_CHANNELS))

    block.loop("plane", planes, plane)


def _source_word(block: Block, pixel: Pixel, row: tirx.Expr, rw: tirx.Expr, channel: tirx.Expr) -> tirx.Expr:
    """Load 4 channels of a pixel, twice in one doubleword, for two output channels."""
    inner, cache = pixel.inner, pixel.inner.source_cache(pixel.operands)
    at = Position(0, row, inner.source_column(pixel.x, rw), pixel.ahead + channel)
    loaded = _loaded(cache.buffer, cache.place(at.packed(inner.source.layout)), WORD_CHANNELS, "int32")
    word = block.bind("word", loaded)
    return tirx.call_llvm_pure_intrin("int64", "llvm.hexagon.A2.combinew", word, word)


def _filter_word(
    inner: ScalarInner, cache: FlatCache, output: Any, pair: int, channel: Any, rh: Any, rw: Any
) -> tirx.Expr:
    """Load the weights of 4 input channels for pair `pair` of output channels, counted from `output` on."""
    place = cache.place(inner.conv.filter[0].physical_index(o=output, i=channel, h=rh, w=rw))
    return _loaded(cache.buffer, place + pair * PAIR_BYTES, PAIR_BYTES, "int64")


def _loaded(buffer: tirx.Var, place: tirx.Expr, elements: int, dtype: str) -> tirx.Expr:
    return tirx.reinterpret(dtype, tirx.BufferLoad(buffer, [tirx.Ramp(place, 1, elements)]))


def _multiplied(is_signed: bool) -> str:
    """Name the instruction that multiplies 8 bytes, signed or not, by unsigned bytes, and adds to two words."""
    return "llvm.hexagon.M5.vrmacbsu" if is_signed else "llvm.hexagon.M5.vrmacbuu"


def _accumulate(block: Block, pair: tirx.Buffer, instruction: str, values: tirx.Expr, weights: tirx.Expr) -> None:
    """Add 4 products to each of two sums."""
    put(block, pair, tirx.call_llvm_pure_intrin("int64", instruction, got(pair), values, weights))


def _ones() -> tirx.Expr:
    return tirx.const(ONES, "int64")


def _lane(pair: tirx.Expr, lane: int) -> tirx.Expr:
    """Return one of two words, as int64."""
    high = pair >> tirx.const(32, "int64")
    return high if lane % WORD_LANES else pair.astype("int32").astype("int64")


@dataclass(frozen=True)
class ScalarConv:
    """One conv of a nest of rows, computed by scalar code."""

    inner: ScalarInner

    @property
    def memory(self) -> list[tirx.Buffer]:
        """The scratch buffers that the code needs beside the caches of the nest."""
        return [] if self.inner.offsets is None else [self.inner.offsets]

    @property
    def constants(self) -> None:
        """Return None: it reads its bias, multipliers and shifts as they are."""

    def emit(self, step: ConvStep) -> tirx.Stmt:
        """Emit the statements of one step."""
        block, inner = Block(), self.inner
        channels = _channels(block, inner, step)
        operands = step.operands
        if operands and inner.offsets is not None:
            first, groups = step.block * CHANNEL_BLOCK, channels.groups
            block.when(step.is_first, lambda at: stage_offsets(at, inner, operands, first, groups))
        each_row(
            block,
            step,
            inner.target.extents,
            inner.conv.made_as,
            lambda at, y: _fill(at, channels, y, (0, inner.columns), 0),
            lambda at, first, count: _rows(at, channels, first, count),
        )
        return block.statement()


def scalar_conv(conv: RowConv, arguments: Arguments) -> ScalarConv:
    """Prepare a conv for scalar code."""
    return ScalarConv(scalar_inner(conv, arguments))


@dataclass(frozen=True)
class _Channels:
    """The channels of a step.

    Attributes:
        inner: the conv.
        step: the step, with its rows and the places of its operands and results.
        there: the number of channels in its blocks, those past the last logical one included.
        groups: the number of groups of lanes that have a logical channel.
    """

    inner: ScalarInner
    step: ConvStep
    there: Any
    groups: Any


def _channels(block: Block, inner: ScalarInner, step: ConvStep) -> _Channels:
    """Count the channels of a step; the last step of a conv may have fewer than the others."""
    most, lanes = step.most_blocks * inner.conv.makes.unit, scalar_channels(inner.conv.spec.out_channels)
    if most >= inner.channels:
        return _Channels(inner, step, inner.channels, lanes // SCALAR_LANES)
    first = step.block * CHANNEL_BLOCK
    there = block.bind("there", tirx.min(most, inner.channels - first))
    groups = block.bind("groups", tirx.floordiv(tirx.min(most, lanes - first), SCALAR_LANES))
    return _Channels(inner, step, there, groups)


def _rows(block: Block, channels: _Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit some rows with elements."""
    block.loop("y", count, lambda at, index: _row(at, channels, at.bind("y", index + first)))


def _row(block: Block, channels: _Channels, y: tirx.Expr) -> None:
    """Emit one row with elements."""
    inner, operands = channels.inner, channels.step.operands
    assert operands, "a step that makes nothing but padding has no such row"
    first, end = inner.target.extents.valid_columns
    sums = registers(block, inner)

    def column(at: Block, index: tirx.Expr) -> None:
        pixel = Pixel(inner, operands, y, at.bind("x", index + first))
        window = window_sum(at, pixel) if inner.sums_windows and not inner.form.diagonal else None
        at.loop("group", channels.groups, lambda some, group: _lanes(some, channels, pixel, sums, window, group))

    _fill(block, channels, y, (0, first), 0)
    block.loop("x", end - first, column)
    if scalar_channels(inner.conv.spec.out_channels) < inner.channels:
        _fill(block, channels, y, (first, end), channels.groups * SCALAR_LANES)
    _fill(block, channels, y, (end, inner.columns), 0)


def _lanes(
    block: Block, channels: _Channels, pixel: Pixel, sums: Sums, window: tirx.Expr | None, group: tirx.Expr
) -> None:
    """Emit some channels of a pixel, one a lane."""
    inner, channel = pixel.inner, group * SCALAR_LANES
    if inner.form.diagonal:
        output = channels.step.block * CHANNEL_BLOCK
        ahead = first_channel(inner.form.diagonal, output + channel) - first_channel(inner.form.diagonal, output)
        pixel = replace(pixel, ahead=block.bind("ahead", ahead))
        window = window_sum(block, pixel) if inner.sums_windows else None

    def offset(lane: int) -> tirx.Expr:
        of_window = tirx.const(0, "int64") if window is None else window * tirx.const(-inner.conv.filter_zero, "int64")
        if inner.offsets is None:
            return of_window
        place = channels.step.block * CHANNEL_BLOCK + channel + lane
        return of_window + tirx.BufferLoad(inner.offsets, [place]).astype("int64")

    if inner.form.sums_words:
        total = sum_words(block, pixel, sums, channel, offset)
    else:
        total = sum_products(block, pixel, sums, channel)
    for lane in range(SCALAR_LANES):
        value = block.bind("result", _result(channels, total, channel, lane), inner.dtype)
        _store(block, channels, pixel.y, pixel.x, channel, value, lane)


def _result(channels: _Channels, total: Total, channel: tirx.Expr, lane: int) -> tirx.Expr:
    """Turn a sum into an element; lanes past the last channel hold the fringe."""
    inner = channels.inner
    at, last = channels.step.block * CHANNEL_BLOCK + channel + lane, inner.conv.spec.out_channels - 1
    is_ragged = last + 1 < scalar_channels(last + 1)
    there = tirx.min(at, int32(last)) if is_ragged else at  # a bias ends with the last channel
    value = finished(
        inner.conv.spec, total(lane), inner.sum_dtype, inner.operands, Position(0, 0, 0, there), inner.dtype
    )
    return tirx.Select(at <= last, value, tirx.const(inner.fringe, inner.dtype)) if is_ragged else value


def _fill(block: Block, channels: _Channels, y: tirx.Expr, columns: tuple[int, int], first: Any) -> None:
    """Fill some columns of a row, in the channels from `first` on, with the fringe."""
    fringe = tirx.const(channels.inner.fringe, channels.inner.dtype)

    def column(at: Block, index: tirx.Expr) -> None:
        x = at.bind("x", index + columns[0])
        at.loop(
            "channel", channels.there - first, lambda one, channel: _store(one, channels, y, x, channel + first, fringe)
        )

    block.loop("column", columns[1] - columns[0], column)


def _store(
    block: Block, channels: _Channels, y: tirx.Expr, x: tirx.Expr, channel: Any, value: tirx.Expr, lane: int = 0
) -> None:
    """Store an element of channel `channel` + `lane`: the channels of the lanes lie side by side."""
    inner, step = channels.inner, channels.step
    for position, place in inner.target_places(step, y, x, channel):
        block.store(step.target.buffer, place + lane, inner.target.as_stored(value, position))


__all__ = ["scalar_conv"]
