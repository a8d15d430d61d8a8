"""Lower a case: TVM's passes run on the chain's own loops, then kernels replace the steps of its convs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Range
from tvm.s_tir import Schedule

from hexconv.compute import chain_module
from hexconv.compute.computable import check_supported
from hexconv.compute.te import output_name
from hexconv.errors import Unsupported
from hexconv.kernel import Forms, forms_of, input_layout, output_layout
from hexconv.kernel.bands import RowBands, makes_anew, row_bands, turns
from hexconv.kernel.forms import RowUnit
from hexconv.kernel.kept_columns import KeptRuns, kept_runs, rows_left_out
from hexconv.kernel.row_conv import RowConv, row_conv
from hexconv.lower import lowered
from hexconv.lower.buffers import cache_name, drop_annotations, is_register, rename_loops
from hexconv.lower.column_strips import KeptCopies, edges_of, fill_edges, in_images, with_kept
from hexconv.lower.conv_step import ConvStep, KernelConv
from hexconv.lower.copies import is_over_bands
from hexconv.lower.copy_code import fill_by_vectors, move_by_vectors, start_copies, without_fringe
from hexconv.lower.hexagon_target import LONG_LOOPS
from hexconv.lower.hvx import instructions
from hexconv.lower.lowered import Allocation, Cache, Lowered, caches_of, lower
from hexconv.lower.shared_caches import caches_in_turns, in_turns
from hexconv.lower.step_calls import IN_ROWS, Result, fill, mark
from hexconv.lower.threads import Numbers, in_bands, with_memory, with_numbers
from hexconv.schedule import stripe
from hexconv.schedule.stream import Beginning
from hexconv.spec import Case, nest_of, tensor_extents
from hexconv.spec.names import filter_cache, numbered, words_cache
from hexconv.spec.strips import Strips, in_strips, strips_of
from hexconv.spec.vectors import OF_CHANNELS
from hexconv.tir.loops import loop_roles
from hexconv.tir.trees import as_one, buffers_in, with_values


def lower_nest(sch: Schedule, case: Case, strips: Strips | None = None) -> Lowered:
    """Lower a scheduled chain whose convs are computed by kernels of rows.

    Args:
        sch: the schedule.
        case: the chain and the plan of the nest.
        strips: the strips that the chain is a batch of, where it is one.

    Raises:
        Unsupported: threads can't tell which rows of the input are theirs.
    """
    bands, shared = row_bands(case.chain, case.settled), _shared(case)
    beginning = Beginning.of(sch.mod["main"])
    numbers = Numbers.of(bands, beginning.stripes if beginning else 0)
    layouts = (input_layout(case.chain, strips.images if strips else None), output_layout(case.chain))

    refused: list[Unsupported] = []

    def deal_out(func: tirx.PrimFunc) -> tirx.PrimFunc:
        try:
            return in_bands(func, numbers, layouts, bool(shared))
        except Unsupported as refusal:  # TVM runs this as a pass, and would make another error of it
            refused.append(refusal)
            return func

    forms = forms_of(case.chain, case.settled)
    kept = kept_runs(strips, forms) if strips else []
    marked = with_kept(mark(sch.mod, _results(case)), case.chain, case.settled, forms, kept)
    compacted = lowered.compact(marked)
    dealt = lowered.unblock(compacted, deal_out, numbers.ranges)
    if refused:
        raise refused[0]
    shaped = rename_loops(in_images(dealt, strips) if strips else dealt)
    flat = with_numbers(lowered.flatten(shaped), numbers)
    words = _words(case)
    copies = _kept_copies(case, forms, strips, kept) if strips and kept else None
    filled = _filled(_outside(flat, shared, words), case, strips, copies)
    unmerged = tirx.transform.ConvertSSA()(_copied(filled, case, numbers.ranges))
    labelled = in_turns(unmerged, _turns(case, bands, strips))
    caches = (_of_bands(cache, bands.count, shared) for cache in caches_of(shaped))
    known = [replace(cache, name=words.get(cache.name, cache.name)) for cache in caches]
    every = _allocations(unmerged, bands.count)
    scratch = [memory for memory in every if memory.name not in {cache.name for cache in known}]
    return Lowered(
        module=drop_annotations(labelled),
        labelled=labelled,
        shaped=drop_annotations(with_numbers(shaped, numbers)),
        unmerged=drop_annotations(unmerged),
        caches=(*known, *(_scratch(memory, bands.count) for memory in scratch)),
        allocations=tuple(_allocations(labelled, bands.count)),
    )


def _turns(case: Case, bands: RowBands, strips: Strips | None) -> tuple[tuple[str, ...], ...]:
    """Name the caches that may take turns in each memory."""
    keeps = strips is not None and strips.keeps
    return turns(len(case.chain.conv), case.settled) if makes_anew(bands, case.settled, keeps) else ()


def _results(case: Case) -> dict[str, Result]:
    """Describe each conv's result, by the name of the block that writes it."""
    forms = forms_of(case.chain, case.settled)
    roles = [loop_roles(layout) for layout in forms.activations[1:]]
    units = zip(roles, forms.channel_units[1:], forms.row_units[1:], strict=True)
    results = {}
    for index, (role, channels, rows) in enumerate(units):
        image, row, channel = (role.index(name) for name in ("n", "ho", "ko"))
        results[output_name(case.chain, index, forms)] = Result(index + 1, image, row, channel, channels, rows)
    return results


def _shared(case: Case) -> tuple[str, ...]:
    """Name the caches that all threads share: filters that are staged once."""
    numbers = range(1, len(case.chain.conv) + 1)
    return tuple(map(filter_cache, numbers)) if case.settled.filters == "resident" else ()


def _words(case: Case) -> dict[str, str]:
    """Return the names of caches of filters whose words scalar loads read, by the names that other filters' have."""
    packings = enumerate(forms_of(case.chain, case.settled).packings, 1)
    return {filter_cache(number): words_cache(number) for number, packing in packings if packing.is_words}


def _of_bands(cache: Cache, bands: int, shared: Sequence[str]) -> Cache:
    """Join the caches that the bands have of one name into one cache."""
    return cache if bands == 1 or cache.name in shared else replace(cache, shape=(bands, *cache.shape))


def _scratch(memory: Allocation, bands: int) -> Cache:
    """List a kernel's scratch, which every band has, as one cache."""
    shape = (bands, memory.elements // bands) if bands > 1 else (memory.elements,)
    return Cache(memory.name, memory.scope, memory.dtype, shape)


def _outside(module: tvm.IRModule, shared: Sequence[str], words: Mapping[str, str]) -> tvm.IRModule:
    """Allocate every cache once, outside of all loops but the one over bands; align caches and arguments to vectors.

    If LLVM doesn't know that a vector is aligned, it loads the whole vectors around it, past the end of its buffer too.
    """
    main = module["main"]
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
    # This is a new function, without the old one's attributes: its loops are plain, its buffers flat, and no pass is
    # left to run.
    func = tirx.PrimFunc([renamed[argument] for argument in main.params], with_memory(body, memory, of_all))
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)})


def _aligned(old: tirx.Var, name: str, shape: Sequence[int], **more: None) -> tirx.Var:
    """Declare a buffer that begins where a vector does."""
    return tirx.decl_buffer(shape, old.dtype, name, scope=old.scope(), data_alignment=instructions.BYTES, **more)


def _filled(module: tvm.IRModule, case: Case, strips: Strips | None, copies: KeptCopies | None) -> tvm.IRModule:
    """Replace the step of every conv by what its kernel emits."""
    chain, forms = case.chain, forms_of(case.chain, case.settled)
    arguments = {argument.name: argument for argument in module["main"].params}
    made = _made(case)
    convs = [IN_ROWS[conv.kernel](conv, arguments) for conv in _convs(case)]
    edges = [strips and edges_of(strips, chain, index, forms) for index in range(len(convs))]

    def emitted(step: ConvStep) -> tirx.Stmt:
        there, edge = step if step.number in made else step.of_padding, edges[step.number - 1]
        parts = [convs[step.number - 1].emit(there), *([fill_edges(edge, step)] if edge else [])]
        return as_one([*copies.before(there), *parts, *copies.behind(step)] if copies else parts)

    filled = fill(module, emitted)
    main, memory = filled["main"], [buffer for conv in convs for buffer in conv.memory]
    func = tirx.PrimFunc(_parameters(main, convs), with_memory(main.body, memory), attrs=main.attrs)
    return tvm.IRModule(
        {"main": func.with_attr(LONG_LOOPS, True) if any(conv.form.goes_down for conv in _convs(case)) else func}
    )


def _kept_copies(case: Case, forms: Forms, strips: Strips, kept: Sequence[KeptRuns]) -> KeptCopies:
    """Collect what steps keep for the next strip."""
    chain, runs = case.chain, {each.tensor: each for each in kept}
    target, made_as = tensor_extents(chain)[1], RowUnit.of(forms, 1)
    stripe = row_bands(chain, case.settled).stripe_rows
    left_out = rows_left_out(chain.conv[1:], stripe)
    return KeptCopies(strips, runs, forms.channel_units, chain.conv[0], target, made_as, left_out)


def _convs(case: Case) -> list[RowConv]:
    """The convs of a case as their kernels compute them."""
    forms, kernels = forms_of(case.chain, case.settled), enumerate(case.kernels)
    return [row_conv(case.chain, index, forms, case.settled, choice.used) for index, choice in kernels]


def _parameters(main: tirx.PrimFunc, convs: Sequence[KernelConv]) -> list[tirx.Var]:
    """Return the arguments of a function, with constants of convs in the place of what these are made of."""
    own = {number: conv.constants for number, conv in enumerate(convs, 1) if conv.constants is not None}
    replaced = {numbered(what, number) for number in own for what in OF_CHANNELS}
    *kept, output = [argument for argument in main.params if argument.name not in replaced]
    return [*kept, *(buffer for constants in own.values() for buffer in constants), output]


def _made(case: Case) -> set[int]:
    """Return the numbers of the convs that make any logical row; the reader of another one reads its padding alone.

    TVM leaves the products of such a conv out where it can show that no stripe reaches a logical row, which it can for
    some strides and not for others.
    """
    bands, tensors = row_bands(case.chain, case.settled), tensor_extents(case.chain)[1:]
    return {number for number, rows in enumerate(tensors, 1) if bands.makes_any(number, range(*rows.valid_rows))}


def _copied(module: tvm.IRModule, case: Case, ranges: Mapping[tirx.Var, Range]) -> tvm.IRModule:
    """Let the copy engine copy, or the kernel itself, as the plan says."""
    if not _convs(case)[0].form.reads_fringe:
        module = without_fringe(module)
    if case.settled.buffering == "double":
        return start_copies(module, fill_by_vectors, ranges, has_alternatives=True)
    return move_by_vectors(module, ranges)


def _allocations(module: tvm.IRModule, bands: int) -> Iterator[Allocation]:
    """Yield every memory of caches, and every kernel's scratch; an allocation has all bands' copies."""
    held = caches_in_turns(module)
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
    return lower(stripe(chain_module(chain), chain, plan))


def _lower_rows(case: Case, strips: Strips | None) -> Lowered:
    """Lower a case in a nest of rows; strips of columns are a batch of images to the nest."""
    chain, plan = in_strips(case.chain, case.settled)
    module = chain_module(chain, forms_of(chain, plan), strips)
    return lower_nest(stripe(module, chain, plan), replace(case, chain=chain, plan=plan), strips)
