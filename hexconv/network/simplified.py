"""Fewer and quicker steps: bytes move before they become floats, floats are quantised before they move, slices join.

before:  view(codes) -> floats, convert to NCHW -> floats
 after:  view(codes) -> codes, convert to NCHW -> codes, convert -> floats

before:  divide(codes) -> floats, max_pool -> codes
 after:  divide(codes) -> codes, max_pool -> codes

before:  add(codes, codes) -> floats, average_pool -> codes
 after:  average_of_sum(codes, codes) -> codes
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TypeGuard

import numpy as np

from hexconv.network.operator_table import OPERATORS
from hexconv.network.pools import rest_of_maxima, sums_at_once
from hexconv.network.program_steps import (
    BLOCKS,
    NHWC,
    OTHER,
    Along,
    Call,
    Constants,
    Dimension,
    Operand,
    Operation,
    Program,
    Step,
    View,
    is_codes,
)
from hexconv.network.views import Placed, loops
from hexconv.run.tensors import Array


def simplified(program: Program) -> Program:
    """Return the program with the same results in fewer and quicker steps."""
    steps, outside = _in_codes(program.steps, program.outside), program.outside
    steps = _quantised_by_makers(_quantised_first(_parted(steps), outside), outside)
    steps = _nested_maxima(_averaged_at_once(steps, outside))
    steps, constants = _viewed_at_once(_whole_again(_without_idle(steps, outside)), outside, program.constants)
    return replace(program, steps=_without_unread(steps, outside), constants=constants)


def _selects(step: Step) -> TypeGuard[Operation]:
    """Whether all elements of a result are elements of the one source, which a larger code stands for as well."""
    if not isinstance(step, Operation):
        return False
    if step.operator == "convert":
        return step.sources[0].layout != step.result.layout
    if step.operator == OTHER:
        return False
    return OPERATORS[step.operator].selects or (step.operator == "view" and step.told(View).fill is None)


def _in_codes(steps: Sequence[Step], outside: Collection[str]) -> list[Step]:
    """Where an operator selects codes and writes floats, let it write codes; readers see what these stand for."""
    made, codes = list[Step](), dict[str, Operand]()
    kept = {*outside, *(read.buffer for step in steps if isinstance(step, Call) for read in step.sources)}

    def seen(operand: Operand) -> Operand:
        known = codes.get(operand.buffer)
        return replace(operand, dtype=known.dtype, scale=known.scale, zero_point=known.zero_point) if known else operand

    for step in steps:
        step = replace(step, sources=tuple(map(seen, step.sources)))
        if not step.sources:  # the caller gives it
            made.append(step)
            continue
        source, result = step.sources[0], step.result
        is_free = result.is_unclamped and result.buffer not in kept
        if _selects(step) and result.is_float and is_free and is_codes(source):
            codes[result.buffer] = source
            step = replace(step, result=seen(result))
        made.append(step)
    return made


def _quantised_first(steps: Sequence[Step], outside: Collection[str]) -> list[Step]:
    """Where floats are selected and then quantised, quantise them first.

    before:  view(floats) -> floats, convert -> codes        after:  convert(floats) -> codes, view(codes) -> codes
    """
    made = list(steps)
    for at, step in enumerate(made):
        before = _only_maker(made, at, outside) if _quantises(step) else None
        selects = made[before] if before is not None else None
        if before is None or selects is None or not _selects(selects):
            continue
        [read], selected, result = selects.sources, selects.result, step.result
        if not (read.is_float and selected.is_float and selected.is_unclamped):
            continue
        codes = replace(result, buffer=f"{selected.buffer} as codes", extents=read.extents, layout=read.layout)
        first = replace(step, sources=(read,), result=codes)
        moved = replace(result.as_numbers, extents=selected.extents, layout=selected.layout)
        last = replace(selects, sources=(codes.as_numbers,), result=moved)
        return _quantised_first([*made[:before], *made[before + 1 : at], first, last, *made[at + 1 :]], outside)
    return made


def _quantises(step: Step) -> TypeGuard[Operation]:
    """Whether a step makes codes of floats that lie alike, and nothing else."""
    if not isinstance(step, Operation) or step.operator != "convert":
        return False
    return step.sources[0].is_float and is_codes(step.result) and step.sources[0].layout == step.result.layout


def _only_maker(steps: Sequence[Step], at: int, outside: Collection[str]) -> int | None:
    """The number of the step whose result nothing but a step reads; None if there is no such step."""
    buffer = steps[at].sources[0].buffer
    readers = sum(read.buffer == buffer for each in steps for read in each.sources)
    makers = [number for number in range(at) if steps[number].result.buffer == buffer]
    return makers[0] if makers and readers == 1 and buffer not in outside else None


def _quantised_by_makers(steps: Sequence[Step], outside: Collection[str]) -> list[Step]:
    """Where floats are made to be quantised alone, let the step that makes them write codes.

    before:  divide(codes) -> floats, convert -> codes        after:  divide(codes) -> codes
    """
    made = list(steps)
    for at, step in enumerate(made):
        before = _only_maker(made, at, outside) if _quantises(step) else None
        maker = made[before] if before is not None else None
        if before is None or not isinstance(maker, Operation) or maker.operator == OTHER:
            continue
        floats, codes = maker.result, step.result
        low, high = max(floats.low, codes.low), min(floats.high, codes.high)
        if low <= high:
            written = replace(codes, extents=floats.extents, layout=floats.layout, low=low, high=high)
            first = replace(maker, result=written)
            return _quantised_by_makers([*made[:before], first, *made[before + 1 : at], *made[at + 1 :]], outside)
    return made


def _averaged_at_once(steps: Sequence[Step], outside: Collection[str]) -> list[Step]:
    """Where sums of codes stay real to be averaged alone, average them as they are made.

    before:  add(codes, codes) -> floats, average_pool -> codes        after:  average_of_sum(codes, codes) -> codes
    """
    made = list(steps)
    for at, step in enumerate(made):
        before = _only_maker(made, at, outside) if isinstance(step, Operation) and step.sources else None
        maker = made[before] if before is not None else None
        joined = sums_at_once(step, maker) if isinstance(step, Operation) and isinstance(maker, Operation) else None
        if before is not None and joined is not None:
            return _averaged_at_once([*made[:before], *made[before + 1 : at], joined, *made[at + 1 :]], outside)
    return made


def _nested_maxima(steps: Sequence[Step]) -> list[Step]:
    """Where windows lie in larger ones of the same codes, find the larger maxima among the smaller ones.

    before:  max_pool(a, 9x9), max_pool(a, 5x5) -> b        after:  max_pool(a, 5x5) -> b, max_pool(b, 5x5)
    """
    made = list[Step]()
    for step in steps:
        free, at = 0, len(made)  # from where on, and where it may stand
        for number, earlier in enumerate(made):
            if rest := rest_of_maxima(step, earlier):
                step, free = rest, number + 1
        for number in range(free, len(made)):
            if rest := rest_of_maxima(made[number], step):
                made[number], at = rest, min(at, number)
        made.insert(at, step)
    return made


def _parted(steps: Sequence[Step]) -> list[Step]:
    """Part a step that selects elements and converts them in two, so that bytes are selected, and converted apart."""
    made = list[Step]()
    for step in steps:
        if not _selects(step) or not _gains_apart(step):
            made.append(step)
            continue
        [source], result = step.sources, step.result
        name = f"{result.buffer} in bytes"
        if is_codes(source):
            between = replace(result, buffer=name, dtype=source.dtype).as_numbers
            converted = between.meaning(source.scale, source.zero_point)
            made += [replace(step, sources=(source.as_numbers,), result=between)]
            made += [Operation("convert", step.node, (converted,), result)]
        else:
            between = replace(result, buffer=name, extents=source.extents, layout=source.layout)
            made += [Operation("convert", step.node, (source,), between)]
            made += [replace(step, sources=(between.as_numbers,), result=result.as_numbers)]
    return made


def _gains_apart(step: Operation) -> bool:
    """Whether a step selects elements of 8 bits quicker where a step of its own converts them."""
    [source], result = step.sources, step.result
    is_in_place = step.operator == "convert" and source.is_one_order
    if is_in_place or BLOCKS in (source.layout, result.layout) or source.same_codes(result):
        return False
    if step.operator == "view" and is_codes(source) and is_codes(result):
        last = step.told(View).dimensions[-1]
        return bool(last.places) or (last.source_step, last.result_step) != (1, 1)  # else vectors are looked up
    return is_codes(source) != is_codes(result) or (is_codes(source) and step.operator == "convert")


def _without_idle(steps: Sequence[Step], outside: Collection[str]) -> tuple[Step, ...]:
    """Drop conversions whose result is their source, byte for byte."""
    made, names = list[Step](), dict[str, str]()

    def seen(operand: Operand) -> Operand:
        return replace(operand, buffer=names.get(operand.buffer, operand.buffer))

    for step in steps:
        step = replace(step, sources=tuple(map(seen, step.sources)))
        if not step.sources:  # the caller gives it
            made.append(step)
            continue
        source, result = step.sources[0], step.result
        lies_alike = source.extents == result.extents and (source.layout == result.layout or source.is_one_order)
        is_idle = isinstance(step, Operation) and step.operator == "convert" and source.same_codes(result)
        if is_idle and lies_alike and result.buffer not in outside:
            names[result.buffer] = source.buffer
        else:
            made.append(step)
    return tuple(made)


def _whole_again(steps: Sequence[Step]) -> list[Step]:
    """Where a concat puts all slices of a tensor side by side, let it read the tensor.

    before:  view(a) -> first half, view(a) -> second half, concat(first half, second half, b)
     after:  concat(a, b)
    """
    views = {step.result.buffer: step for step in steps if isinstance(step, Operation) and step.operator == "view"}
    made = list[Step]()
    for step in steps:
        if isinstance(step, Operation) and step.operator == "concat":
            axis, sources = step.told(Along).axis, list[Operand]()
            for source in step.sources:
                sources.append(source)
                count, whole = _slices_at_end(sources, views, axis)
                sources[len(sources) - count :] = [whole] if whole else []
            step = replace(step, sources=tuple(sources))
        made.append(step)
    return made


def _slices_at_end(sources: Sequence[Operand], views: Mapping[str, Operation], axis: int) -> tuple[int, Operand | None]:
    """How many of the last sources are slices of one tensor that follow each other to its end, and that tensor."""
    last = sources[-1]
    view = views.get(last.buffer)
    whole = view.sources[0].meaning(last.scale, last.zero_point) if view else last
    end, count = whole.extents[axis], 0
    for source in reversed(sources):
        first = end - source.extents[axis]
        if (source.scale, source.zero_point) != (last.scale, last.zero_point):
            break
        if not _is_slice(views.get(source.buffer), whole, axis, first):
            break
        end, count = first, count + 1
        if end == 0:
            return count, whole
    return 0, None


def _is_slice(view: Operation | None, whole: Operand, axis: int, first: int) -> bool:
    """Whether a view copies what lies from `first` on along an axis of a tensor in NHWC."""
    if view is None or view.sources[0].buffer != whole.buffer or not view.sources[0].same_codes(view.result):
        return False
    source, result = view.sources[0], view.result
    others = [at for at in range(4) if at != axis]
    is_alike = source.extents == whole.extents and all(source.extents[at] == result.extents[at] for at in others)
    if not is_alike or first < 0 or (source.layout, result.layout) != (NHWC, NHWC):
        return False
    read, written = (Placed.of(each, _nchw(each)) for each in (source, result))
    cut = [slice(None)] * 4
    cut[(0, 2, 3, 1)[axis]] = slice(first, first + result.extents[axis])
    read = read.moved(read.places[tuple(cut)])
    return view.told(View) == View(loops(read, written), read.first)


def _nchw(operand: Operand) -> tuple[int, ...]:
    batch, rows, columns, channels = operand.extents
    return batch, channels, rows, columns


def _viewed_at_once(
    steps: Sequence[Step], outside: Collection[str], constants: Constants
) -> tuple[list[Step], Constants]:
    """Where a view moves bytes within blocks that another one writes for it alone, let one view move them at once.

    before:  view(a) -> blocks of 2 x 6 bytes, view -> the same blocks, their bytes in another order
     after:  view(a) -> blocks of 12 bytes, by their places in a
    """
    made, known = list[Step](), dict(constants)
    readers = Counter(source.buffer for step in steps for source in step.sources)
    for step in steps:
        maker = next((each for each in made if _reads_alone(step, each, readers, outside)), None)
        if isinstance(step, Operation) and isinstance(maker, Operation) and (both := _both(maker, step, known)):
            step, places = both
            made.remove(maker)
            known[step.told(View).dimensions[-1].places] = places
        made.append(step)
    return made, known


def _reads_alone(step: Step, maker: Step, readers: Mapping[str, int], outside: Collection[str]) -> bool:
    """Whether both are views, and the one reads what the other writes, which nothing else does."""
    if not all(isinstance(each, Operation) and each.operator == "view" for each in (step, maker)):
        return False
    name = maker.result.buffer
    return step.sources[0].buffer == name and readers[name] == 1 and name not in outside


def _both(maker: Operation, step: Operation, constants: Constants) -> tuple[Operation, Array] | None:
    """One view for two, with the places of the bytes of its blocks; None where the second one crosses blocks."""
    [source], first, second = maker.sources, maker.told(View), step.told(View)
    if not (source.same_codes(maker.result) and _is_whole(first, maker.result) and _is_whole(second, step.result)):
        return None
    blocks, order = second.dimensions[0], _places(second.dimensions[1:], constants)
    at, size = len(first.dimensions), 1
    while at > 0 and size < order.size:
        at, size = at - 1, size * first.dimensions[at - 1].size
    if size != order.size or size == 1 or (blocks.source_step, blocks.places) != (size, "") or second.source_first:
        return None
    if order.max() >= size:
        return None
    name = f"{step.result.buffer}:places in blocks"
    how = View((*first.dimensions[:at], Dimension(size, 0, 1, name)), first.source_first)
    read = source.meaning(step.sources[0].scale, step.sources[0].zero_point)
    places = _places(first.dimensions[at:], constants)[order]
    return replace(step, sources=(read,), how=(how,)), places.astype(np.int32)


def _is_whole(view: View, result: Operand) -> bool:
    """Whether a view writes all elements of a result, in the order in which they lie."""
    size = 1
    for each in reversed(view.dimensions):
        if each.result_step != size:
            return False
        size *= each.size
    return view.fill is None and view.result_first == 0 and size == prod(result.extents)


def _places(dimensions: Sequence[Dimension], constants: Constants) -> Array:
    """The places of all turns of some loops, in their order."""
    found = np.zeros(1, np.int64)
    for each in dimensions:
        turns = constants[each.places] if each.places else np.arange(each.size) * each.source_step
        found = np.add.outer(found, turns).reshape(-1)
    return found


def _without_unread(steps: Sequence[Step], outside: Collection[str]) -> tuple[Step, ...]:
    """Drop views whose results nothing reads."""
    made, read = list[Step](), set(outside)
    for step in reversed(steps):
        if not isinstance(step, Operation) or step.operator != "view" or step.result.buffer in read:
            made.append(step)
            read.update(source.buffer for source in step.sources)
    return tuple(reversed(made))
