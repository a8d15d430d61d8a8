"""Emit one step of a conv with HVX: for tile of channels: for row: what the conv's form emits, or fringe.

Where a conv adds another tensor, its rows of codes become sums by the integer form of the sum:

    for row, block of channels, vector of pixels: load its codes and those of the other tensor; sum; store

The multipliers of a sum have 21 bits, in three limbs of 7: the sums of a limb, with what is carried from the one below,
are halfwords without a sign. Lanes that hold no element keep the fringe.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import ceil

from tvm import tirx

from hexconv.kernel import NestLayouts
from hexconv.kernel.addends import Addend
from hexconv.kernel.row_conv import RowConv, row_conv
from hexconv.lower.conv_step import ConvStep, each_row, in_ring
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.channel_rows import Channels, target_of
from hexconv.lower.hvx.parameters import Scratch, laid_out, scratch_of
from hexconv.lower.hvx.stores import Target, fill_row, store_vector
from hexconv.spec import Chain, Plan
from hexconv.spec.code_sums import LEAST_SHIFT, CodeSum, integer_form
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.vectors import Array
from hexconv.tir.statements import Block, Number, int32


def emit_step(conv: RowConv, scratch: Scratch, step: ConvStep) -> tirx.Stmt:
    """Emit the statements of one step."""
    block = Block()
    full = ceil(step.most_blocks * conv.units.together / CHANNEL_BLOCK)
    rest = conv.out_blocks % full or full
    is_ragged = conv.last_channels < CHANNEL_BLOCK
    if conv.out_blocks <= full or not (is_ragged or rest < full):
        _channels(block, conv, scratch, step, full if conv.out_blocks > full else conv.out_blocks, is_ragged)
        return block.statement()
    block.when(step.block + full < conv.out_blocks, lambda at: _channels(at, conv, scratch, step, full, False))
    block.when(step.block + full >= conv.out_blocks, lambda at: _channels(at, conv, scratch, step, rest, is_ragged))
    return block.statement()


def _channels(block: Block, conv: RowConv, scratch: Scratch, step: ConvStep, blocks: int, is_ragged: bool) -> None:
    """Emit all blocks of channels of a step, the blocks of one tile at a time."""
    if step.operands and scratch.staged:
        block.when(step.is_first, lambda at: _stage(at, scratch, step, blocks))
    full, rest = divmod(blocks, conv.tile_blocks)
    apart = 1 if is_ragged and not rest and full else 0  # the last tile differs from the others
    block.loop(
        "group",
        full - apart,
        lambda at, number: _tile_channels(at, conv, scratch, step, number * conv.tile_blocks, conv.tile_blocks, False),
    )
    if apart or rest:
        first = int32((full - apart) * conv.tile_blocks)
        _tile_channels(block, conv, scratch, step, first, rest or conv.tile_blocks, is_ragged)


def _tile_channels(
    block: Block, conv: RowConv, scratch: Scratch, step: ConvStep, first: tirx.Expr, blocks: int, is_ragged: bool
) -> None:
    """Emit all rows of a step, for the channels of one tile."""
    channels = Channels(conv, scratch, step, first, blocks, is_ragged)

    def padding(at: Block, row: tirx.Expr) -> None:
        fill_row(at, target_of(at, channels, row))

    def made(at: Block, first: tirx.Expr, count: tirx.Expr) -> None:
        import_module(f"{__package__}.{conv.form.code}").emit_rows(at, channels, first, count)
        if conv.spec.add:
            emit_added(at, channels, first, count)

    each_row(block, step, conv.target, conv.made_as, padding, made)


LIMB_BITS, LIMBS = 7, 3
PAIR = "int32x64"


def emit_added(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit the sums of `count` rows from row `first` of the step on, for the channels of a tile."""
    conv = channels.conv
    assert conv.adds
    addend = Addend(conv, conv.adds)
    form = integer_form(conv.chain.summed(conv.index))
    assert form

    def row(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", index + first)
        target = target_of(at, channels, y)
        source = channels.step.addend
        assert source
        base = at.bind("added_row", in_ring(source, source.first + y) * addend.row_bytes + source.origin)
        for part in range(0, channels.blocks, conv.units.blocks):
            for number in target.units(part) if conv.units.is_narrow else (0,):
                _emit_vectors(at, channels, target, addend, form, (part, number), base)

    block.loop("added", count, row)


def _emit_vectors(
    block: Block,
    channels: Channels,
    target: Target,
    addend: Addend,
    form: CodeSum,
    place: tuple[int, int],
    base: tirx.Expr,
) -> None:
    """Emit the sums of all columns of a row, for the channels of one vector of a pixel."""
    conv, (part, number), groups = channels.conv, place, addend.groups
    first, end = conv.target.valid_columns
    before = number * conv.units.together if conv.units.is_narrow else 0
    behind = sum(target.channels(part + more) for more in range(conv.units.blocks))
    logical = min(behind - before, addend.channels)
    channel = (channels.step.block + channels.first + part) * CHANNEL_BLOCK + before

    def one(at: Block, column: Number, there: Sequence[int]) -> None:
        element = target.unit(part, number, column) if conv.units.is_narrow else target.pixel(int32(part), column)
        element = at.bind("at", element)
        own = at.bind("own", _load(target.buffer, element), instructions.VECTOR)
        other = _addend(at, channels, addend, base, (column, channel), logical)
        made = summed(at, form, _from_zero(conv.makes_unsigned, own), _from_zero(_is_unsigned(addend), other))
        made = _from_zero(conv.makes_unsigned, made)
        exists = [255 if pixel in there and lane < logical else 0 for pixel, lane in _lanes(addend)]
        if not all(exists):
            mask = instructions.repeated(exists)
            made = tirx.bitwise_or(
                tirx.bitwise_and(made, mask),
                tirx.bitwise_and(own, instructions.repeated([255 - each for each in exists])),
            )
        store_vector(at, target, _aligned(element), made)

    inside = [column for column in groups if first <= column and column + addend.pixels <= end]
    for column in groups:
        if column not in inside:
            there = [pixel for pixel in range(addend.pixels) if first <= column + pixel < end]
            one(block, int32(column), there)
    if inside:
        everything = range(addend.pixels)
        block.loop(
            "vector", len(inside), lambda at, i: one(at, at.bind("x", i * addend.pixels + inside[0]), everything)
        )


def _lanes(addend: Addend) -> list[tuple[int, int]]:
    """Return the pixel and the channel of each byte of a vector."""
    return [divmod(byte, addend.channels) for byte in range(instructions.BYTES)]


def _is_unsigned(addend: Addend) -> bool:
    """Whether the codes of the other tensor are stored without a sign: int8 is so in blocks of 4 channels."""
    return not addend.conv.is_signed or (not addend.is_in_pixels and addend.together == 4)


def _from_zero(is_unsigned: bool, codes: tirx.Expr) -> tirx.Expr:
    """Turn stored codes into numbers from 0 on, or back."""
    return codes if is_unsigned else instructions.flipped(codes)


def _aligned(byte: Number) -> tirx.Expr:
    """Return the byte where the vector begins that holds a byte, so that LLVM knows that a vector begins there."""
    return tirx.floordiv(byte, int32(instructions.BYTES)) * instructions.BYTES


def _load(buffer: tirx.Buffer, byte: Number) -> tirx.Expr:
    """Load the vector that holds a byte."""
    return instructions.load(buffer, _aligned(byte))


def _addend(
    block: Block,
    channels: Channels,
    addend: Addend,
    base: tirx.Expr,
    place: tuple[Number, tirx.Expr],
    logical: int,
) -> tirx.Expr:
    """Load the codes that are added to a vector of the target, from a column and a channel on."""
    source, (column, channel) = channels.step.addend, place
    assert source
    buffer, found = source.buffer, None
    last = (int(buffer.shape[0]) // instructions.BYTES - 1) * instructions.BYTES
    for pixel, first, size in addend.runs(logical):
        lane = pixel * addend.channels + first
        at = (column + (addend.columns_behind + pixel)) * addend.together + _of_channel(addend, channel + first)
        byte = block.bind("byte", base + at - lane)
        if addend.is_aligned:
            return block.bind("other", _load(buffer, byte), instructions.VECTOR)
        begin = block.bind("begin", _aligned(byte))
        low = instructions.load(buffer, _aligned(tirx.max(begin, 0)))
        high = instructions.load(buffer, _aligned(tirx.min(begin + instructions.BYTES, last)))
        run = block.bind("run", instructions.aligned(high, low, byte), instructions.VECTOR)
        if found is None:
            found = run
            continue
        here = instructions.repeated([255 if lane <= byte < lane + size else 0 for byte in range(instructions.BYTES)])
        rest = instructions.repeated([0 if lane <= byte < lane + size else 255 for byte in range(instructions.BYTES)])
        both = tirx.bitwise_or(tirx.bitwise_and(run, here), tirx.bitwise_and(found, rest))
        found = block.bind("other", both, instructions.VECTOR)
    assert found is not None, "a vector has a channel"
    return found


def _of_channel(addend: Addend, channel: tirx.Expr) -> tirx.Expr:
    """Return how many bytes a channel stands behind the first one of its pixel."""
    if addend.is_in_pixels:
        return channel
    number = tirx.floordiv(channel, int32(addend.together))
    return number * addend.block_bytes + tirx.floormod(channel, int32(addend.together))


def summed(block: Block, form: CodeSum, one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Sum two vectors of codes that count from 0 on (numpy's twin is `CodeSum.of_codes`)."""
    one, other = (block.bind("code", each, instructions.VECTOR) for each in (one, other))
    both = block.bind("both", instructions.instruction("vcombine", other, one, result=PAIR), PAIR)
    total: tirx.Expr | None = None
    for limb in range(LIMBS):
        left, right = (each >> LIMB_BITS * limb & 127 for each in (form.one, form.other))
        added = form.constant >> LIMB_BITS * limb & 127 if limb < LIMBS - 1 else 0
        carried = None if total is None else _carried(block, total)
        start = _plus(carried, added)
        factors = int32(instructions.signed(left | right << 8 | left << 16 | right << 24))
        product = instructions.instruction("vmpabuu.acc", start, both, factors, result=PAIR)
        total = block.bind("limb", product, PAIR)
    assert total is not None
    top = form.constant >> LIMB_BITS * (LIMBS - 1)
    halves = [_moved(half, top) for half in (instructions.lower(total), instructions.upper(total))]
    made = instructions.instruction("vasruhubsat", halves[1], halves[0], int32(form.shift - LEAST_SHIFT))
    made = instructions.clamped_bytes(made, *form.ends)
    for first, second, result in form.mended:
        pair = instructions.instruction("veqb", one, _bytes(first), result="boolx128")
        pair = instructions.instruction("veqb.and", pair, other, _bytes(second), result="boolx128")
        made = instructions.instruction("vmux", pair, _bytes(result), made)
    return block.bind("sum", made, instructions.VECTOR)


def _carried(block: Block, total: tirx.Expr) -> tirx.Expr:
    """Return what the sums of a limb carry to the next one, a pair."""
    low, high = (
        instructions.instruction("vlsrh", half, int32(LIMB_BITS))
        for half in (instructions.lower(total), instructions.upper(total))
    )
    return block.bind("carried", instructions.instruction("vcombine", high, low, result=PAIR), PAIR)


def _plus(pair: tirx.Expr | None, number: int) -> tirx.Expr:
    """Add a number to the halfwords of a pair; without one, return the number in all of them."""
    numbers = instructions.splat(number * 0x00010001)
    both = instructions.instruction("vcombine", numbers, numbers, result=PAIR)
    if pair is None:
        return both
    return instructions.instruction("vaddh.dv", pair, both, result=PAIR) if number else pair


def _moved(half: tirx.Expr, number: int) -> tirx.Expr:
    """Add a number to halfwords without a sign, which saturate."""
    numbers = instructions.splat(instructions.signed((abs(number) & 0xFFFF) * 0x00010001))
    return instructions.instruction("vadduhsat" if number >= 0 else "vsubuhsat", half, numbers)


def _bytes(code: int) -> tirx.Expr:
    return instructions.splat(instructions.signed(code * 0x01010101))


def _stage(block: Block, scratch: Scratch, step: ConvStep, blocks: int) -> None:
    """Copy the constants of the step's channels into VTCM."""
    first = step.block * CHANNEL_BLOCK
    for each in scratch.staged:
        block.loop("block", blocks, lambda at, part, each=each: each.stage(at, first + part * CHANNEL_BLOCK))


@dataclass(frozen=True)
class HvxConv:
    """A conv that HVX instructions compute: what is known of it before its steps, and its scratch."""

    conv: RowConv
    scratch: Scratch

    @property
    def memory(self) -> list[tirx.Buffer]:
        """The scratch buffers that the kernel needs beside the caches of the nest."""
        return self.scratch.memory

    @property
    def constants(self) -> list[tirx.Buffer]:
        """The arguments that it has in the place of its bias, multipliers and shifts."""
        return [each.argument for each in self.scratch.constants]

    def emit(self, step: ConvStep) -> tirx.Stmt:
        """Emit the statements of one step."""
        return emit_step(self.conv, self.scratch, step)


def hvx_conv(conv: RowConv, arguments: Mapping[str, tirx.Buffer]) -> HvxConv:
    """Prepare a conv for the HVX kernel."""
    return HvxConv(conv, scratch_of(conv, arguments))


def hvx_constants(
    chain: Chain, index: int, layouts: NestLayouts, plan: Plan, given: Mapping[str, Array]
) -> dict[str, Array]:
    """Lay out the constants of conv `index` (from 0) of a chain, from what it is given, by argument."""
    return laid_out(row_conv(chain, index, layouts, plan), given)
