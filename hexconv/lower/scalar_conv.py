"""Emit one step of a conv without HVX: row by row, pixel by pixel, some channels at a time.

offsets of the step's channels, where they come for the first time
    for y, x: sum of the window, if the filter has a zero point
              for some channels: sums, then elements of the target

The layouts of the nest say where an element lies; `hexconv.compute` says in TE how a sum becomes an element.
"""

from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx

from hexconv.compute.te import finished, first_channel
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.scalar import SCALAR_LANES, scalar_channels
from hexconv.lower.conv_step import ConvStep, each_row
from hexconv.lower.scalar_operands import Arguments, ScalarInner, scalar_inner
from hexconv.lower.scalar_sums import Pixel, Sums, Total, registers, stage_offsets, sum_products, sum_words, window_sum
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.tir.statements import Block, int32


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
    value = finished(inner.conv.spec, total(lane), inner.sum_dtype, inner.beside, there, inner.dtype)
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
