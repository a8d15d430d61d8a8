"""Find a conv's tiles in the documents' nest, and let marks stand for them until the matrix engine's packets do.

TVM has laid out the nest by then: caches have their sizes, indices their rings. What a tile needs stands in TIR as
marks while buffers become flat and share memory (`hexconv.lower.engine_packets` emits it at the end).

before:  for ko_inner, ho_inner, wo:                    after:  for ko_inner, ho_inner, wo:
             init; compute; epilogue                                EngineSums(source, below, weights, sums)
                                                                    EngineResults(sums, target)
                                                                    if part of the tile is no output: the fringe

Where threads share the rows of tiles, a row of sums is made before all of its results, in a cache of its thread:

before:  for ko_inner, ho_inner:                        after:  for ko_inner, ho_inner:
             for wo: init; compute                                  for wo: EngineSums(source, below, weights, sums)
             for wo: epilogue                                       for wo: EngineResults(sums, target); the fringe
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad, TensorRegion
from tvm.s_tir import SBlock
from tvm.sym import Analyzer

from hexconv.lower.buffers import contents_of
from hexconv.lower.crouton_rows import FRINGE, Fringe
from hexconv.lower.engine_packets import RESULTS, SUMS, ZERO, EngineResults, EngineSums
from hexconv.lower.lowered import Lowering
from hexconv.lower.rows_of_pixels import Stored, begin_of_row, fringe_stored, loop_name, touched, value_stored
from hexconv.lower.split_copies import ranges_of
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK
from hexconv.tir import marks
from hexconv.tir.loops import PART
from hexconv.tir.parts import INPUT_READ, Does, Part, convolution, read_part
from hexconv.tir.statements import int32
from hexconv.tir.trees import all_of, around, as_one, buffers_in, steps_of, uses, with_values

IN_TILES, SLABS, COLUMNS, ROWS = 7, -6, -5, -3
"""The number of axes, and those of a source that count blocks of rows, blocks of columns, and rows of a block:
NHWC8h8w32c."""
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

    def visit(statement: tirx.Stmt, tile: TileOfRow, tiles: Sequence[Tile]) -> tirx.Stmt:
        if made := _replaced(statement, tiles, tile):
            return as_one(made)
        if isinstance(statement, tirx.For):
            own = TileOfRow(statement.loop_var, int(statement.extent) - 1) if loop_name(statement) == "wo" else tile
            return around(statement, visit(statement.body, own, tiles))
        if isinstance(statement, tirx.SeqStmt):
            inside = [*_tiles_in(statement, nest.converted)] or tiles
            return as_one([visit(step, tile, inside) for step in statement.seq])
        if isinstance(statement, tirx.IfThenElse):
            other = statement.else_case and visit(statement.else_case, tile, tiles)
            return tirx.IfThenElse(statement.condition, visit(statement.then_case, tile, tiles), other)
        return statement

    def allocated(memory: tirx.AllocBuffer) -> tirx.Stmt:
        held = contents_of(memory.buffer)
        stays = held.role == "accumulator" and held.number in nest.converted
        return tirx.Evaluate(ZERO) if stays else memory

    body = visit(nest.main.body, TileOfRow(ZERO, 0), ())
    body = tvm_ffi.structural_map(body, (tirx.AllocBuffer, allocated))
    return nest.to(nest.main.with_body(with_values(body, _of_threads(body, nest.threads))))


def _of_threads(body: tirx.Stmt, threads: int) -> dict[tirx.Var, tirx.Var]:
    """Declare caches of sums anew where each of several threads has one, along the axis of images."""
    if threads == 1:
        return {}
    sums = [buffer for buffer in buffers_in(body) if contents_of(buffer).role == "accumulator"]
    return {
        old: tirx.decl_buffer((threads, *old.shape[1:]), old.dtype, old.name, scope=old.scope(), layout=None)
        for old in sums
    }


def carry_columns(module: tvm.IRModule) -> tvm.IRModule:
    """Let columns of a tile carry into the number of the tile, where TVM leaves that out of what a guard lets by.

    A tensor of one logical column needs one tile of each phase image of what it reads. Without the carry the schedule
    would leave the tiles behind it out of the last image alone, and images would differ in size.

    before:  if wi < 2: ... cache[..., image * 2 + rw // 4, ..., rw % 4 * 2 + wi, ...]
    after:   if wi < 2: ... cache[..., image * 2 + rw // 4 + (rw % 4 * 2 + wi) // 8, ..., (rw % 4 * 2 + wi) % 8, ...]
    """
    main = module["main"]
    of_blocks = {each.var: each.dom for block in all_of(main.body, SBlock) for each in block.iter_vars}
    ranges = ranges_of(main.body, of_blocks)

    def carried(source: tirx.Var, indices: Sequence[tirx.Expr]) -> list[tirx.Expr]:
        made, column = list(indices), indices[-2] if len(indices) == IN_TILES else ZERO
        is_block = len(indices) == IN_TILES and int(source.shape[-2]) == COLUMN_BLOCK
        if is_block and ranges.const_int_bound(column).max_value >= COLUMN_BLOCK:
            made[COLUMNS], made[-2] = made[COLUMNS] + column // COLUMN_BLOCK, column % COLUMN_BLOCK
        return made

    def load(node: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(node.source, carried(node.source, node.indices))

    def region(node: TensorRegion) -> TensorRegion:
        firsts = carried(node.source, [each.min for each in node.region])
        whole = [Range.from_min_extent(first, each.extent) for first, each in zip(firsts, node.region, strict=True)]
        return tirx.BufferRegion(node.source, whole)

    body = tvm_ffi.structural_map(main.body, [(TensorLoad, load), (TensorRegion, region)])
    return tvm.IRModule({"main": main.with_body(body)})


def read_images_apart(main: tirx.PrimFunc, images: int) -> tirx.PrimFunc:
    """Read the phase images of the input one after the other, so that each condition is a bound of a loop.

    before:  for wo in range(8): ... if 3 <= hi * 2 + wo // 4: ...
    after:   for wo in range(2): ... if 3 <= hi * 2: ...
             ...                                                and three loops more, of the other images
    """

    def of_image(loop: tirx.For, image: int) -> tirx.Stmt:
        columns, cut = divmod(int(loop.extent), images)
        assert not cut, f"{images} phase images have {loop.extent} blocks of columns"
        variable, first = tirx.Var(loop.loop_var.name, "int32"), int32(image * columns)
        body = with_values(loop.body, {loop.loop_var: variable + first})
        fresh = {each.loop_var: tirx.Var(each.loop_var.name, "int32") for each in all_of(body, tirx.For)}
        one = tirx.For(variable, 0, int32(columns), loop.kind, with_values(body, fresh), annotations=loop.annotations)
        return _simplified(one)

    def visit(loop: tirx.For) -> tirx.Stmt:
        return as_one([of_image(loop, image) for image in range(images)]) if loop_name(loop) == "wo" else loop

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
        guards: the conditions around the loop over the results of a row, where that is one of its own.
        place: the variable of that loop.
    """

    number: int
    is_converted: bool
    init: tirx.Stmt
    compute: tirx.Stmt
    epilogue: tirx.Stmt
    guards: tuple[tirx.Expr, ...] = ()
    place: tirx.Var | None = None

    def beside(self, tile: TileOfRow) -> "Tile":
        """Return the tile as the loop over the sums of its row has it."""
        if self.place is None or self.place.same_as(tile.number):
            return self
        epilogue = with_values(self.epilogue, {self.place: tile.number})
        return replace(
            self, epilogue=tirx.IfThenElse(tirx.all(*self.guards), epilogue, None) if self.guards else epilogue
        )


@dataclass(frozen=True)
class _Found:
    """A statement of a tile, the conditions around the loop over a row that has it alone, and that loop's variable."""

    statement: tirx.Stmt
    guards: tuple[tirx.Expr, ...]
    place: tirx.Var | None


def _tiles_in(sequence: tirx.SeqStmt, converted: Collection[int]) -> Iterator[Tile]:
    """Yield the tiles whose statements a sequence has, by themselves or in loops over a row of tiles."""
    parts = {name: found for step in sequence.seq for name, found in _found(step, (), None)}
    for number in [read_part(name).conv for name in parts if name.endswith("compute")]:
        names = (convolution(number, block).name for block in ("init", "compute", "epilogue"))
        init, compute, epilogue = (parts.get(name) for name in names)
        # Where it has no loops around, its epilogue has the conv's name.
        epilogue = epilogue or parts.get(convolution(number).name)
        if init and compute and epilogue:
            statements = init.statement, compute.statement, epilogue.statement
            yield Tile(number, number in converted, *statements, epilogue.guards, epilogue.place)


def _found(step: tirx.Stmt, guards: tuple[tirx.Expr, ...], place: tirx.Var | None) -> Iterator[tuple[str, _Found]]:
    """Yield the statements of tiles in a statement, by the names of their parts."""
    inner = step
    while isinstance(inner, tirx.IfThenElse):
        inner = inner.then_case
    if isinstance(inner, tirx.For) and loop_name(inner) == "wo":
        around_row = guards
        while isinstance(step, tirx.IfThenElse):
            around_row, step = (*around_row, step.condition), step.then_case
        for each in steps_of(inner.body):
            yield from _found(each, around_row, inner.loop_var)
    elif (part := _part(step)) and part.does is Does.CONV:
        yield part.name, _Found(step, guards, place)


def _replaced(step: tirx.Stmt, tiles: Sequence[Tile], tile: TileOfRow) -> list[tirx.Stmt] | None:
    """Replace a statement of a tile by marks, and by what writes the fringe; None for any other statement."""
    for each in tiles:
        if step.same_as(each.init):
            return [tirx.Evaluate(ZERO)]
        if step.same_as(each.compute):
            results, bounds = _results(each.beside(tile))
            sums = _sums(each.number, each.compute, results, tile.number)
            writes = [touched(load) for load in (sums.sums, sums.target) if load is not None]
            return [*writes, bounds.of_rows(tile).where_some(marks.written(SUMS, sums))]
        if step.same_as(each.epilogue):
            results, bounds = _results(each)
            marked = bounds.where_some(marks.written(RESULTS, results))
            return [touched(results.target), marked, *_fringe(each)]
    return None


@dataclass(frozen=True)
class Bounds:
    """The conditions of the elements of a tile: bounds of sums of loops, at the first element and at the last one."""

    first: Sequence[tirx.Expr]
    last: Sequence[tirx.Expr]

    @classmethod
    def of(cls, bounds: Sequence[tirx.Expr], loops: Mapping[tirx.Var, int]) -> "Bounds":
        """Return bounds at both ends of loops, of so many trips."""
        begin, end = dict.fromkeys(loops, ZERO), {variable: int32(trips - 1) for variable, trips in loops.items()}
        first, last = ([Analyzer().simplify(with_values(each, at)) for each in bounds] for at in (begin, end))
        return cls(first, last)

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

    def where_not_all(self, statement: tirx.Stmt) -> tirx.Stmt:
        """Run a statement for tiles in which not every element is an output."""
        return tirx.IfThenElse(tirx.Not(tirx.all(*self.first, *self.last)), statement, None)


def _fringe(of: Tile) -> list[tirx.Stmt]:
    """Fill what is no output of a tile, row by row; channels only of the chain's output: no weight reads others.

    before:  for hi, wi, ki: if row and column and channel: store a value       after:   for hi: Fringe(row, columns)
                             else: store the fringe
    """
    if isinstance(of.epilogue, tirx.IfThenElse):  # of a tile that the nest may not have
        inside = _fringe(replace(of, epilogue=of.epilogue.then_case))
        return [tirx.IfThenElse(of.epilogue.condition, each, None) for each in inside]
    store, loops, conditions = _stored(of)
    variables = {loop_name(loop): loop.loop_var for loop in loops}
    hi, wi, ki = (variables[name] for name in ("hi", "wi", "ki"))
    is_output = contents_of(store.buffer).role == "output"
    some = [each for each in conditions if is_output or not uses(each, ki)]
    blank = fringe_stored(of.epilogue)
    if not some or not blank:
        return []
    of_columns, of_channels = ([each for each in some if uses(each, over)] for over in (wi, ki))
    of_rows = [each for each in some if not uses(each, wi, ki)]
    assert not any(uses(each, hi) for each in of_columns), "a condition is one of rows, or one of columns"
    simplify, zeros = Analyzer().simplify, {wi: ZERO, ki: ZERO}
    bits = [
        tirx.Select(simplify(with_values(tirx.all(*of_columns), {wi: int32(at)})), int32(1 << at), ZERO)
        for at in range(COLUMN_BLOCK if of_columns else 0)
    ]
    fringe = Fringe(
        croutons=begin_of_row(store.buffer, store.indices, loops, variables),
        blank=begin_of_row(blank[0].buffer, blank[0].indices, blank[1], variables),
        is_there=tirx.all(*of_rows) if of_rows else None,
        columns=sum(bits[1:], bits[0]) if bits else None,
        channels=simplify(with_values(_room(of_channels), zeros)) if of_channels else None,
        fill=int(blank[0].value) & 255,
    )
    bounds = Bounds.of(some, {loop.loop_var: int(loop.extent) for loop in loops})
    (rows,) = [loop for loop in loops if loop.loop_var.same_as(hi)]
    return [bounds.where_not_all(around(rows, marks.written(FRINGE, fringe)))]


def _room(conditions: Sequence[tirx.Expr]) -> tirx.Expr:
    """Return by how much the left side of a bound from above, the only one, may grow."""
    (bound,) = conditions
    assert isinstance(bound, tirx.LT), "a tile may have channels behind the last one, and none before the first"
    return bound.b - bound.a


def _sums(number: int, compute: tirx.Stmt, results: EngineResults, tile: tirx.Expr) -> EngineSums:
    """Read the loops that sum: the element at which each operand begins."""
    loops = {loop_name(loop): loop.loop_var for loop in all_of(compute, tirx.For)}
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
    crouton = first(source, at_first, (COLUMNS, ROWS))

    def under(slabs: int) -> TensorLoad:
        indices, at = [*crouton], {**at_first, loops["hi"]: int32(slabs * ROW_BLOCK)}
        indices[SLABS] = first(source, at, ())[SLABS]
        return tirx.BufferLoad(source.source, indices)

    return EngineSums(
        number=number,
        source=tirx.BufferLoad(source.source, crouton),
        below=(under(1), under(2)),
        weights=tirx.BufferLoad(filter.source, first(filter, begin, (KERNEL_ROWS, KERNEL_COLUMNS))),
        sums=results.sums,
        tile=tile,
        block=results.block,
        target=results.target if results.sums is None else None,
    )


def _stored(of: Tile) -> Stored:
    """The store of a result, with the loops and the conditions around it."""
    found = value_stored(of.epilogue)
    assert found, "an epilogue stores values"
    return found


def _results(of: Tile) -> tuple[EngineResults, Bounds]:
    """Read the loops that requantise: what begins where, and which elements are outputs."""
    loops = {loop.loop_var: int(loop.extent) for loop in all_of(of.epilogue, tirx.For)}
    begin = dict.fromkeys(loops, ZERO)
    store, _, bounds = _stored(of)
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
    return results, Bounds.of(bounds, loops)
