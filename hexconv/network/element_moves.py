"""Operators that move elements: views of memory, concatenation, rows and columns of Resize."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np

from hexconv.model.contributed import DOMAIN
from hexconv.model.graph import Node
from hexconv.model.refused import Refused
from hexconv.network.code_functions import codes_by_byte
from hexconv.network.elements import Operator, Stored, nhwc, real_values
from hexconv.network.integer_form import (
    HEADER_BYTES,
    JOINED,
    VECTOR_BYTES,
    VIEW,
    gathered,
    header,
    laid_table,
    spread,
    turned_bit,
)
from hexconv.network.periods import Periods, periods_of
from hexconv.network.program import (
    PLACES,
    Reading,
    Table,
    scale_names,
    three,
    whole_numbers,
)
from hexconv.network.program_steps import (
    NCHW,
    NHWC,
    Along,
    Axis,
    Constants,
    Dimension,
    Operand,
    Operation,
    Resize,
    View,
    extents_of,
    is_codes,
)
from hexconv.network.strands import ONCE, Loop, Unit, Woven, woven
from hexconv.network.views import Placed, loops
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import CODES, Interval

SPATIAL = {"rows": 1, "columns": 2}
"""The index of rows and of columns in N, H, W, C."""

EXACT_DIGITS = 9
"""Decimal places of a coordinate: what float64 leaves next to a half or a whole number is one."""

ROUNDED: dict[bytes, Callable[[Array], Array]] = {
    b"round_prefer_floor": lambda at: np.ceil(at - 0.5),
    b"round_prefer_ceil": lambda at: np.floor(at + 0.5),
    b"floor": np.floor,
    b"ceil": np.ceil,
}


def _resize_of(reading: Reading, node: Node, source: Operand, result: Operand) -> Resize:
    """Work out both axes of a resize.

    Raises:
        Refused: the interpolation is cubic or smoothed, or a mode or an axis isn't known here.
    """
    scales = _scales(reading, node)
    axes = [_axis_of(reading, node, name, source, result, scales) for name in SPATIAL]
    if source.extents[0] != result.extents[0] or source.extents[3] != result.extents[3]:
        raise Refused("it resizes the batch or the channels; it resizes rows and columns alone here")
    return Resize(*axes)


def _axis_of(
    reading: Reading, node: Node, name: str, source: Operand, result: Operand, scales: Mapping[int, float]
) -> Axis:
    size, made = source.extents[SPATIAL[name]], result.extents[SPATIAL[name]]
    scale, is_old = scales.get(SPATIAL[name], made / size), _is_old(reading, node)
    at = np.round(_coordinates(node, size, made, scale, is_old), EXACT_DIGITS)
    mode = node.attributes.get("mode", b"nearest")
    if mode == b"nearest":
        default = (b"floor" if scale >= 1 else b"ceil") if is_old else b"round_prefer_floor"
        first = np.clip(ROUNDED[node.attributes.get("nearest_mode", default)](at), 0, size - 1)
        part = np.zeros(made)
    elif mode == b"linear":
        if scale < 1 and node.attributes.get("antialias", 0):
            raise Refused("it sets antialias where it makes a side smaller; export it without antialias")
        at = np.clip(at, 0, size - 1)
        first, part = np.floor(at), at - np.floor(at)
    else:
        raise Refused(f"its mode is {mode.decode(errors='replace')}; it takes nearest or linear here")
    names = [f"{node.outputs[0]}:{name}:{what}" for what in ("first", "part")]
    return Axis(reading.constant(names[0], first.astype(np.int32)), reading.constant(names[1], part.astype(np.float32)))


RATIOS: dict[bytes, Callable[[list[float]], float]] = {b"not_larger": min, b"not_smaller": max}
"""What keeps the ratio of an image's sides, of the quotients of sizes: one scale of all axes."""
FIRST_MODES = 11
"""The first opset whose Resize names how it computes coordinates; before, it reads scales as Upsample does."""


def _is_old(reading: Reading, node: Node) -> bool:
    """Whether a node is older than the modes of coordinates: nearest ones are cut off, or rounded up where it shrinks.

    So ONNX Runtime does, and ONNX's own example of Resize-10, for which ONNX has no words.
    """
    return node.op == "Upsample" or reading.graph.constants.opset < FIRST_MODES


def _coordinates(node: Node, size: int, made: int, scale: float, is_old: bool) -> Array:
    """Return the coordinate in the source of each place of the result, along one axis."""
    places = np.arange(made)
    mode = b"asymmetric" if is_old else node.attributes.get("coordinate_transformation_mode", b"half_pixel")
    if mode == b"asymmetric":
        return places / scale
    if mode == b"align_corners":
        return places * ((size - 1) / (made - 1) if made > 1 else 0.0)
    if mode == b"half_pixel" or (mode == b"pytorch_half_pixel" and made > 1):
        return (places + 0.5) / scale - 0.5
    if mode == b"pytorch_half_pixel":
        return np.zeros(made)
    raise Refused(f"it computes coordinates by {mode.decode(errors='replace')}, which is not known here")


def _scales(reading: Reading, node: Node) -> dict[int, float]:
    """Return the scales that a model states, by the places of their axes in N, H, W, C.

    Where it states sizes, they are the quotients of these, but for one that keeps the ratio of an image's sides.

    Raises:
        Refused: the scales are no constants, or the input has other axes than operators take.
    """
    shape = reading.shape(node.inputs[0])
    if len(shape) not in PLACES:
        raise Refused(f"its input has {len(shape)} axes; it takes tensors of 2 to 4 axes here")
    name = node.input(1 if _is_old(reading, node) else 2)
    if name and not reading.graph.is_constant(name):
        raise Refused(f"its scales {name} depend on the model's input")
    stated = reading.graph.value(name) if name else np.array(node.attributes.get("scales", ()))
    axes = node.attributes.get("axes") or range(len(shape))
    keeps_ratio = RATIOS.get(node.attributes.get("keep_aspect_ratio_policy", b"stretch"))
    if keeps_ratio and (sizes := whole_numbers(reading, node, 3, "")):
        quotients = [made / shape[axis] for axis, made in zip(axes, sizes, strict=True)]
        stated = np.full(len(quotients), keeps_ratio(quotients))
    return {PLACES[len(shape)][axis]: float(scale) for axis, scale in zip(axes, stated, strict=False)}


def _read_reshape(reading: Reading, node: Node) -> None:
    """Reuse the same memory in another shape, or copy elements to where the new shape has them."""
    source, shape = reading.placed(node.inputs[0]), reading.shape(node.outputs[0])
    if placed := source.reshaped(shape):
        reading.place(node.outputs[0], placed)
        return
    for layout in (NHWC, NCHW):  # in which the old axes are parts of the new ones; in NCHW they all are
        operand = source.operand
        made = Operand(node.outputs[0], extents_of(shape), operand.dtype, layout)
        if written := Placed.of(made, shape).reshaped(source.places.shape):
            reading.copy(node.name, operand.as_numbers, made, View(loops(source, written), source.first))
            reading.hold(node.outputs[0], made.meaning(operand.scale, operand.zero_point))
            return


def _read_transpose(reading: Reading, node: Node) -> None:
    source = reading.placed(node.inputs[0])
    axes = node.attributes.get("perm") or range(source.places.ndim)[::-1]
    reading.place(node.outputs[0], source.moved(source.places.transpose(list(axes))))


def _read_slice(reading: Reading, node: Node) -> None:
    source = reading.placed(node.inputs[0])
    starts, ends = (whole_numbers(reading, node, at, name) for at, name in ((1, "starts"), (2, "ends")))
    axes = whole_numbers(reading, node, 3, "axes") or list(range(len(starts)))
    cut = [slice(None)] * source.places.ndim
    for start, end, axis, step in zip(
        starts, ends, axes, whole_numbers(reading, node, 4, "") or [1] * len(starts), strict=True
    ):
        size = source.places.shape[axis]
        first = max(start + size, 0) if start < 0 else start
        last = end + size if end < 0 else end
        cut[axis] = slice(first, None if step < 0 and last < 0 else max(last, 0), step)
    reading.place(node.outputs[0], source.moved(source.places[tuple(cut)]))


def _read_split(reading: Reading, node: Node) -> None:
    source, axis = reading.placed(node.inputs[0]), int(node.attributes.get("axis", 0))
    first = 0
    for name in node.outputs:
        if not name:
            raise Refused("one of its outputs has no name")
        size = reading.shape(name)[axis]
        cut = [slice(None)] * source.places.ndim
        cut[axis] = slice(first, first + size)
        reading.place(name, source.moved(source.places[tuple(cut)]))
        first += size


def _read_gather(reading: Reading, node: Node) -> None:
    """Copy slices along an axis by constant indices; neighbours in even steps are taken together."""
    source, axis = reading.placed(node.inputs[0]), int(node.attributes.get("axis", 0))
    name = node.input(1)
    if not reading.graph.is_constant(name):
        raise Refused(f"its indices {name} depend on the model's input")
    indices = reading.graph.value(name)
    axis = axis % source.places.ndim
    size, stride = source.places.shape[axis], source.places.strides[axis]
    whole = indices.astype(np.int64).reshape(-1)
    if whole.size == 0 or whole.min() < -size or whole.max() >= size:
        raise Refused(f"its indices lie outside of {size} elements")
    whole = np.where(whole < 0, whole + size, whole)
    shape = reading.shape(node.outputs[0])
    operand = source.operand
    made = Operand(node.outputs[0], extents_of(shape), operand.dtype)
    flat = (*source.places.shape[:axis], whole.size, *source.places.shape[axis + 1 :])
    written = Placed.of(made, shape).reshaped(flat)
    if written is None:
        raise Refused(f"its indices have the shape {list(indices.shape)}; it takes one axis of them here")
    along = np.lib.stride_tricks.as_strided(
        source.places, flat, [0 if at == axis else step for at, step in enumerate(source.places.strides)]
    )
    table = {axis: reading.constant(f"{node.outputs[0]}:places", (whole * stride).astype(np.int32))}
    how = View(loops(source.moved(along), written, table), source.first)
    reading.copy(node.name, operand.as_numbers, made, how)
    reading.hold(node.outputs[0], made.meaning(operand.scale, operand.zero_point))


def _read_pad(reading: Reading, node: Node) -> None:
    if node.attributes.get("mode", b"constant") != b"constant":
        raise Refused(f"its mode is {node.attributes['mode'].decode(errors='replace')}; it pads with a constant here")
    source = reading.placed(node.inputs[0])
    counts, rank = whole_numbers(reading, node, 1, "pads"), source.places.ndim
    axes = [axis % rank for axis in whole_numbers(reading, node, 3, "") or range(rank)]
    before = dict(zip(axes, counts, strict=False))
    if min(counts, default=0) < 0:
        raise Refused("it takes elements off; export it with padding of at least 0")
    value = node.input(2)
    if value and not reading.graph.is_constant(value):
        raise Refused(f"its value {value} depends on the model's input")
    fill = float(reading.graph.value(value).reshape(-1)[0]) if value else float(node.attributes.get("value", 0.0))
    result = reading.result(node.outputs[0])
    inside = tuple(slice(before.get(at, 0), before.get(at, 0) + size) for at, size in enumerate(source.places.shape))
    written = Placed.of(result, reading.shape(node.outputs[0]))
    written = written.moved(written.places[inside])
    how = View(loops(source, written), source.first, written.first, fill)
    reading.copy(node.name, source.operand, result, how)


def _read_space_to_depth(reading: Reading, node: Node) -> None:
    source, size = _in_nhwc(reading, node), int(node.attributes["blocksize"])
    batch, channels, rows, columns = source.places.shape
    parted = source.reshaped((batch, channels, rows // size, size, columns // size, size))
    if parted is None:
        raise Refused("its input has no axes of rows and columns")
    moved = parted.places.transpose(0, 3, 5, 1, 2, 4)
    _joined(reading, node, parted.moved(moved))


def _in_nhwc(reading: Reading, node: Node) -> Placed:
    """Place an input in NHWC, where blocks of pixels have their channels side by side."""
    held = reading.dense(reading.held(node.inputs[0]))
    return Placed.of(held, reading.shape(node.inputs[0]))


def _read_depth_to_space(reading: Reading, node: Node) -> None:
    source, size = _in_nhwc(reading, node), int(node.attributes["blocksize"])
    batch, channels, rows, columns = source.places.shape
    by_channels = node.attributes.get("mode", b"DCR") == b"CRD"
    parts = (channels // size**2, size, size) if by_channels else (size, size, channels // size**2)
    parted = source.reshaped((batch, *parts, rows, columns))
    if parted is None:
        raise Refused("its input has no axis of channels")
    order = (0, 1, 4, 2, 5, 3) if by_channels else (0, 3, 4, 1, 5, 2)
    _joined(reading, node, parted.moved(parted.places.transpose(order)))


def _joined(reading: Reading, node: Node, source: Placed) -> None:
    """Copy elements to the result, whose axes are joined of the source's."""
    result = reading.result(node.outputs[0])
    written = Placed.of(result, reading.shape(node.outputs[0])).reshaped(source.places.shape)
    if written is None:
        raise Refused(f"its result of NHWC {list(result.extents)} has no such axes")
    reading.copy(node.name, source.operand, result, View(loops(source, written), source.first))


def _read_concat(reading: Reading, node: Node) -> None:
    sources = [reading.source(name) for name in node.inputs]
    reading.add("concat", node, sources, reading.result(node.outputs[0]), _along(reading, node))


def _read_quantised_concat(reading: Reading, node: Node) -> None:
    sources = [reading.dequantised(*three(node, at)) for at in range(2, len(node.inputs), 3)]
    result = reading.quantised(node.outputs[0], *scale_names(node, 0))
    reading.add("concat", node, sources, result, _along(reading, node))


def _along(reading: Reading, node: Node) -> Along:
    rank, axis = len(reading.shape(node.outputs[0])), int(node.attributes["axis"])
    if rank not in PLACES:
        raise Refused(f"its output has {rank} axes; it takes tensors of 2 to 4 axes here")
    return Along(PLACES[rank][axis % rank])


def _read_resize(reading: Reading, node: Node) -> None:
    source, result = reading.source(node.inputs[0]), reading.result(node.outputs[0])
    how = _resize_of(reading, node, source, result)
    parts = [reading.constants[axis.part] for axis in (how.rows, how.columns)]
    if any(np.any(part) for part in parts) or source.layout != NHWC:
        reading.add("resize", node, [source], result, how)
        return
    firsts = [reading.constants.pop(axis.first) for axis in (how.rows, how.columns)]
    for axis in (how.rows, how.columns):
        del reading.constants[axis.part]
    batch, rows, columns, channels = result.extents
    read, written = (
        Placed.of(source, (batch, channels, *source.extents[1:3])),
        Placed.of(result, (batch, channels, rows, columns)),
    )
    sizes, steps, tables = [batch, channels], [*read.places.strides[:2]], {}
    for axis, first, step in zip((how.rows, how.columns), firsts, read.places.strides[2:], strict=True):
        if (times := _times(first)) is None:  # all places come out of a table
            tables[len(sizes)] = reading.constant(f"{axis.first}:places", (first * step).astype(np.int32))
            sizes, steps = [*sizes, len(first)], [*steps, 0]
        else:
            sizes, steps = [*sizes, len(first) // times, times], [*steps, step, 0]
    read = read.moved(np.lib.stride_tricks.as_strided(read.places, sizes, steps))
    repeated = written.moved(written.places.reshape(sizes, copy=False))
    reading.copy(node.name, source, result, View(loops(read, repeated, tables)))


def _times(first: Array) -> int | None:
    """How many times each element is taken in a row, from the first one on; None where that differs.

    >>> _times(np.array([0, 0, 1, 1])), _times(np.array([0, 1, 1, 2]))
    (2, None)
    """
    times = int(np.count_nonzero(first == first[0]))
    return times if np.array_equal(first, np.arange(len(first)) // times) and len(first) % times == 0 else None


def _side_by_side(step: Operation, seen: list[Array], _: Stored) -> Array:
    return np.concatenate([*map(real_values, seen, step.sources)], step.told(Along).axis)


def _resized(step: Operation, seen: list[Array], constants: Stored) -> Array:
    how = step.told(Resize)
    along_columns = _mixed(real_values(seen[0], step.sources[0]), how.columns, 2, constants)
    return _mixed(along_columns, how.rows, 1, constants)


def _mixed(values: Array, axis: Axis, at: int, constants: Stored) -> Array:
    first = constants[axis.first]
    part = constants[axis.part].reshape([-1 if place == at else 1 for place in range(4)])
    one, other = (values.take(np.minimum(first + more, values.shape[at] - 1), at) for more in (0, 1))
    return np.where(part == 0, one, (1 - part) * one + part * other)


def _viewed(step: Operation, seen: list[Array], constants: Stored) -> Array:
    """Take elements by their places in memory, as the loops say."""
    how, source, result = step.told(View), step.sources[0], step.result
    from_, to = np.array(how.source_first), np.array(how.result_first)
    for each in how.dimensions:
        turns = np.arange(each.size)
        from_ = np.add.outer(from_, constants[each.places] if each.places else turns * each.source_step)
        to = np.add.outer(to, turns * each.result_step)
    made = np.full(prod(result.extents), np.float32(how.fill or 0.0))
    made[to] = _flat(real_values(seen[0], source), source)[from_]
    return _unflat(made, result)


def _flat(values: Array, operand: Operand) -> Array:
    """Elements in the order in which they lie in memory."""
    return (values.transpose(0, 3, 1, 2) if operand.layout == NCHW else values).reshape(-1)


def _unflat(values: Array, operand: Operand) -> Array:
    """The inverse."""
    return nhwc(values, operand) if operand.layout == NCHW else values.reshape(operand.extents)


def _view_form(step: Operation, constants: Constants) -> bytes | None:
    [source], result, how = step.sources, step.result, step.told(View)
    if not is_codes(source) or not is_codes(result):
        return None
    table = codes_by_byte(source, result)
    changes = not np.array_equal(table, np.arange(CODES))
    moved = spread(1).tobytes() + gathered(1).tobytes()
    if len(how.dimensions) > 1:
        columns, rows = (each.size for each in how.dimensions[-2:])
        parts = columns < VECTOR_BYTES <= rows and how.dimensions[-1].source_step == columns
        count = columns if parts else min(rows, VECTOR_BYTES)
        moved = spread(count).tobytes() + gathered(count).tobytes()
    found = woven_view(how, constants, prod(result.extents))
    told, strands = found.laid_out([0], [False], VIEW_BYTES) if found else ((0, 0, 0), b"")
    periods = view_periods(how, constants, prod(result.extents), found)
    at = VIEW_BYTES + len(strands) if periods else 0
    made = header(VIEW, int(changes), *told, at) + laid_table(table).tobytes() + moved + strands
    return made + (periods.laid_out if periods else b"")


VIEW_BYTES = HEADER_BYTES + CODES + 2 * VECTOR_BYTES
"""Of the form of a view, before its strands."""


def woven_view(how: View, constants: Constants, elements: int) -> Woven | None:
    """The strands of a view that writes all of so many elements; None where another way takes fewer packets.

    >>> from hexconv.network.program_steps import Dimension
    >>> found = woven_view(View((Dimension(6400, 32, 16), Dimension(16, 1, 1)), 16), {}, 102400)
    >>> [(strand.size, [piece.first for piece in strand.pieces]) for strand in found.strands]
    [(128, [0, 128])]
    """
    if not _writes_all(how, elements):
        return None
    again, nests = _nests(how, constants)
    best, most = None, elements // again.turns * _other_packets(how)
    for unit, around in nests:
        if found := woven(unit, around, most=most):
            best, most = found, found.packets
    return best


def view_periods(how: View, constants: Constants, elements: int, strands: Woven | None) -> Periods | None:
    """The periods of such a view; None where its strands, or other ways, take fewer packets."""
    if not _writes_all(how, elements):
        return None
    again, nests = _nests(how, constants)
    made = elements // again.turns
    best, most = None, strands.packets if strands else made * _other_packets(how)
    most += COPIED * (elements - made) / VECTOR_BYTES
    for unit, around in nests:
        if found := periods_of(unit, around, [""], again, most):
            best, most = found, found.packets
    return best


COPIED = 1.2
"""Packets of a vector that is made again of one."""


def _writes_all(how: View, elements: int) -> bool:
    return how.fill is None and prod(each.size for each in how.dimensions) == elements


def _nests(how: View, constants: Constants) -> tuple[Loop, list[tuple[Unit, list[Loop]]]]:
    """The loop that makes all again; units that the innermost loops of a view make, with the loops around each."""
    dimensions, found = [*how.dimensions], list[tuple[Unit, list[Loop]]]()
    at = _repeating(dimensions)
    loop = dimensions.pop(at) if at is not None else None
    again = Loop(loop.size, (0,), loop.result_step) if loop else ONCE
    places, dense = np.zeros(1, np.int64), True
    for at in range(len(dimensions), -1, -1):
        if at < len(dimensions):
            loop = dimensions[at]
            turns = constants[loop.places] if loop.places else np.arange(loop.size) * loop.source_step
            dense = dense and loop.result_step == places.size
            places = np.add.outer(turns, places).reshape(-1)
        around = dimensions[:at]
        if not dense or places.size > MOST_UNIT:
            break
        if any(each.places or each.source_step < 0 for each in around):
            continue
        unit = Unit(np.zeros(places.size, np.int64), places + how.source_first)
        found.append((unit, [Loop(each.size, (each.source_step,), each.result_step) for each in around]))
    return again, found


MOST_UNIT = 1 << 16
"""Bytes of the inner loops of a view that are looked at in one piece."""


def _repeating(dimensions: Sequence[Dimension]) -> int | None:
    """The outermost loop that makes the same blocks of at least a vector again, which C copies."""
    for at, (loop, inner) in enumerate(pairwise(dimensions)):
        if loop.result_step != inner.size * inner.result_step:
            return None
        if loop.source_step == 0 and not loop.places and loop.size > 1 and loop.result_step >= VECTOR_BYTES:
            return at
    return None


WALK = 30
"""Packets of one turn of the loops around pieces."""


def _other_packets(how: View) -> float:
    """About how many packets a byte takes in pieces, or where matrices are turned, or one by one."""
    inner = how.dimensions[-1]
    if inner.result_step == 1 and inner.source_step == 1 and not inner.places:
        loops = [*how.dimensions[:-1]]
        times = loops.pop().size if len(loops) > 1 and loops[-1].source_step == 0 and not loops[-1].places else 1
        pieces = loops[-1].size if loops else 1
        each = 3 if times == 1 else 4 + times
        if inner.size > VECTOR_BYTES:
            return (COPIED * -(-inner.size // VECTOR_BYTES) + 1) / inner.size
        return (pieces * each + WALK) / (pieces * times * inner.size)
    if len(how.dimensions) < 2 or inner.result_step != 1 or inner.places or how.dimensions[-2].source_step != 1:
        return 3.0
    columns, power = how.dimensions[-2].size, 1 << (inner.size - 1).bit_length()
    vectors = min(power, VECTOR_BYTES)
    blocks = -(-columns // VECTOR_BYTES) * (-(-inner.size // VECTOR_BYTES))
    each = (
        vectors + vectors * vectors.bit_length() / 2 + min(columns, VECTOR_BYTES) * min(inner.size, 128) / VECTOR_BYTES
    )
    walk = WALK / 2 if len(how.dimensions) == 2 else 1.5  # around few matrices, or once for many
    return (blocks * each + walk) / (columns * inner.size) if columns * inner.size >= VECTOR_BYTES // 2 else 3.0


def _concat_form(step: Operation, _: Constants) -> bytes | None:
    if not all(map(is_codes, (*step.sources, step.result))) or len(step.sources) > MOST_JOINED:
        return None
    changes, form = _changes_of(step), b""
    for change, source in zip(changes, step.sources, strict=True):
        form += header(change.kind, change.line.shift, change.way)
        form += laid_table(codes_by_byte(source, step.result)).tobytes() + change.line.vectors
    unit, rows = _joined_units(step)
    looked_up = [each.kind == LOOKED_UP for each in changes]
    if [*rows.steps] in HALVES and not any(looked_up):
        return header(JOINED, 2, 0, 0, 0, 0, rows.steps[0]) + form
    found = woven(unit, [rows], any(each.way for each in changes))
    if found is None:
        return None
    told, strands = found.laid_out([each.way for each in changes], looked_up, HEADER_BYTES + len(form))
    periods = _joined_periods(step, found)
    at = HEADER_BYTES + len(form) + len(strands) if periods else 0
    return header(JOINED, len(changes), *told, at) + form + strands + (periods.laid_out if periods else b"")


def _joined_units(step: Operation) -> tuple[Unit, Loop]:
    """Some bytes of each source side by side, and how often."""
    axis = step.told(Along).axis
    sizes = [prod(source.extents[axis:]) for source in step.sources]
    unit = Unit(np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes]))
    return unit, Loop(prod(step.result.extents[:axis]), tuple(sizes), sum(sizes))


def _joined_periods(step: Operation, strands: Woven) -> Periods | None:
    """The periods of tensors side by side, none of which is looked up; None where strands take fewer packets."""
    changes, (unit, rows) = _changes_of(step), _joined_units(step)
    if any(each.kind == LOOKED_UP for each in changes):
        return None
    return periods_of(unit, [rows], [each.told for each in changes], most=strands.packets)


def periods_of_step(step: Operation, constants: Constants) -> Periods | None:
    """The periods that the form of an operation names, which has one."""
    if step.operator == "view":
        how, elements = step.told(View), prod(step.result.extents)
        return view_periods(how, constants, elements, woven_view(how, constants, elements))
    if step.operator != "concat":
        return None
    changes, (unit, rows) = _changes_of(step), _joined_units(step)
    is_halved = [*rows.steps] in HALVES and all(each.kind != LOOKED_UP for each in changes)
    found = None if is_halved else woven(unit, [rows], any(each.way for each in changes))
    return _joined_periods(step, found) if found else None


HALVES = tuple([1 << bit, 1 << bit] for bit in range(7))
"""Bytes of units of which two vectors are exchanged."""
MOST_JOINED = 64
"""Sources, as C has room for."""
SAME, ON_LINE, LOOKED_UP = range(3)
"""How the codes of a tensor change."""
PRODUCT_SHIFT, LINE_REACH = 8, 64
"""What is cut off of a product; how far beside the nearest multiplier one is looked for."""
BYTE, LINE_SHIFTS = 8, (8, 7, 6)
"""Bits behind the point of a sum: of 8 the upper bytes are taken; of fewer, a source's steps may be larger."""
UNCHANGED, ADDED, TURNED = range(3)
"""What a strand does with codes: nothing, adds something alone, or turns them, too, and subtracts something."""


@dataclass(frozen=True)
class Line:
    """Codes along a line: turned, times a multiplier, shifted by 8, added to, held within 16 bits, and shifted again.

    Attributes:
        shift: the last shift.
        multiplier: 16 bits.
        constant: what is added, or taken off.
        flip: what turns codes to numbers from 0 on.
        sign: what turns these back.
    """

    shift: int = LINE_SHIFTS[0]
    multiplier: int = 0
    constant: int = 0
    flip: int = 0
    sign: int = 0

    @property
    def vectors(self) -> bytes:
        """What C reads: a vector of each byte of the numbers."""
        up, down = max(self.constant, 0), max(-self.constant, 0)
        numbers = (
            self.flip,
            self.sign,
            *(each >> bits & 255 for each in (self.multiplier, up, down) for bits in (0, 8)),
        )
        return np.repeat(np.array(numbers, np.uint8), VECTOR_BYTES).tobytes()


@dataclass(frozen=True)
class Change:
    """How the codes of a source change.

    Attributes:
        kind: not at all, along a line, or by a table.
        line: the line; of codes that don't change one that changes nothing.
    """

    kind: int
    line: Line

    @property
    def way(self) -> int:
        """What a strand does with them."""
        if self.kind != ON_LINE:
            return UNCHANGED if self.kind == SAME else TURNED
        is_more = self.line.flip or self.line.sign or self.line.constant < 0
        return TURNED if is_more else ADDED

    @property
    def told(self) -> str:
        """What C is told of a line: whether it turns codes, subtracts, and shifts by 8; nothing if there is none."""
        line = self.line
        is_one = (line.flip or line.sign, line.constant < 0, line.shift == BYTE)
        return ", ".join(str(int(bool(each))) for each in is_one) if self.kind == ON_LINE else ""


def _changes_of(step: Operation) -> list[Change]:
    """How codes of all sources change, by lines of one last shift: the one of the fewest tables, then turns."""
    shifts = [[change_of(source, step.result, shift) for source in step.sources] for shift in LINE_SHIFTS]
    kinds = [[(each.kind == LOOKED_UP, each.way) for each in changes] for changes in shifts]
    return shifts[min(range(len(shifts)), key=lambda at: [sum(column) for column in zip(*kinds[at], strict=True)])]


def change_of(source: Operand, result: Operand, shift: int = LINE_SHIFTS[0]) -> Change:
    """How codes change: along a line if there is one that meets the whole table, as that takes fewer packets."""
    table = codes_by_byte(source, result)
    axis = np.arange(CODES, dtype=np.int64)
    flip, sign = turned_bit(source), turned_bit(result)
    if np.array_equal(table, axis):
        return Change(SAME, Line(shift, min(CODES << shift, CODES * CODES - 1), (1 << shift) // 2, flip, sign))
    wanted = (table[axis ^ flip] ^ sign).astype(np.int64)
    nearest = round(float(np.float32(source.scale)) / float(np.float32(result.scale)) * 2 ** (PRODUCT_SHIFT + shift))
    best = Change(LOOKED_UP, Line(shift, flip=flip, sign=sign))
    for multiplier in sorted(range(nearest - LINE_REACH, nearest + LINE_REACH), key=lambda each: abs(each - nearest)):
        if 0 <= multiplier < CODES * CODES:
            found = Interval.of(wanted, axis * multiplier >> PRODUCT_SHIFT, shift, (0, CODES - 1))
            constant = int(min(max(found.middle, 0), found.high))
            if found.low <= found.high and abs(constant) < CODES * CODES and (best.kind == LOOKED_UP or constant >= 0):
                best = Change(ON_LINE, Line(shift, multiplier, constant, flip, sign))
                if constant >= 0:  # nothing has to be taken off
                    break
    return best


OPERATORS = {
    "view": Operator(_viewed, _view_form),
    "concat": Operator(_side_by_side, _concat_form, reads_many=True),
    "resize": Operator(_resized),
}
NODES: Table = {
    "Flatten": _read_reshape,
    "Reshape": _read_reshape,
    "Squeeze": _read_reshape,
    "Unsqueeze": _read_reshape,
    "Transpose": _read_transpose,
    "Slice": _read_slice,
    "Split": _read_split,
    "Gather": _read_gather,
    "Pad": _read_pad,
    "SpaceToDepth": _read_space_to_depth,
    "DepthToSpace": _read_depth_to_space,
    "Concat": _read_concat,
    "Resize": _read_resize,
    "Upsample": _read_resize,
    f"{DOMAIN}.QLinearConcat": _read_quantised_concat,
}
