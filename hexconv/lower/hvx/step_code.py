"""Emit one step of a conv with HVX: for tile of channels: for row: what the conv's form emits, or fringe."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from math import ceil

from tvm import tirx

from hexconv.kernel import NestLayouts
from hexconv.kernel.row_conv import RowConv, row_conv
from hexconv.lower.conv_step import ConvStep, each_row
from hexconv.lower.hvx.added_rows import emit_added
from hexconv.lower.hvx.channel_rows import Channels, target_of
from hexconv.lower.hvx.parameters import Scratch, laid_out, scratch_of
from hexconv.lower.hvx.stores import fill_row
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.vectors import Array
from hexconv.tir.statements import Block, int32


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
