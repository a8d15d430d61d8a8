"""Strips of columns in a nest: where they write, padding outside of the image, and the columns kept for the next strip.

before:  output[strip, row, column, channel] = ...                      [N * strips, H, columns of a strip, K]
after:   if columns before the strip <= first + column:
             output[strip // strips, row, first + column, channel] = ...    [N, H, W, K]

Without kept columns the last strip begins early. It leaves the columns alone that the strip before it has written: a
copy of them may still be under way.

Where columns are kept, the first strip may end right of the output: the guard is `first + column < columns`.

A kernel makes all columns of a strip, those left and right of the image too. They then get the zero point of the
tensor, row by row:

    for row of the step:
        for column in range(0, first), then range(end, columns): for 8 channels: cache[..] = zero point

Such columns have a cache of their own. Each block that makes rows of an intermediate says that its run may touch all
columns that are kept of it, of all rows; so does the first conv for the columns of the input that it reads:

    for row, column: hexconv_kept(kept1[0, row, .., column, ..])

The statement is a call of no function, for TVM to find the size of the cache and where the block's channels begin.
`hexconv.lower.column_strips` emits what a step does with them.

if any strip came before: intermediate1[row, .., columns right of those that were made, ..] = kept1[row, ..]
    if any strip comes later: kept1[row, ..] = intermediate1[row, .., first columns, ..]

A step of a conv does so behind the kernel, with the rows that it has made. The first conv also does so before its
kernel, with the rows of the input that no earlier step of the strip has read: for its first tile of channels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from hexconv.compute.stored import Position, Stored
from hexconv.compute.te import output_name
from hexconv.kernel import NestLayouts, has_bytes_apart, output_layout
from hexconv.kernel.kept_columns import KeptRuns
from hexconv.kernel.layouts import RowUnit
from hexconv.kernel.tiles import WORD_CHANNELS
from hexconv.lower.conv_step import ConvStep, Kept, Rows, in_ring
from hexconv.lower.scalar_operands import FlatCache
from hexconv.lower.step_calls import touch_kept
from hexconv.spec import Chain, Conv2d, Extents, Plan, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import OUTPUT, kept_cache
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.strips import Strips
from hexconv.tir.statements import Block, Number, int32
from hexconv.tir.trees import with_allocated, with_body


def in_images(module: tvm.IRModule, strips: Strips) -> tvm.IRModule:
    """Give a function whose strips are a batch the output of the whole images (plain loops, packed buffers)."""
    main = module["main"]
    old = next(argument for argument in main.params if argument.name == OUTPUT)
    of_strips, of_images = output_layout(strips.chain), output_layout(strips.chain, strips.outputs)
    new = tirx.decl_buffer(of_images.physical_shape, old.dtype, OUTPUT)

    def moved(store: tirx.BufferStore) -> tirx.Stmt:
        if not store.buffer.same_as(old):
            return store
        number, row, column, channel = of_strips.logical_index(tuple(store.indices))
        place = strips.first_made(number, tirx.min) + column
        indices = of_images.physical_index(n=strips.image_of(number), h=row, w=place, c=channel)
        written = tirx.BufferStore(new, store.value, list(indices))
        if strips.divide:
            return written
        is_own = place < strips.outputs[2] if strips.keeps else strips.first_written(number) <= place
        return tirx.IfThenElse(is_own, written, None)

    body = tvm_ffi.structural_map(main.body, (tirx.BufferStore, moved))
    params = [new if argument.same_as(old) else argument for argument in main.params]
    func = tirx.PrimFunc(params, body, attrs=main.attrs)
    return tirx.transform.StmtSimplify()(tvm.IRModule({"main": func}))


TOGETHER_BYTES = 8
"""The bytes that are stored at a time."""


@dataclass(frozen=True)
class Edges:
    """The columns of a tensor that may lie outside of the image.

    Attributes:
        strips: the strips of the chain.
        tensor: the number of the tensor; 0 is the input.
        stored: the tensor of a strip.
        unit: the channels that one block of its steps has.
        zero: the zero point of its elements, as they are stored; codes of uint8 are read as int8 there.
        dtype: the dtype of its elements.
    """

    strips: Strips
    tensor: int
    stored: Stored
    unit: int
    zero: int
    dtype: str

    @property
    def columns(self) -> int:
        """The columns that a strip makes."""
        return self.strips.tensors[self.tensor].made


def edges_of(strips: Strips, chain: Chain, index: int, layouts: NestLayouts) -> Edges | None:
    """Describe what conv `index` (from 0) makes outside of the image; None where it makes nothing there."""
    if not strips.fills(index + 1):
        return None
    # In blocks of 4 channels int8 lies as uint8, in a buffer of int8.
    flip = MADE_UNSIGNED if layouts.channel_units[index + 1] == WORD_CHANNELS and chain.dtype == "int8" else 0
    stored = Stored(tensor_extents(chain)[index + 1], layouts.activations[index + 1])
    held = chain.output_zero_point(index + 1) ^ -flip  # its sign bit changes
    return Edges(strips, index + 1, stored, layouts.channel_units[index + 1], held, chain.dtype)


def fill_edges(edges: Edges, step: ConvStep) -> tirx.Stmt:
    """Emit the stores of one step."""
    block, (begin, end) = Block(), step.rows(1)
    first, last = edges.strips.valid_columns(edges.tensor, step.image, tirx.min, tirx.max)
    left, right = block.bind("left", first), block.bind("right", last)

    def row(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", in_ring(step.target, step.target.first + index + begin))
        at.loop("column", left, lambda inner, x: _pixel(inner, edges, step, y, x))
        at.loop("column", edges.columns - right, lambda inner, x: _pixel(inner, edges, step, y, x + right))

    outside = tirx.any(left > 0, right < edges.columns)
    block.when(outside, lambda at: at.loop("row", tirx.max(end - begin, 0), row))
    return block.statement()


def _pixel(block: Block, edges: Edges, step: ConvStep, y: tirx.Expr, x: tirx.Expr) -> None:
    """Fill the channels of one pixel, in row `y` and column `x` of the cache."""
    layout, place = edges.stored.layout, step.target
    cache = FlatCache.of(layout, place.buffer, place.origin)
    lanes = min(TOGETHER_BYTES // tvm.DataType(place.buffer.dtype).itemsize, edges.unit)
    first, most = step.block * CHANNEL_BLOCK, step.most_blocks * edges.unit
    there = block.bind("there", tirx.min(most, edges.stored.padded[3] - first))

    def some(at: Block, group: tirx.Expr) -> None:
        for byte in (0, 1) if has_bytes_apart(layout) else (0,):
            element = Position(0, y, x, group * lanes, tirx.const(byte, "int32"))
            value = edges.stored.as_stored(tirx.const(edges.zero, edges.dtype), element)
            start = _not_negative(cache.place(element.packed(layout, byte)))
            at.store(place.buffer, tirx.Ramp(start, 1, lanes), tirx.Broadcast(value, lanes))

    block.loop("group", tirx.floordiv(there, lanes), some)


def _not_negative(index: tirx.Expr) -> tirx.Expr:
    """Divide in an index as one divides what is not negative.

    TVM doesn't know the sign of bound values, and would correct every quotient.
    """

    def divided(node: tirx.FloorDiv) -> tirx.Expr:
        return tirx.truncdiv(node.a, node.b)

    def rest(node: tirx.FloorMod) -> tirx.Expr:
        return tirx.truncmod(node.a, node.b)

    return tvm_ffi.structural_map(index, [(tirx.FloorDiv, divided), (tirx.FloorMod, rest)])


def with_kept(
    module: tvm.IRModule, chain: Chain, plan: Plan, layouts: NestLayouts, every: Sequence[KeptRuns]
) -> tuple[tvm.IRModule, list[str]]:
    """Allocate the caches of kept columns, and say in blocks what their runs touch of them (a scheduled module).

    Returns:
        The module, and the names of these caches.
    """
    if not every:
        return module, []
    caches = {runs.tensor: _cache(chain, plan, layouts, runs) for runs in every}
    makers = {output_name(chain, index, layouts): index for index in range(len(chain.conv))}
    known = {runs.tensor: runs for runs in every}

    def touches(block: s_tir.SBlock, index: int) -> Iterator[tirx.Stmt]:
        if index == 0 and 0 in known:
            yield _touches(known[0], caches[0], ())
        if index + 1 in known:
            runs = known[index + 1]
            outer = [axis.var for axis in block.iter_vars[2 : 2 + len(runs.outer)]]
            yield _touches(runs, caches[index + 1], outer)

    def touched(block: s_tir.SBlock) -> s_tir.SBlock:
        if block.name_hint == "root":
            return with_allocated(block, [*block.alloc_buffers, *caches.values()])
        if block.name_hint not in makers or not (found := list(touches(block, makers[block.name_hint]))):
            return block
        return with_body(block, tirx.SeqStmt([*found, block.body]))

    main = module["main"]
    body = tvm_ffi.structural_map(main.body, (s_tir.SBlock, touched))
    return tvm.IRModule({"main": main.with_body(body)}), [cache.name for cache in caches.values()]


def _cache(chain: Chain, plan: Plan, layouts: NestLayouts, runs: KeptRuns) -> tirx.Var:
    """Declare the cache of kept columns; they lie where intermediates do."""
    dtype = "uint8" if has_bytes_apart(layouts.activations[runs.tensor]) else chain.dtype
    return tirx.decl_buffer(runs.shape, dtype, kept_cache(runs.tensor), scope=plan.scope("intermediates"))


def _touches(runs: KeptRuns, cache: tirx.Var, outer: Sequence[tirx.Expr]) -> tirx.Stmt:
    """Say that a run of a block may touch all kept columns, of all rows; of all channels, or of some."""
    around: list[tuple[tirx.Var, int]] = []

    def every(name: str, extent: int) -> tirx.Var:
        around.append((tirx.Var(name, "int32"), extent))
        return around[-1][0]

    row, some = every("row", runs.rows), list(outer) or [every("run", size) for size in runs.outer]
    element = [tirx.const(0, "int32"), row, *some, every("column", runs.columns), every("ci", runs.column_elements)]
    body = touch_kept(tirx.BufferLoad(cache, element))
    for variable, extent in reversed(around):
        body = tirx.For(variable, 0, extent, tirx.ForKind.SERIAL, body)
    return body


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
    made_as: RowUnit
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
