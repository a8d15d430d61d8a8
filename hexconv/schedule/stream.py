"""Schedule streaming stripes (`halo = "roll"`): every row is made once, and kept in a ring while it is read.

Rows are what the nest counts: single rows, or in a nest of blocks slabs of 8 rows. A conv with stride s and r rows of
reach reads slabs as one with stride s and h + s slabs of reach does, h = (r - 1 - s) // 8 + 1, and slabs need no
padding: they count what is stored (`hexconv.spec.extents.slab_convs`).

A stripe of the output reads a stripe of every tensor; most of its rows were read for the stripe before. Each stripe
makes the rows alone that are new, the last ones of each tensor's stripe:

    before:  for ho_outer:                              after:  for ho_outer:
                 for ho: input_cache[ho] = ...                      for ho: input_cache[new row % R] = ...
                 for ho_inner: conv2d #1                            for ho_inner: conv2d #1, new rows
                 for ho_inner: conv2d #2                            for ho_inner: conv2d #2, new rows

With g rows of a tensor for each stripe of the output (its rows times the strides in between) and u rows of it under a
stripe, stripe t makes

    rows t * g + u - n .. t * g + u - 1         n = min(g, u)         as far as there are such rows

The first stripe needs what no stripe before it has made. So stripes begin at -W, where no tensor has a row yet: those
below 0 make no output, and run the rows in that it needs, a stripe's share each (`hexconv.lower.rings`):

    W = the most of (u - n) / g, rounded up

Some stripes come so early that they make no row of any intermediate: they read the input and do nothing else.

A nest of blocks makes intermediates `h_split` slabs at a time. Where strides make g more than that, a stripe has g /
h_split steps, which are numbered on and on, and what is said here of a stripe holds for a step. The stripes are the
steps of the last conv that has several; convs behind it stay as they are.

With `order = "k_outer"` the channel tiles of the conv whose steps are the stripes stand around all of them. Its filter
is staged before the stripes of a tile, and these begin anew, the warm-up too; earlier convs make each row of a
stripe once, for all of their own tiles. The tiles of the last conv stand around all images, and strips, too:

    for ko_outer:
        filter #2 cache read
        for n, ho_outer:
            input cache read, new rows
            for ko_outer: filter #1 cache read; conv2d #1, new rows
            conv2d #2

A conv that makes n' rows reads the last (n' - 1) * stride + reach rows of this tensor. The ring has R rows: that many,
or n if n is more. A tensor that a later conv adds keeps the rows from the first one that this conv's step adds. Row r
lies in slot r % R. `hexconv.lower.rings` folds the buffers.

Read ahead (`buffering = "double"`). The input is read one stripe's share earlier than it is needed, into a ring with as
many rows more, so that copies overlap with compute. Nothing is read ahead where a stride steps over rows, or where
padding is all that is read.

Rows are what the nest counts: single rows, or in a nest of blocks slabs of 8 rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV

from hexconv.kernel import NestLayouts
from hexconv.kernel.bands import row_bands
from hexconv.schedule import primitives
from hexconv.schedule.conv_blocks import Nest, Placed, end_row, first_row, of_band, streaming
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.extents import ROW_BLOCK, reads_input_rows, slab_convs, tensor_extents
from hexconv.tir.loops import LOOP_NAME, is_unit, with_extent
from hexconv.tir.trees import conjuncts, uses


@dataclass(frozen=True)
class Stream:
    """The blocks and loops that make one tensor: an intermediate, or the input that is read.

    Attributes:
        blocks: the names of the blocks that make it.
        filter_block: the name of the block that stages the conv's filter in each tile, if one does.
        conv: the conv that makes the tensor, None for the input.
        buffer: the name of the tensor's buffer.
        ho: the loop over the rows that a step makes.
        loop_name: the name of that loop.
        all_rows: the rows of the whole tensor.
        added: for each conv that adds the tensor, the number of tensors between that conv's output and this one, and
            by how many rows what is added stands behind the row that it is added to.
        ho_outer: the loop over the steps of an intermediate in one step of its reader, None for the input.
        step_rows: the rows of a step; None where all that a step of the reader needs is made in one.
        band: the rows that a thread makes: the first, and one past the last; None where one thread makes all.
    """

    blocks: tuple[str, ...]
    filter_block: str | None
    conv: Conv2d | None
    buffer: str
    ho: tirx.Var
    loop_name: str
    all_rows: int
    added: tuple[tuple[int, int], ...] = ()
    ho_outer: tirx.Var | None = None
    step_rows: int | None = None
    band: tuple[tirx.Expr, tirx.Expr] | None = None


@dataclass(frozen=True)
class Share:
    """The rows of a tensor that each step makes.

    Attributes:
        of: the blocks and loops that make the tensor.
        parts: how many steps make what one step of the reader needs.
        steps: how many steps there are in a stripe.
        number: the number of a step; the first one of stripe 0 is step 0.
        apart: the rows from the first one of a step to the first one of the next.
        rows: how many rows a step makes.
        lead: the first row that step 0 makes.
        ring_rows: how many rows the ring holds.
        ahead_rows: how many of the ring's rows are read ahead.
    """

    of: Stream
    parts: int
    steps: int
    number: tirx.Expr
    apart: int
    rows: int
    lead: int
    ring_rows: int
    ahead_rows: int = 0

    @property
    def warm_up(self) -> int:
        """How many warm-up stripes make rows of the tensor before stripe 0."""
        return -(-self.lead // (self.apart * self.steps))

    @property
    def is_made_early(self) -> bool:
        """Whether all rows are made, or may be, by warm-up stripes."""
        return self.of.conv is None or self.lead >= self.of.all_rows

    @property
    def first(self) -> tirx.Expr:
        """The first row that a step makes; it is below 0 where the step makes none."""
        return self.number * self.apart + self.lead


@dataclass(frozen=True)
class Output:
    """The conv whose steps are the stripes: the last one that takes more than one step.

    Attributes:
        blocks: the names of the blocks that run where a stripe makes output: the conv's, and the copy's if it is the
            last conv of the chain.
        filter_block: the name of the block that stages the conv's filter in each tile of a stripe, if one does.
        conv: the conv.
        ho_outer: the loop over stripes.
        stripe_rows: the rows of one stripe.
        band: the rows of its output that a thread makes; None where one thread makes all.
    """

    blocks: tuple[str, ...]
    filter_block: str | None
    conv: Conv2d
    ho_outer: tirx.Var
    stripe_rows: int
    band: tuple[tirx.Expr, tirx.Expr] | None = None


def rings_of(shares: Sequence[Share]) -> dict[str, int]:
    """Return the rows that the ring of every tensor has, by the name of its buffer."""
    return {share.of.buffer: share.ring_rows for share in shares}


def shares_of(output: Output, tensors: Sequence[Stream], is_ahead: bool) -> list[Share]:
    """Return the share of every tensor that a step makes, from the end of the chain to its input."""
    shares: list[Share] = []
    reader, apart, under, made = output.conv, output.stripe_rows, output.stripe_rows, output.stripe_rows
    steps, number, steps_over = 1, output.ho_outer, False
    firsts = [0]  # the first row that step 0 makes of each tensor, the output first
    for tensor in tensors:
        apart, under = apart * reader.stride[0], reader.rows_read(under)
        parts = apart // tensor.step_rows if tensor.step_rows else 1
        since = [under - (firsts[-1 - between] + behind) for between, behind in tensor.added if between < len(firsts)]
        apart, steps = apart // parts, steps * parts
        number = number * parts + tensor.ho_outer if parts > 1 else number
        under -= (parts - 1) * apart
        read, made = reader.rows_read(made), min(apart, under)
        steps_over = steps_over or reader.reach[0] < reader.stride[0]
        ring, lead = min(max(made, read, *since), tensor.all_rows), under - made
        firsts.append(lead)
        if tensor.conv is None:
            ahead = min(apart, tensor.all_rows - ring) if is_ahead and not steps_over else 0
            shares.append(Share(tensor, parts, steps, number, apart, made, lead + ahead, ring + ahead, ahead))
            return shares
        shares.append(Share(tensor, parts, steps, number, apart, made, lead, ring))
        reader = tensor.conv
    raise AssertionError("the input, which no conv makes, comes last")


ROW_AXIS = 1
STEPS = "ho_step"
"""The name of the loop over the steps of an intermediate in a stripe."""

THERE = "hexconv_is_there"
BEFORE = "hexconv_is_before"


def is_there(row: tirx.Expr) -> tirx.Expr:
    """Return the question whether a row, or a stripe, has a number of 0 or more, as an opaque call.

    The warm-up stripes come once TVM has found the sizes of caches (`hexconv.lower.rings`): until then it would
    know that all rows are there.
    """
    return tirx.call_pure_extern("bool", THERE, row)


def is_before(row: tirx.Expr, end: int) -> tirx.Expr:
    """Return the question whether a row comes before the end of its tensor, as an opaque call."""
    return tirx.call_pure_extern("bool", BEFORE, row, end)


@dataclass(frozen=True)
class Beginning:
    """The stripes before the first one that makes any output.

    Attributes:
        reads: how many come first that only read the input.
        stripes: how many warm-up stripes follow.
        has_bands: whether each thread makes a band of rows, and so has a first stripe of its own.
    """

    reads: int
    stripes: int
    has_bands: bool


@dataclass(frozen=True)
class ReadAhead:
    """How a ring is read ahead: by how many slabs, and one past the last slab of the tensor that is read."""

    ahead_slabs: int
    end_slab: tirx.Expr | int


@dataclass(frozen=True)
class Scheduled:
    """A chain's module in the order of its plan, and what its lowering has to know beside.

    Attributes:
        module: the module, with blocks.
        rings: the rows, or slabs, that each ring has, by its buffer's name.
        ahead: how each ring that is read ahead is read, by its buffer's name.
        beginning: how its stripes begin; None where they don't stream.
        overlaps: whether copies overlap with compute.
    """

    module: tvm.IRModule
    rings: Mapping[str, int] = field(default_factory=dict[str, int])
    ahead: Mapping[str, ReadAhead] = field(default_factory=dict[str, ReadAhead])
    beginning: Beginning | None = None
    overlaps: bool = False


def stream(module: tvm.IRModule, output: Output, tensors: Sequence[Stream], is_ahead: bool) -> Scheduled:
    """Make every row once, and keep those alone that are read.

    Args:
        module: scheduled, with blocks.
        output: the conv whose steps are the stripes.
        tensors: the blocks and loops that make each tensor, from the last intermediate before it to the input.
        is_ahead: whether the input is read ahead.
    """
    shares = shares_of(output, tensors, is_ahead)
    *made, read = (share.warm_up for share in shares)
    run_in = max(made, default=0)
    makers = {name: share for share in shares for name in share.of.blocks}
    stagers = {share.of.filter_block: share for share in shares if share.of.filter_block}
    ends = {*output.blocks, *([output.filter_block] if output.filter_block else [])}

    def realized(realize: s_tir.SBlockRealize) -> s_tir.SBlockRealize:
        name = realize.block.name_hint
        if name in makers:
            return _made(realize, makers[name])
        if name in stagers:
            return _guarded(realize, _makes_something(stagers[name]))
        return _guarded(realize, _makes_output(output)) if name in ends else realize

    def looped(loop: tirx.For) -> tirx.For:
        share = next((share for share in shares if _is_over(share.of, loop)), None)
        if share is None:
            return loop
        if share.of.conv is None:  # a read of one row had begun with its loop over columns
            return with_extent(loop, share.rows, share.of.loop_name)
        if not share.of.ho.same_as(loop.loop_var):
            return _over_steps(loop, share.parts)
        annotations = {**loop.annotations, LOOP_NAME: share.of.loop_name}
        notes = loop.annotations if int(loop.extent) == share.rows else annotations
        return tirx.For(loop.loop_var, loop.min, share.rows, loop.kind, loop.body, annotations=notes)

    main = module["main"]
    body = tvm_ffi.structural_map(main.body, (s_tir.SBlockRealize, realized))
    body = tvm_ffi.structural_map(body, (tirx.For, looped))
    ahead = {
        share.of.buffer: ReadAhead(share.ahead_rows, share.of.all_rows) for share in shares if share.of.conv is None
    }
    beginning = Beginning(max(read - run_in, 0), run_in, output.band is not None)
    return Scheduled(tvm.IRModule({"main": main.with_body(body)}), rings_of(shares), ahead, beginning)


def _is_over(tensor: Stream, loop: tirx.For) -> bool:
    """Whether a loop goes over the rows of a tensor's step, or over its steps."""
    steps = tensor.ho_outer if tensor.step_rows else None
    return tensor.ho.same_as(loop.loop_var) or (steps is not None and steps.same_as(loop.loop_var))


def _over_steps(loop: tirx.For, parts: int) -> tirx.For:
    """Let a loop go over the steps of an intermediate; one of a single trip has no name, and vanishes."""
    notes = {**loop.annotations, LOOP_NAME: STEPS} if parts > 1 else {}
    return tirx.For(loop.loop_var, loop.min, parts, loop.kind, loop.body, annotations=notes)


def _made(realize: s_tir.SBlockRealize, share: Share) -> s_tir.SBlockRealize:
    """A block that makes rows of a tensor: the new ones, where there are such rows."""
    row = share.first + share.of.ho
    values = [row if axis == ROW_AXIS else value for axis, value in enumerate(realize.iter_values)]
    steps = tirx.analysis.undefined_vars(row, [])
    others = [part for part in conjuncts(realize.predicate) if not uses(part, *steps)]
    predicate = tirx.all(*others, is_there(row), _is_left(share, row))
    return s_tir.SBlockRealize(values, predicate, realize.block)


def _is_left(share: Share, row: tirx.Expr) -> tirx.Expr:
    """Whether a row comes before the end of its tensor.

    Where warm-up stripes may make all rows that there are, TVM must not know before they come: it would take the
    block out.
    """
    return is_before(row, share.of.all_rows) if share.is_made_early else row < share.of.all_rows


def _makes_something(share: Share) -> list[tirx.Expr]:
    """Whether a step makes any row: otherwise its filter needn't be staged."""
    first = share.first
    conditions = [is_there(first + (share.rows - 1)), _is_left(share, first)]
    if share.of.band:
        first_row, end_row = share.of.band
        conditions += [first_row < first + share.rows, first < end_row]
    return conditions


def _makes_output(output: Output) -> list[tirx.Expr]:
    """Whether a stripe makes any output: of its own band, where there are some."""
    reached = [] if output.band is None else [output.band[0] < (output.ho_outer + 1) * output.stripe_rows]
    return [is_there(output.ho_outer), *reached]


def _guarded(realize: s_tir.SBlockRealize, conditions: Sequence[tirx.Expr]) -> s_tir.SBlockRealize:
    """A block that runs only where further conditions hold."""
    return s_tir.SBlockRealize(realize.iter_values, tirx.all(realize.predicate, *conditions), realize.block)


def rolled(sch: Schedule, chain: Chain, plan: Plan, nest: Nest, layouts: NestLayouts) -> Scheduled:
    """Return the module of a chain in which every row, or every slab of 8 rows in a nest of blocks, is made once.

    Convs at the end of the chain that take one step stay as they are; so does a chain of such convs alone.
    """
    convs = streaming(sch, nest.convs)
    if not convs:
        return Scheduled(sch.mod)
    last, *others = convs
    bands = row_bands(chain, plan)
    has_bands = bands.count > 1
    kernels = chain.conv if layouts.has_rows else slab_convs(chain)
    number = last.blocks.number
    output = Output(
        blocks=_names(sch, [*_makers(last), *([nest.output] if number == len(kernels) else [])]),
        filter_block=None if plan.rolls_in_tiles else _filter_block(sch, last, plan),
        conv=kernels[number - 1],
        ho_outer=sch.get(last.tiles.ho_outer).loop_var,
        stripe_rows=bands.stripe_rows if layouts.has_rows else plan.h_split,
        band=_band(number) if has_bands else None,
    )
    unit = 1 if layouts.has_rows else ROW_BLOCK
    tensors = [_stream(sch, plan, conv, kernels[conv.blocks.number - 1], has_bands) for conv in others]
    tensors.append(_input_stream(sch, nest))
    numbers = range(number - 1, -1, -1)
    tensors = [replace(each, added=_added(chain, tensor, unit)) for each, tensor in zip(tensors, numbers, strict=True)]
    return stream(sch.mod, output, tensors, plan.buffering == "double" and reads_input_rows(chain))


def _added(chain: Chain, tensor: int, unit: int) -> tuple[tuple[int, int], ...]:
    """Return for each conv that adds a tensor how far behind its output that tensor is: in tensors, and in rows."""
    extents, found = tensor_extents(chain), list[tuple[int, int]]()
    for index, conv in enumerate(chain.conv):
        if conv.add and conv.add.tensor == tensor:
            found.append((index - tensor, (extents[tensor].top - extents[index + 1].top) // unit))
    return tuple(found)


def _stream(sch: Schedule, plan: Plan, conv: Placed, kernel: Conv2d, has_bands: bool) -> Stream:
    """Describe the blocks and loops that make an intermediate."""
    blocks, ho, ho_outer = conv.blocks, sch.get(conv.ho_inner), conv.tiles.ho_outer
    return Stream(
        blocks=_names(sch, _makers(conv)),
        filter_block=_filter_block(sch, conv, plan),
        conv=kernel,
        buffer=primitives.written(sch, blocks.result).name,
        ho=ho.loop_var,
        loop_name="ho_inner",
        all_rows=primitives.all_slabs(sch, blocks.result),
        ho_outer=sch.get(ho_outer).loop_var,
        step_rows=None if is_unit(sch, ho_outer) else int(ho.extent),
        band=_band(blocks.number) if has_bands else None,
    )


def _makers(conv: Placed) -> list[SBlockRV]:
    """Return the blocks that make a conv's result, and its sums before."""
    return [*dict.fromkeys([conv.blocks.result, *conv.summing])]


def _band(tensor: int) -> tuple[tirx.Expr, tirx.Expr]:
    """Return the rows of a tensor that a thread makes: the first, and one past the last."""
    return of_band(first_row(tensor)), of_band(end_row(tensor))


def _input_stream(sch: Schedule, nest: Nest) -> Stream:
    """Describe the block and the loops that read the input."""
    ho, buffer = sch.get(nest.input_loops["ho"]), primitives.written(sch, nest.input).name
    return Stream(
        _names(sch, [nest.input]), None, None, buffer, ho.loop_var, "ho", primitives.all_slabs(sch, nest.input)
    )


def _names(sch: Schedule, blocks: Sequence[SBlockRV]) -> tuple[str, ...]:
    return tuple(sch.get(block).name_hint for block in blocks)


def _filter_block(sch: Schedule, conv: Placed, plan: Plan) -> str | None:
    """Name the block that stages a conv's filter in each tile; None if no block does."""
    cache = conv.blocks.filter_cache
    return sch.get(cache).name_hint if cache and plan.filters == "per_tile" else None
