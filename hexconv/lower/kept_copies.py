"""Emit what a step does with the columns that strips keep: it copies them, row by row, once for each row of a strip.

    if any strip came before: intermediate1[row, .., columns right of those that were made, ..] = kept1[row, ..]
    if any strip comes later: kept1[row, ..] = intermediate1[row, .., first columns, ..]

A step of a conv does so behind the kernel, with the rows that it has made. The first conv also does so before its
kernel, with the rows of the input that no earlier step of the strip has read: for its first tile of channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import tvm
from tvm import tirx

from hexconv.kernel.kept import KeptRuns
from hexconv.lower.conv_step import ConvStep, Kept, Rows, in_ring
from hexconv.lower.step_rows import Made
from hexconv.schedule.block import Block, Number, int32
from hexconv.spec import Conv2d, Extents
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.strips import Strips


@dataclass(frozen=True)
class KeptCopies:
    """What the steps of a chain keep.

    Attributes:
        strips: the strips.
        runs: what is kept of each tensor, by its number.
        units: of every tensor, the channels that lie together.
        first: the first conv.
        target: the stored extents of what it makes.
        made_as: how the rows of that are counted.
        left_out: the rows of that between two steps, which no step makes, since a later stride steps over them.
    """

    strips: Strips
    runs: dict[int, KeptRuns]
    units: Sequence[int]
    first: Conv2d
    target: Extents
    made_as: Made
    left_out: int = 0

    def before(self, step: ConvStep) -> list[tirx.Stmt]:
        """Return the copies of rows of the input that a step is the first to read."""
        if step.number > 1 or 0 not in self.runs or not step.operands:
            return []
        block = Block()
        first, count = self._new_rows(block, step)
        source = step.operands.source
        # Rows of the source are counted from the first one that the step reads.
        begin = step.row * self.first.stride[0]
        rows = _Rows(self.runs[0], source, _of(step, 0), begin, self.runs[0].outer)
        block.when(step.block == 0, lambda at: self._copied(at, step, rows, first, count))
        return [block.statement()]

    def behind(self, step: ConvStep) -> list[tirx.Stmt]:
        """Return the copies of rows that a step has made."""
        if step.number not in self.runs:
            return []
        block, (begin, end), runs = Block(), step.rows(1), self.runs[step.number]
        channels, *halves = runs.outer
        some = self._blocks(block, step, channels)
        rows = _Rows(runs, step.target, _of(step, step.number), step.row, (some, *halves))
        self._copied(block, step, rows, begin, tirx.max(end - begin, 0))
        return [block.statement()]

    def _blocks(self, block: Block, step: ConvStep, channels: int) -> Number:
        """Count the blocks of channels of a step; the last one may have fewer than the others."""
        if step.most_blocks >= channels:
            return channels
        first = tirx.floordiv(step.block * CHANNEL_BLOCK, int32(self.units[step.number]))
        return block.bind("blocks", tirx.min(int32(step.most_blocks), channels - first))

    def _new_rows(self, block: Block, step: ConvStep) -> tuple[tirx.Expr, tirx.Expr]:
        """Return the rows of the input that a step is the first to read, counted from the first that it may read."""
        (top, bottom), (begin, end) = self.target.valid_rows, step.rows(self.made_as.unit)
        stride, reach = self.first.stride[0], self.first.reach[0]
        first = tirx.max(int32(top), step.band[0]) if step.band else int32(top)
        row = block.bind("first_made", tirx.max(begin, first - step.row))
        last = block.bind("last_made", tirx.min(end, bottom - step.row))
        again = tirx.Select(row + step.row > first, int32(max(reach - stride * (1 + self.left_out), 0)), int32(0))
        start = block.bind("first_read", row * stride + again)
        return start, tirx.Select(row < last, (last - 1) * stride + reach - start, int32(0))

    def _copied(self, block: Block, step: ConvStep, rows: "_Rows", first: tirx.Expr, count: tirx.Expr) -> None:
        """Restore and save some rows, counted from the step's own first one."""
        last = self.strips.count - 1
        strip = block.bind("strip", tirx.truncmod(step.image, int32(self.strips.count)))

        def row(at: Block, index: tirx.Expr) -> None:
            y = at.bind("kept_row", index + first)
            at.when(strip > 0, lambda inner: rows.copied(inner, y, rows.runs.made, to_cache=True))
            at.when(strip < last, lambda inner: rows.copied(inner, y, 0, to_cache=False))

        block.loop("row", count, row)


@dataclass(frozen=True)
class _Rows:
    """The rows that a step keeps columns of.

    Attributes:
        runs: what is kept.
        cache: the rows in their cache.
        kept: where the kept columns of the step's channels begin.
        begin: the row of the whole tensor from which rows are counted.
        outer: the runs of a row that the step copies, as `KeptRuns.outer`.
    """

    runs: KeptRuns
    cache: Rows
    kept: Kept
    begin: tirx.Expr
    outer: Sequence[Number]

    def copied(self, block: Block, y: tirx.Expr, column: int, to_cache: bool) -> None:
        """Copy the runs of row `y` to the cache from some column on, or from it."""
        runs, lanes = self.runs, self.runs.lanes(tvm.DataType(self.cache.buffer.dtype).itemsize)
        in_cache = block.bind("slot", in_ring(self.cache, self.cache.first + y))
        here = self.cache.origin + in_cache * (runs.count * runs.row_elements) + column * runs.column_elements
        there = self.kept.origin + (self.begin + y) * (runs.count * runs.run_elements)
        here, there = block.bind("cached", here), block.bind("kept", there)

        def run(at: Block, number: tirx.Expr) -> None:
            def some(inner: Block, part: tirx.Expr) -> None:
                starts = (here + number * runs.row_elements, there + number * runs.run_elements)
                places = [tirx.Ramp(start + part * lanes, 1, lanes) if lanes > 1 else start + part for start in starts]
                ends = list(zip((self.cache.buffer, self.kept.buffer), places, strict=True))
                (to, written), (source, read) = ends if to_cache else ends[::-1]
                inner.store(to, written, tirx.BufferLoad(source, [read]))

            at.loop("part", runs.run_elements // lanes, some)

        block.loop("run", prod(self.outer), run)


def _of(step: ConvStep, tensor: int) -> Kept:
    """Return where a step finds the kept columns of a tensor."""
    return next(kept for kept in step.kept if kept.tensor == tensor)
