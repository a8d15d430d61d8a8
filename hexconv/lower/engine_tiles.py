"""Find a conv's tiles in the documents' nest, and let marks stand for them until the matrix engine's packets do.

TVM has laid out the nest by then: caches have their sizes, indices their rings. What a tile needs stands in TIR as
marks while buffers become flat and share memory (`hexconv.lower.engine_packets` emits it at the end).

before:  for ko_inner, ho_inner, wo:                    after:  for ko_inner, ho_inner, wo:
             init; compute; epilogue                                EngineSums(source, below, weights, sums)
                                                                    EngineResults(sums, target)
                                                                    if part of the tile is no output: the fringe
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer

from hexconv.lower.buffers import contents_of
from hexconv.lower.engine_packets import RESULTS, SUMS, TOUCH, ZERO, EngineResults, EngineSums
from hexconv.lower.lowered import Lowering
from hexconv.lower.split_copies import ranges_of
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.tir import marks
from hexconv.tir.loops import LOOP_NAME, PART
from hexconv.tir.parts import INPUT_READ, Does, Part, convolution, read_part
from hexconv.tir.statements import int32
from hexconv.tir.trees import all_of, around, as_one, conjuncts, uses, with_values

SLABS, COLUMNS = -6, -5
"""The axes of a source that count blocks of rows and blocks of columns: NHWC8h8w32c."""
WORD_BYTES = 8
"""The bytes of a store of two registers."""
KERNEL_ROWS, KERNEL_COLUMNS = -5, -4
"""The axes of a filter that count rows and columns: OIHW8i32o4i."""


@dataclass(frozen=True)
class TileOfRow:
    """The number of a tile in its row of tiles, and that of the last one."""

    number: tirx.Expr
    last: int


def mark_tiles(nest: Lowering) -> Lowering:
    """Put marks in the place of every conv's init, compute and epilogue (no blocks, buffers not yet flat)."""

    def visit(statement: tirx.Stmt, tile: TileOfRow) -> tirx.Stmt:
        if isinstance(statement, tirx.For):
            is_tile = str(statement.annotations.get(LOOP_NAME, "")) == "wo"
            own = TileOfRow(statement.loop_var, int(statement.extent) - 1) if is_tile else tile
            return around(statement, visit(statement.body, own))
        if isinstance(statement, tirx.SeqStmt):
            parts = {part.name: step for step in statement.seq if (part := _part(step)) and part.does is Does.CONV}
            found = [read_part(name).conv for name in parts if name.endswith("compute")]
            tiles = [_tile(number, number in nest.converted, parts) for number in found]
            return as_one(
                [made for step in statement.seq for made in _replaced(step, tiles, tile) or [visit(step, tile)]]
            )
        if isinstance(statement, tirx.IfThenElse):
            other = statement.else_case and visit(statement.else_case, tile)
            return tirx.IfThenElse(statement.condition, visit(statement.then_case, tile), other)
        return statement

    def allocated(memory: tirx.AllocBuffer) -> tirx.Stmt:
        held = contents_of(memory.buffer)
        stays = held.role == "accumulator" and held.number in nest.converted
        return tirx.Evaluate(ZERO) if stays else memory

    body = tvm_ffi.structural_map(visit(nest.main.body, TileOfRow(ZERO, 0)), (tirx.AllocBuffer, allocated))
    return nest.to(nest.main.with_body(body))


def read_images_apart(main: tirx.PrimFunc, images: int) -> tirx.PrimFunc:
    """Read the phase images of the input one after the other, so that each condition is a bound of a loop.

    before:  for wo in range(8): ... if 3 <= hi * 2 + wo // 4: ...
    after:   for wo in range(2): ... if 3 <= hi * 2: ...
             ...                                                and three loops more, of the other images
    """

    def of_image(loop: tirx.For, image: int) -> tirx.Stmt:
        columns = int(loop.extent) // images
        variable, first = tirx.Var(loop.loop_var.name, "int32"), int32(image * columns)
        body = with_values(loop.body, {loop.loop_var: variable + first})
        fresh = {each.loop_var: tirx.Var(each.loop_var.name, "int32") for each in all_of(body, tirx.For)}
        one = tirx.For(variable, 0, int32(columns), loop.kind, with_values(body, fresh), annotations=loop.annotations)
        return _simplified(one)

    def visit(loop: tirx.For) -> tirx.Stmt:
        is_columns = str(loop.annotations.get(LOOP_NAME, "")) == "wo"
        return as_one([of_image(loop, image) for image in range(images)]) if is_columns else loop

    def read(loop: tirx.For) -> tirx.Stmt:
        is_read = PART in loop.annotations and read_part(str(loop.annotations[PART])) == INPUT_READ
        return tvm_ffi.structural_map(loop, (tirx.For, visit)) if is_read else loop

    return main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, read)))


def _simplified(loop: tirx.For) -> tirx.Stmt:
    """Simplify indices and conditions by the ranges of loops."""
    simplify = ranges_of(loop, {}).simplify

    def load(node: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(node.source, [simplify(index) for index in node.indices])

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        return tirx.BufferStore(node.buffer, node.value, [simplify(index) for index in node.indices])

    def guard(node: tirx.IfThenElse) -> tirx.Stmt:
        condition = simplify(node.condition)
        if isinstance(condition, tirx.IntImm):
            return node.then_case if int(condition) else node.else_case or tirx.Evaluate(ZERO)
        return tirx.IfThenElse(condition, node.then_case, node.else_case)

    return tvm_ffi.structural_map(loop, [(TensorLoad, load), (tirx.BufferStore, store), (tirx.IfThenElse, guard)])


def _part(statement: tirx.Stmt) -> Part | None:
    """The part of the chain that a statement is, inside of its guards."""
    while isinstance(statement, tirx.IfThenElse):
        statement = statement.then_case
    if isinstance(statement, tirx.For) and PART in statement.annotations:
        return read_part(str(statement.annotations[PART]))
    return None


@dataclass(frozen=True)
class Tile:
    """The statements that compute one tile of a conv: sums of zero, sums of products, results.

    Attributes:
        number: the number of the conv.
        is_converted: whether the engine makes its results, so that its sums have no cache.
        init, compute, epilogue: the statements.
    """

    number: int
    is_converted: bool
    init: tirx.Stmt
    compute: tirx.Stmt
    epilogue: tirx.Stmt


def _tile(number: int, is_converted: bool, parts: Mapping[str, tirx.Stmt]) -> Tile:
    """Find the statements of a tile by their parts; where it has no loops around, its epilogue has the conv's name."""
    init, compute, epilogue = (convolution(number, block).name for block in ("init", "compute", "epilogue"))
    return Tile(
        number, is_converted, parts[init], parts[compute], parts.get(epilogue) or parts[convolution(number).name]
    )


def _replaced(step: tirx.Stmt, tiles: Sequence[Tile], tile: TileOfRow) -> list[tirx.Stmt] | None:
    """Replace a statement of a tile by marks, and by what writes the fringe; None for any other statement."""
    for each in tiles:
        if step.same_as(each.init):
            return [tirx.Evaluate(ZERO)]
        if step.same_as(each.compute):
            results, bounds = _results(each)
            sums = _sums(each.number, each.compute, results, tile.number)
            touched = [_touched(load) for load in (sums.sums, sums.target) if load is not None]
            return [*touched, bounds.of_rows(tile).where_some(marks.written(SUMS, sums))]
        if step.same_as(each.epilogue):
            results, bounds = _results(each)
            marked = bounds.where_some(marks.written(RESULTS, results))
            return [_touched(results.target), marked, *bounds.where_not_all(each.epilogue)]
    return None


@dataclass(frozen=True)
class Bounds:
    """The conditions of the elements of a tile: bounds of sums of loops, at the first element and at the last one."""

    first: Sequence[tirx.Expr]
    last: Sequence[tirx.Expr]

    def of_rows(self, tile: TileOfRow) -> "Bounds":
        """Return the bounds of a whole row of tiles: sums go from tile to tile."""
        if not isinstance(tile.number, tirx.Var):
            return self
        simplify, ends = Analyzer().simplify, ((self.first, 0), (self.last, tile.last))
        first, last = ([simplify(with_values(each, {tile.number: int32(at)})) for each in some] for some, at in ends)
        return Bounds(first, last)

    def where_some(self, statement: tirx.Stmt) -> tirx.Stmt:
        """Run a statement for tiles that have an element: each bound then holds at one end."""
        some = [tirx.any(*ends) for ends in zip(self.first, self.last, strict=True)]
        return tirx.IfThenElse(tirx.all(*some), statement, None) if some else statement

    def where_not_all(self, epilogue: tirx.Stmt) -> list[tirx.Stmt]:
        """Let an epilogue write the fringe of tiles in which not every element is an output."""
        if not self.first:
            return []
        fringe = tvm_ffi.structural_map(epilogue, (tirx.For, _fringe_of_pixel))
        fringe = tvm_ffi.structural_map(fringe, (tirx.BufferStore, _without_loads))
        return [tirx.IfThenElse(tirx.Not(tirx.all(*self.first, *self.last)), fringe, None)]


def _touched(load: TensorLoad) -> tirx.Stmt:
    """Say that a buffer is written: caches have their names and their lifetimes by what stores to them."""
    return tirx.BufferStore(load.source, tirx.call_extern(str(load.source.dtype), TOUCH), list(load.indices))


def _sums(number: int, compute: tirx.Stmt, results: EngineResults, tile: tirx.Expr) -> EngineSums:
    """Read the loops that sum: the element at which each operand begins."""
    loops = {str(loop.annotations.get(LOOP_NAME, "")): loop.loop_var for loop in all_of(compute, tirx.For)}
    begin = dict.fromkeys(loops.values(), ZERO)
    (store,) = all_of(compute, tirx.BufferStore)
    loads = [load for load in all_of(store.value, TensorLoad) if not load.source.same_as(store.buffer)]
    filter = next(load for load in loads if contents_of(load.source).role == "filter")
    source = next(load for load in loads if contents_of(load.source).role != "filter")

    simplify = Analyzer().simplify

    def first(load: TensorLoad, at: Mapping[Any, Any], zeros: Sequence[int]) -> list[tirx.Expr]:
        indices = [simplify(with_values(index, at)) for index in load.indices]
        for axis in zeros:
            indices[axis] = ZERO
        return indices

    # The first tile of a row: those of phase images lie in the same slab, whatever their rows.
    at_first = {**begin, tile: ZERO} if isinstance(tile, tirx.Var) else begin
    crouton = first(source, at_first, (COLUMNS,))
    under = [*crouton]
    under[SLABS] = first(source, {**at_first, loops["hi"]: int32(ROW_BLOCK)}, ())[SLABS]
    return EngineSums(
        number=number,
        source=tirx.BufferLoad(source.source, crouton),
        below=tirx.BufferLoad(source.source, under),
        weights=tirx.BufferLoad(filter.source, first(filter, begin, (KERNEL_ROWS, KERNEL_COLUMNS))),
        sums=results.sums,
        tile=tile,
        block=results.block,
        target=results.target if results.sums is None else None,
    )


def _results(of: Tile) -> tuple[EngineResults, Bounds]:
    """Read the loops that requantise: what begins where, and which elements are outputs."""
    loops = [(loop.loop_var, int(loop.extent)) for loop in all_of(of.epilogue, tirx.For)]
    begin = {variable: ZERO for variable, _ in loops}
    end = {variable: int32(size - 1) for variable, size in loops}
    store, conditions = _value(of.epilogue)
    simplify = Analyzer().simplify
    loads = all_of(store.value, TensorLoad)
    bias = next(load for load in loads if contents_of(load.source).role == "bias")
    sums = next(load for load in loads if contents_of(load.source).role == "accumulator")

    def first(source: tirx.Var, indices: Sequence[tirx.Expr]) -> TensorLoad:
        return tirx.BufferLoad(source, [simplify(with_values(index, begin)) for index in indices])

    results = EngineResults(
        number=of.number,
        sums=None if of.is_converted else first(sums.source, sums.indices),
        target=first(store.buffer, store.indices),
        block=simplify(tirx.floordiv(with_values(bias.indices[0], begin), int32(CHANNEL_BLOCK))),
    )
    bounds = [bound for each in conditions for bound in conjuncts(each)]
    ends = ([simplify(with_values(bound, at)) for bound in bounds] for at in (begin, end))
    return results, Bounds(*ends)


def _without_loads(store: tirx.BufferStore) -> tirx.Stmt:
    return tirx.Evaluate(ZERO) if all_of(store.value, TensorLoad) else store


def _fringe_of_pixel(channels: tirx.For) -> tirx.Stmt:
    """Let the innermost loop of an epilogue write the fringe by words, where a whole pixel is fringe.

    before:  for ki:                                        after:  if pixel: for ki:
                 if pixel and ki < 8: store a value                     if not ki < 8: store the fringe
                 else: store the fringe                             else: 4 stores of 8 bytes
    """
    inner, ki = channels.body, channels.loop_var
    if isinstance(inner, tirx.BufferStore):
        return channels if all_of(inner.value, TensorLoad) else _by_words(inner)
    if not isinstance(inner, tirx.IfThenElse) or not isinstance(inner.else_case, tirx.BufferStore):
        return channels
    bounds = conjuncts(inner.condition)
    of_channels = [bound for bound in bounds if uses(bound, ki)]
    of_pixel = [bound for bound in bounds if not uses(bound, ki)]
    some = around(channels, tirx.IfThenElse(tirx.Not(tirx.all(*of_channels)), inner.else_case, None))
    rest = some if of_channels else tirx.Evaluate(ZERO)
    return tirx.IfThenElse(tirx.all(*of_pixel), rest, _by_words(inner.else_case)) if of_pixel else rest


def _by_words(store: tirx.BufferStore) -> tirx.Stmt:
    """Write one value to all 32 channels of a pixel."""
    fill, at = tirx.Broadcast(store.value, WORD_BYTES), list(store.indices[:-1])
    words = (tirx.Ramp(int32(byte), 1, WORD_BYTES) for byte in range(0, CHANNEL_BLOCK, WORD_BYTES))
    return tirx.SeqStmt([tirx.BufferStore(store.buffer, fill, [*at, word]) for word in words])


def _value(epilogue: tirx.Stmt) -> tuple[tirx.BufferStore, list[tirx.Expr]]:
    """Find the store of a value, not of the fringe, and the conditions around it."""

    def found(statement: tirx.Stmt, conditions: list[tirx.Expr]) -> tuple[tirx.BufferStore, list[tirx.Expr]] | None:
        if isinstance(statement, tirx.For):
            return found(statement.body, conditions)
        if isinstance(statement, tirx.IfThenElse):
            inside = found(statement.then_case, [*conditions, statement.condition])
            is_other = inside is None and statement.else_case is not None
            return found(statement.else_case, [*conditions, tirx.Not(statement.condition)]) if is_other else inside
        if isinstance(statement, tirx.SeqStmt):
            return next((each for step in statement.seq if (each := found(step, conditions))), None)
        is_value = isinstance(statement, tirx.BufferStore) and all_of(statement.value, TensorLoad)
        return (statement, conditions) if is_value else None

    value = found(epilogue, [])
    assert value, "an epilogue stores values"
    return value
