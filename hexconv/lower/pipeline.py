"""Lower a case: stages from its schedule to flat loops, one after the other, and the code of kernels in its steps.

A stage takes a `Lowering`, a value whose fields are all that a later stage asks, and returns another. TVM's passes run
on the chain's own loops; in a nest of rows, kernels then replace the steps of its convs.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from math import prod

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.compute import chain_module
from hexconv.compute.computable import check_supported
from hexconv.kernel import input_layout, layouts_of, output_layout
from hexconv.kernel.engine import is_converted
from hexconv.kernel.kept_columns import rows_left_out
from hexconv.kernel.layouts import RowUnit
from hexconv.kernel.row_conv import RowConv
from hexconv.lower import stages, threads
from hexconv.lower.buffers import cache_name, drop_annotations, is_register
from hexconv.lower.column_strips import KeptCopies, edges_of, fill_edges, in_images, with_kept
from hexconv.lower.conv_step import ConvStep, with_constants
from hexconv.lower.copies import is_over_bands
from hexconv.lower.copy_code import fill_by_vectors, move_by_vectors, start_copies, without_fringe
from hexconv.lower.dealt_rows import deal_rows
from hexconv.lower.engine_packets import emit_tiles, engine_convs
from hexconv.lower.engine_tiles import carry_columns, mark_tiles, read_images_apart
from hexconv.lower.hexagon_target import KEEPS_ADDRESS_SUMS, OPTIONS, PIPELINES_LONG_LOOPS
from hexconv.lower.hvx import instructions
from hexconv.lower.lowered import Allocation, Cache, Lowered, Lowering, allocations_of, caches_of
from hexconv.lower.row_nests import RowNest
from hexconv.lower.rows_of_pixels import mark_rows, mark_unfolded, unclamped
from hexconv.lower.shared_caches import names_sharing, with_shared_memory
from hexconv.lower.step_calls import IN_ROWS, fill, mark, take_out
from hexconv.lower.unfolded_rows import read_in_loops
from hexconv.lower.widened_filters import mark_widened
from hexconv.schedule import stripe
from hexconv.schedule.stream import Scheduled
from hexconv.spec import Case, Conv2d, nest_of, tensor_extents
from hexconv.spec.names import accumulator, source_cache
from hexconv.spec.phases import in_phases
from hexconv.spec.strips import Strips, in_strips, strips_of
from hexconv.spec.vectors import CONVERTS
from hexconv.tir.trees import as_one, buffers_in, with_values

Stage = Callable[[Lowering], Lowering]


def mark_steps(nest: Lowering) -> Lowering:
    """Say in each block that writes a result where that is, and which columns its step keeps for the next strip."""
    rows, case = nest.row_nest, nest.row_nest.case
    marked, names = with_kept(mark(nest.module, rows.results), case.chain, case.settled, rows.layouts, rows.kept)
    return replace(nest.to(marked), kept=names)


def deal_to_threads(nest: Lowering) -> Lowering:
    """Parallelise the loops over bands of rows, before anything else is decided about them.

    Raises:
        Unsupported: threads can't tell which rows of the input are theirs.
    """
    rows = nest.row_nest
    images = rows.strips.images if rows.strips else None
    layouts = input_layout(rows.case.chain, images), output_layout(rows.case.chain)
    return nest.to(threads.in_bands(nest.main, rows.numbers, layouts, bool(rows.of_all_threads), nest.starts))


def call_steps(nest: Lowering) -> Lowering:
    """Make one call of every step that is marked."""
    scheduled = nest.scheduled
    convs = enumerate(nest.row_nest.case.chain.conv, 1)
    added = {number: source_cache(conv.add.tensor + 1) for number, conv in convs if conv.add}
    return nest.to(take_out(nest.main, scheduled.rings, nest.starts, scheduled.beginning is not None, added))


def place_in_images(nest: Lowering) -> Lowering:
    """Write what strips make at their place in the whole images."""
    strips = nest.row_nest.strips
    return nest.to(in_images(nest.module, strips)) if strips else nest


def number_bands(nest: Lowering) -> Lowering:
    """Give the variables of bands their values."""
    return nest.to(threads.with_numbers(nest.module, nest.row_nest.numbers))


def allocate_once(nest: Lowering) -> Lowering:
    """Allocate every cache once, outside of all loops but the one over bands; align caches and arguments to vectors.

    If LLVM doesn't know that a vector is aligned, it loads the whole vectors around it, past the end of its buffer too.
    """
    main, shared, words = nest.main, nest.row_nest.of_all_threads, nest.row_nest.words
    caches, views = buffers_in(main.body), buffers_in(main.body, tirx.DeclBuffer)
    names = {old: cache_name(old) for old in caches}
    renamed = {old: _aligned(old, words.get(names[old], names[old]), (prod(map(int, old.shape)),)) for old in caches}
    memory, of_all = list(renamed.values()), [words.get(name, name) for name in shared]
    renamed |= {old: _aligned(old, old.name, old.shape) for old in main.params}
    renamed |= {old: _aligned(old, old.name, old.shape, layout=None) for old in views}

    def without(sequence: tirx.SeqStmt) -> tirx.Stmt:
        kept = [step for step in sequence.seq if not isinstance(step, tirx.AllocBuffer)]
        return sequence if len(kept) == len(sequence.seq) else as_one(kept)

    body = tvm_ffi.structural_map(main.body, (tirx.SeqStmt, without))
    body = with_values(body, renamed)
    # A new function, without the old one's attributes: its loops are plain, its buffers flat.
    func = tirx.PrimFunc([renamed[argument] for argument in main.params], threads.with_memory(body, memory, of_all))
    return nest.to(func.with_attr("global_symbol", "main").with_attr("tirx.noalias", True))


def _aligned(old: tirx.Var, name: str, shape: Sequence[int], **more: None) -> tirx.Var:
    """Declare a buffer that begins where a vector does."""
    return tirx.decl_buffer(shape, old.dtype, name, scope=old.scope(), data_alignment=instructions.BYTES, **more)


def emit_steps(nest: Lowering) -> Lowering:
    """Replace the step of every conv by what its kernel emits."""
    rows, chain = nest.row_nest, nest.row_nest.case.chain
    arguments = {argument.name: argument for argument in nest.main.params}
    made, copies = rows.makers, _kept_copies(rows)
    convs = [IN_ROWS[conv.kernel](conv, arguments) for conv in rows.convs]
    edges = [rows.strips and edges_of(rows.strips, chain, index, rows.layouts) for index in range(len(convs))]

    def emitted(step: ConvStep) -> tirx.Stmt:
        there, edge = step if step.number in made else step.of_padding, edges[step.number - 1]
        parts = [convs[step.number - 1].emit(there), *([fill_edges(edge, step)] if edge else [])]
        return as_one([*copies.before(there), *parts, *copies.behind(step)] if copies else parts)

    main = fill(nest.module, emitted)["main"]
    memory = [buffer for conv in convs for buffer in conv.memory]
    func = tirx.PrimFunc(
        with_constants(main, [conv.constants for conv in convs]),
        threads.with_memory(main.body, memory),
        attrs=main.attrs,
    )
    options = [PIPELINES_LONG_LOOPS] if any(conv.form.goes_down for conv in rows.convs) else []
    options += [KEEPS_ADDRESS_SUMS] if rows.case.plan.threads > 1 and any(conv.adds for conv in rows.convs) else []
    return nest.to(func.with_attr(OPTIONS, options) if options else func)


def _kept_copies(rows: RowNest) -> KeptCopies | None:
    """Collect what steps keep for the next strip; None where they keep nothing."""
    if not rows.strips or not rows.kept:
        return None
    chain, layouts, runs = rows.case.chain, rows.layouts, {each.tensor: each for each in rows.kept}
    target, made_as = tensor_extents(chain)[1], RowUnit.of(layouts, 1)
    left_out = rows_left_out(chain.conv[1:], rows.bands.stripe_rows)
    return KeptCopies(rows.strips, runs, layouts.channel_units, chain.conv[0], target, made_as, left_out)


def copy_by_plan(nest: Lowering) -> Lowering:
    """Let the copy engine copy, or the kernel itself, as the plan says."""
    rows = nest.row_nest
    module = nest.module if rows.convs[0].form.reads_fringe else without_fringe(nest.module)
    if nest.scheduled.overlaps:
        copied = start_copies(module, fill_by_vectors, rows.numbers.ranges, has_alternatives=True)
    else:
        copied = move_by_vectors(module, rows.numbers.ranges)
    unmerged = tirx.transform.ConvertSSA()(copied)
    return replace(nest.to(unmerged), unmerged=unmerged)


def copy_by_vectors(nest: Lowering) -> Lowering:
    """Let the copy engine copy, or vectors, in a nest of blocks."""
    copied = start_copies(nest.module, fill_by_vectors) if nest.scheduled.overlaps else move_by_vectors(nest.module, {})
    return nest.to(tirx.transform.ConvertSSA()(copied))


def share_memory(nest: Lowering) -> Lowering:
    """Let caches whose lifetimes don't overlap share memory."""
    return nest.to(with_shared_memory(nest.module, nest.row_nest.sharing))


BLOCK_STAGES: tuple[Stage, ...] = (
    stages.place_caches,
    stages.compact,
    stages.run_stripes_in,
    stages.count_rings_in_phase,
    stages.open_blocks,
    stages.fold_rings,
    stages.hoist_guards,
    stages.overlap_copies,
    stages.keep_indices_inside,
    stages.name_loops,
)
"""The stages of a nest of blocks, the documents', until its caches have their sizes."""

FLAT_STAGES: tuple[Stage, ...] = (
    stages.flatten,
    stages.name_caches,
    stages.merge_caches,
    stages.start_copies,
    stages.write_activations_out,
)
"""Those that follow: buffers become flat and share memory."""

ROW_STAGES: tuple[Stage, ...] = (
    mark_steps,
    stages.place_caches,
    stages.compact,
    stages.run_stripes_in,
    stages.open_blocks,
    deal_to_threads,
    call_steps,
    stages.fold_rings,
    stages.hoist_guards,
    stages.overlap_copies,
    stages.keep_indices_inside,
    place_in_images,
    stages.name_loops,
    stages.flatten,
    number_bands,
    allocate_once,
    emit_steps,
    copy_by_plan,
    share_memory,
)
"""The stages of a nest of rows, that of HVX."""


ENGINE_STAGES: tuple[Stage, ...] = (
    mark_tiles,
    stages.flatten,
    stages.name_caches,
    stages.merge_caches,
    copy_by_vectors,
)
"""Those that follow where the matrix engine multiplies: marks stand for its packets."""


def through(stages: Sequence[Stage], nest: Lowering) -> Lowering:
    """Take a nest through some stages, in their order."""
    for stage in stages:
        nest = stage(nest)
    return nest


def lower(scheduled: Scheduled) -> Lowered:
    """Lower a scheduled chain in a nest of blocks."""
    return _flat(through(BLOCK_STAGES, Lowering(scheduled.module, scheduled)))


def _flat(shaped_nest: Lowering) -> Lowered:
    """Take a nest of blocks whose caches have their sizes to its end."""
    nest = through(FLAT_STAGES, shaped_nest)
    shaped, unmerged, merged = nest.shaped, nest.unmerged, nest.merged
    assert shaped, "a stage names loops"
    assert unmerged, "a stage names caches"
    assert merged, "a stage merges them"
    return Lowered(
        module=drop_annotations(nest.module),
        labelled=nest.module,
        shaped=drop_annotations(stages.with_arithmetic(shaped)),
        unmerged=drop_annotations(stages.with_arithmetic(stages.started(unmerged))),
        caches=tuple(sorted(caches_of(shaped), key=lambda cache: nest.targets.index(cache.name))),
        allocations=tuple(allocations_of(merged, nest.targets)),
    )


def lower_for_engine(scheduled: Scheduled, convs: Sequence[RowConv], threads: int = 1) -> Lowered:
    """Lower a scheduled chain whose convs are computed by packets of the matrix engine.

    The plain loops that these replace say what is copied, computed and cached, as for the plain kernel.

    Args:
        scheduled: the chain.
        convs: its convs.
        threads: how many threads share the rows of tiles of a step.
    """
    converted = [conv.number for conv in convs if is_converted(conv.spec)]
    nest = through(BLOCK_STAGES, Lowering(scheduled.module, scheduled, converted=converted, threads=threads))
    chain = convs[0].chain
    nest = nest.to(unclamped(nest.main)) if chain.unfolded else nest
    images = len(tensor_extents(chain)[0].images)
    nest = nest if images == 1 else nest.to(read_images_apart(nest.main, images))
    nest = nest.to(mark_unfolded(nest.main, chain)) if chain.unfolded else nest
    rows_marked = mark_rows(nest.main, chain, nest.scheduled.overlaps)
    plain, marked = _flat(nest), through(ENGINE_STAGES, nest.to(mark_widened(rows_marked, chain)))
    sums, without = ({accumulator(number) for number in some} for some in ([conv.number for conv in convs], converted))
    tidied = tvm.ir.transform.Sequential([tirx.transform.StmtSimplify(), tirx.transform.RemoveNoOp()])
    dealt = deal_rows(marked.main, threads)
    module, merged = tidied(nest.to(emit_tiles(dealt, convs)).module), marked.merged
    assert merged, "a stage merges caches"
    (converts,) = [buffer for buffer in buffers_in(module["main"].body) if buffer.name == CONVERTS]
    known = (CONVERTS, converts.scope(), str(converts.dtype))
    scratch = Cache(*known, (prod(map(int, converts.shape)),))
    memory = Allocation(CONVERTS, (CONVERTS,), *known[1:], scratch.elements)
    return replace(
        plain,
        unmerged=nest.to(read_in_loops(plain.unmerged["main"], chain)).module,
        module=drop_annotations(module),
        labelled=module,
        caches=(scratch, *(_of_threads(cache, sums, threads) for cache in plain.caches if cache.name not in without)),
        allocations=(memory, *allocations_of(merged, marked.targets)),
    )


def _of_threads(cache: Cache, sums: Collection[str], threads: int) -> Cache:
    """Let each thread have sums of its own, along the axis of images."""
    return replace(cache, shape=(threads, *cache.shape[1:])) if cache.name in sums else cache


def lower_rows(scheduled: Scheduled, case: Case, strips: Strips | None = None) -> Lowered:
    """Lower a scheduled chain whose convs are computed by kernels of rows.

    Args:
        scheduled: the chain.
        case: the chain and the plan of the nest.
        strips: the strips that the chain is a batch of, where it is one.

    Raises:
        Unsupported: threads can't tell which rows of the input are theirs.
    """
    rows = RowNest.of(case, strips, scheduled.beginning)
    nest = through(ROW_STAGES, Lowering(scheduled.module, scheduled, rows))
    shaped, unmerged, bands = nest.shaped, nest.unmerged, rows.bands.count
    assert shaped, "a stage names loops"
    assert unmerged, "a stage copies"
    caches = (_of_bands(cache, bands, rows.of_all_threads) for cache in caches_of(shaped))
    known = [replace(cache, name=rows.words.get(cache.name, cache.name)) for cache in caches]
    names = {cache.name for cache in known}
    scratch = [memory for memory in _allocations(unmerged, bands) if memory.name not in names]
    return Lowered(
        module=drop_annotations(nest.module),
        labelled=nest.module,
        shaped=drop_annotations(threads.with_numbers(shaped, rows.numbers)),
        unmerged=drop_annotations(unmerged),
        caches=(*known, *(_scratch(memory, bands) for memory in scratch)),
        allocations=tuple(_allocations(nest.module, bands)),
    )


def _of_bands(cache: Cache, bands: int, shared: Sequence[str]) -> Cache:
    """Join the caches that the bands have of one name into one cache."""
    return cache if bands == 1 or cache.name in shared else replace(cache, shape=(bands, *cache.shape))


def _scratch(memory: Allocation, bands: int) -> Cache:
    """List a kernel's scratch, which every band has, as one cache."""
    shape = (bands, memory.elements // bands) if bands > 1 else (memory.elements,)
    return Cache(memory.name, memory.scope, memory.dtype, shape)


def _allocations(module: tvm.IRModule, bands: int) -> Iterator[Allocation]:
    """Yield every memory of caches, and every kernel's scratch; an allocation has all bands' copies."""
    held = names_sharing(module)
    for statement in module["main"].body.seq:
        copies = bands if is_over_bands(statement) else 1
        for buffer in buffers_in(statement):
            if not is_register(buffer):
                elements = copies * prod(int(size) for size in buffer.shape)
                holds = (buffer.name, *held.get(buffer, ()))
                known = (buffer.name, holds, buffer.scope(), str(buffer.dtype), elements)
                yield Allocation(*known, copies)


def lower_case(case: Case) -> Lowered:
    """Build a case's chain, schedule it and lower it.

    The kernel is the one that the case gets (`hexconv.spec.kernel_choice`).

    Raises:
        Unsupported: TVM or a kernel can't do what the case asks for; the text says what.
    """
    check_supported(case.chain)
    chain, plan = case.chain, case.settled
    if nest_of(chain, plan) == "rows":
        return _lower_rows(case, strips_of(chain, plan))
    if plan.kernel == "hmx":
        return _lower_for_engine(case)
    return lower(stripe(chain_module(chain), chain, plan))


def _lower_for_engine(case: Case) -> Lowered:
    """Lower a case for the matrix engine, in a nest in which every conv has a bias: the bias tables hold it."""
    plan = case.settled
    chain, layouts = in_phases(case.chain, plan.kernel, plan.padding_rows), layouts_of(case.chain, plan)
    biased = replace(chain, conv=tuple(map(_of_nest, chain.conv)))
    module = carry_columns(chain_module(biased, layouts))
    return lower_for_engine(stripe(module, biased, plan), engine_convs(chain, layouts, plan), plan.threads)


def _of_nest(conv: Conv2d) -> Conv2d:
    """Return a conv as its nest has it: the epilogue says where results lie and which are there, not what they are."""
    assert conv.requantize, "the matrix engine serves convs that are requantised"
    shift = conv.requantize.shift
    how = replace(conv.requantize, engine="exact", shift=shift if isinstance(shift, str) else min(shift, 0))
    return replace(conv, bias=True, requantize=how)


def _lower_rows(case: Case, strips: Strips | None) -> Lowered:
    """Lower a case in a nest of rows; strips of columns are a batch of images to the nest."""
    chain, plan = in_strips(case.chain, case.settled)
    module = chain_module(chain, layouts_of(chain, plan), strips)
    return lower_rows(stripe(module, chain, plan), replace(case, chain=chain, plan=plan), strips)
