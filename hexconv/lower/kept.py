"""Keep the columns of intermediates that the next strip reads too, in caches of their own (`hexconv.spec.kept`).

Each block that makes rows of such an intermediate says that its run may touch all columns that are kept, of all rows:

    for row, column: hexconv_kept(kept1[0, row, .., column, ..])

The statement is a call of no function, for TVM to find the size of the cache and where the block's channels begin. The
step that the kernel emits for the block is then followed by copies, row by row:

    if any strip came before: intermediate1[row, .., columns right of those that were made, ..] = kept1[row, ..]
    if any strip comes later: kept1[row, ..] = intermediate1[row, .., first columns, ..]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from hexconv.kernel import Forms, has_bytes_apart
from hexconv.kernel.kept import kept_layout
from hexconv.layout import Layout
from hexconv.lower.conv_marks import touch_kept
from hexconv.lower.conv_step import ConvStep, Kept, in_ring
from hexconv.lower.plain.cache import FlatCache
from hexconv.lower.rings import KEPT
from hexconv.lower.sblock import with_allocated, with_body
from hexconv.schedule.block import Block, int32
from hexconv.spec import Plan, tensor_extents
from hexconv.spec.names import intermediate, kept_cache
from hexconv.spec.strips import Strips

WIDTHS_BYTES = (128, 8, 4)
"""The bytes that are copied at a time: a whole vector, or what one scalar register holds."""


@dataclass(frozen=True)
class KeptColumns:
    """The columns of one intermediate that strips keep.

    Attributes:
        strips: the strips.
        tensor: the number of the intermediate.
        cache: how a strip's rows lie in the intermediate's cache.
        store: how the kept columns lie.
        scope: the storage scope of the kept columns.
        dtype: the type of an element of both.
        unit: the channels that lie together.
    """

    strips: Strips
    tensor: int
    cache: Layout
    store: Layout
    scope: str
    dtype: str
    unit: int

    @property
    def columns(self) -> int:
        """How many columns are kept."""
        return self.strips.tensors[self.tensor].kept

    @property
    def name(self) -> str:
        """The name of the cache."""
        return kept_cache(self.tensor)

    @property
    def run_bytes(self) -> int:
        """The bytes that lie together: of a row of a block of channels."""
        return self.columns * self.unit

    @property
    def width_bytes(self) -> int:
        """How many of them are copied at a time, so that every copy is aligned."""
        row_bytes = prod(self.cache.physical_shape[3 + self.has_bytes_apart :])
        aligned = gcd(self.run_bytes, self.strips.tensors[self.tensor].made * self.unit, row_bytes)
        return next(width for width in WIDTHS_BYTES if aligned % width == 0)

    @property
    def has_bytes_apart(self) -> bool:
        """Whether the bytes of an element lie apart."""
        return has_bytes_apart(self.cache)


def kept_columns_of(strips: Strips, forms: Forms, plan: Plan) -> list[KeptColumns]:
    """Describe what strips keep of each intermediate of which they keep anything."""
    extents, found = tensor_extents(strips.chain), []
    for tensor in range(1, len(strips.chain.conv)):
        if kept := strips.tensors[tensor].kept:
            layout = forms.activations[tensor]
            store = kept_layout(forms, tensor, extents[tensor], kept)
            dtype = "uint8" if has_bytes_apart(layout) else strips.chain.dtype
            unit = forms.channel_units[tensor]
            found.append(KeptColumns(strips, tensor, layout, store, plan.scope("intermediates"), dtype, unit))
    return found


def with_kept(module: tvm.IRModule, every: Sequence[KeptColumns]) -> tvm.IRModule:
    """Say in each block that makes an intermediate which kept columns its run touches (a scheduled module)."""
    if not every:
        return module
    caches = {kept.name: tirx.decl_buffer(kept.store.physical_shape, kept.dtype, kept.name, scope=kept.scope) for kept in every}
    makers = {intermediate(kept.tensor): kept for kept in every}

    def touched(block: s_tir.SBlock) -> s_tir.SBlock:
        if block.name_hint == "root":
            return with_allocated(block, [*block.alloc_buffers, *caches.values()])
        kept = makers.get(block.name_hint)
        if kept is None:
            return block
        return with_body(block, tirx.SeqStmt([_touches(kept, caches[kept.name], block), block.body]))

    main = module["main"]
    body = tvm_ffi.structural_map(main.body, (s_tir.SBlock, touched))
    return tvm.IRModule({"main": main.with_body(body).with_attr(KEPT, list(caches))})


def _touches(kept: KeptColumns, cache: tirx.Var, block: s_tir.SBlock) -> tirx.Stmt:
    """Say that a run of a block may touch the kept columns of its channels, of all rows."""
    row, column = tirx.Var("row", "int32"), tirx.Var("column", "int32")
    axes = [axis.var for axis in block.iter_vars]
    _, _, _, channel, *byte = kept.cache.logical_index(tuple(axes[: len(kept.cache.physical_shape)]))
    apart = {"b": byte[0]} if kept.has_bytes_apart else {}
    load = tirx.BufferLoad(cache, list(kept.store.physical_index(n=0, h=row, w=column, c=channel, **apart)))
    body = touch_kept(load)
    for variable, extent in ((column, kept.columns), (row, kept.store.physical_shape[1])):
        body = tirx.For(variable, 0, extent, tirx.ForKind.SERIAL, body)
    return body


def keep_columns(kept: KeptColumns, step: ConvStep) -> tirx.Stmt:
    """Emit the copies of one step."""
    assert step.kept is not None
    block, (begin, end), count = Block(), step.rows(1), kept.strips.count
    place = block.bind("strip", tirx.truncmod(step.image, int32(count)))

    def row(at: Block, index: tirx.Expr) -> None:
        runs = _Runs(kept, step, step.kept, at.bind("kept_row", step.row + index + begin), index + begin)
        at.when(place > 0, runs.restore)
        at.when(place < count - 1, runs.save)

    block.loop("row", tirx.max(end - begin, 0), row)
    return block.statement()


@dataclass(frozen=True)
class _Runs:
    """The runs of one row of a step: one for each block of its channels, or two where the bytes of elements lie apart.

    Attributes:
        kept: the columns that are kept.
        step: the step.
        place: where the kept columns of its channels begin.
        row: the row of the whole tensor.
        index: the row, counted from the step's first one.
    """

    kept: KeptColumns
    step: ConvStep
    place: Kept
    row: tirx.Expr
    index: tirx.Expr

    def restore(self, block: Block) -> None:
        """Copy what the strip before has left to the right of what this strip has made."""
        self._copied(block, self.kept.strips.tensors[self.kept.tensor].made, to_cache=True)

    def save(self, block: Block) -> None:
        """Leave the first columns for the next strip."""
        self._copied(block, 0, to_cache=False)

    def _copied(self, block: Block, first: int, to_cache: bool) -> None:
        kept, target = self.kept, self.step.target
        cache = FlatCache.of(kept.cache, target.buffer, target.origin)
        store = FlatCache.of(kept.store, self.place.buffer, self.place.origin)
        y = block.bind("y", in_ring(target, target.first + self.index))
        width = kept.width_bytes

        def run(at: Block, number: tirx.Expr) -> None:
            here = at.bind("cache_run", cache.origin + y * cache.strides[1] + number * _run_stride(kept.cache, kept))
            there = at.bind("kept_run", store.origin + self.row * store.strides[1] + number * kept.run_bytes)

            def some(inner: Block, part: tirx.Expr) -> None:
                ramps = [tirx.Ramp(start + part * width, 1, width) for start in (here + first * kept.unit, there)]
                places = list(zip((target.buffer, self.place.buffer), ramps, strict=True))
                (to, to_ramp), (source, from_ramp) = places if to_cache else places[::-1]
                inner.store(to, to_ramp, tirx.BufferLoad(source, [from_ramp]))

            at.loop("part", kept.run_bytes // width, some)

        block.loop("run", self._runs(block), run)

    def _runs(self, block: Block) -> tirx.Expr | int:
        """The runs of a row: as many as the step has blocks of channels, of which the last step may have fewer."""
        kept, step = self.kept, self.step
        all_blocks, apart = kept.store.physical_shape[2], 2 if kept.has_bytes_apart else 1
        if step.most_blocks >= all_blocks:
            return all_blocks * apart
        first = tirx.floordiv(step.block * 32, int32(kept.unit))
        return block.bind("runs", tirx.min(int32(step.most_blocks), all_blocks - first) * apart)


def _run_stride(layout: Layout, kept: KeptColumns) -> int:
    """The bytes from a run of a row to the next one in the cache."""
    return prod(layout.physical_shape[3 + kept.has_bytes_apart :])
