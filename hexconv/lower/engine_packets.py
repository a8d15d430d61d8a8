"""Replace a conv's innermost loops in the documents' nest by packets of the matrix engine, and its epilogue by HVX.

TVM has laid out the nest by then: caches have their sizes, indices their rings. What a step of the nest needs stands in
TIR as marks while buffers become flat and share memory, and is emitted at the end.

before:  for ko_inner, ho_inner, wo:                    after:  for ko_inner, ho_inner, wo:
             init; compute; epilogue                                EngineSums(source, below, weights, sums)
                                                                    EngineResults(sums, target)
                                                                    if part of the tile is no output: the fringe

A row of tiles starts at its left end with sums of zero. One tile takes the packets of its own crouton, which came with
the tile before it, a store of what is complete, the packets of the crouton to the right, and a store of the rest
(`hexconv.kernel.croutons`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer

from hexconv.kernel import NestLayouts
from hexconv.kernel.croutons import CROUTON_BYTES, EXPONENTS, TABLE_WORDS, TAP_BYTES, bias_tables
from hexconv.kernel.row_conv import RowConv, row_conv
from hexconv.kernel.tiles import VECTOR_BLOCKS
from hexconv.lower.buffers import held_by
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.narrow_sums import Lanes, deal_pixels, narrow
from hexconv.lower.hvx.parameters import Constants, offsets, scales, scales_of
from hexconv.lower.hvx.stores import BLOCK_PIXELS
from hexconv.lower.vtcm import SCOPE
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK
from hexconv.spec.names import numbered
from hexconv.spec.vectors import CONVERTS, OF_CHANNELS, Array, in_whole_blocks
from hexconv.tir import marks
from hexconv.tir.loops import LOOP_NAME, PART
from hexconv.tir.parts import Does, Part, convolution, read_part
from hexconv.tir.statements import Block, Number, int32
from hexconv.tir.trees import all_of, around, as_one, conjuncts, steps_of, with_values

SUMS, RESULTS, TOUCH = "hexconv_engine_sums", "hexconv_engine_results", "hexconv_engine_touch"
ZERO = int32(0)
COLUMN_BIT, ROW_BIT = 5, 8
"""Where the last column and the last row of the taps stand in the address of the activations."""
TABLES_WORDS = len(EXPONENTS) * TABLE_WORDS
PLANE_WORDS = CROUTON_BYTES // 4


@dataclass(frozen=True)
class EngineSums:
    """One tile of sums, 8 by 8 pixels of 32 channels: their bytes, in four planes.

    Attributes:
        number: the number of the conv, from 1.
        source: the first crouton of the row of tiles that it reads.
        below: the crouton below that.
        weights: the first weight of its 32 channels.
        sums: where its sums begin.
        tile: its number in the row of tiles.
        block: its block of 32 output channels.
    """

    number: int
    source: TensorLoad
    below: TensorLoad
    weights: TensorLoad
    sums: TensorLoad
    tile: tirx.Expr
    block: tirx.Expr
    tiles: int
    channel_blocks: int


@dataclass(frozen=True)
class EngineResults:
    """The results of one tile.

    Attributes:
        number: the number of the conv, from 1.
        sums: where its sums begin, in four planes.
        target: where its results begin.
        block: its block of 32 output channels.
    """

    number: int
    sums: TensorLoad
    target: TensorLoad
    block: tirx.Expr


def mark_tiles(main: tirx.PrimFunc) -> tirx.PrimFunc:
    """Put marks in the place of every conv's init, compute and epilogue (no blocks, buffers not yet flat)."""

    def visit(statement: tirx.Stmt, tile: tirx.Expr) -> tirx.Stmt:
        if isinstance(statement, tirx.For):
            is_tile = str(statement.annotations.get(LOOP_NAME, "")) == "wo"
            return around(statement, visit(statement.body, statement.loop_var if is_tile else tile))
        if isinstance(statement, tirx.SeqStmt):
            parts = {part.name: step for step in statement.seq if (part := _part(step)) and part.does is Does.CONV}
            if number := next((read_part(name).conv for name in parts if name.endswith("compute")), 0):
                return _marked(statement, number, parts, tile)
            return as_one([visit(step, tile) for step in statement.seq])
        if isinstance(statement, tirx.IfThenElse):
            other = statement.else_case and visit(statement.else_case, tile)
            return tirx.IfThenElse(statement.condition, visit(statement.then_case, tile), other)
        return statement

    return main.with_body(visit(main.body, ZERO))


def _part(statement: tirx.Stmt) -> Part | None:
    """The part of the chain that a statement is, inside of its guards."""
    while isinstance(statement, tirx.IfThenElse):
        statement = statement.then_case
    if isinstance(statement, tirx.For) and PART in statement.annotations:
        return read_part(str(statement.annotations[PART]))
    return None


def _marked(sequence: tirx.SeqStmt, number: int, parts: Mapping[str, tirx.Stmt], tile: tirx.Expr) -> tirx.Stmt:
    """Replace init, compute and epilogue of one tile by marks; keep what writes the fringe."""
    names = [convolution(number, block).name for block in ("init", "compute", "epilogue")]
    _init, compute, epilogue = (parts[name] for name in names)
    steps: list[tirx.Stmt] = []
    results, bounds = _results(number, epilogue)
    for step in sequence.seq:
        if step.same_as(compute):
            sums = _sums(number, compute, results, tile)
            steps += [_touched(sums.sums), bounds.where_some(marks.written(SUMS, sums))]
        elif step.same_as(epilogue):
            steps += [_touched(results.target), bounds.where_some(marks.written(RESULTS, results))]
            steps += bounds.where_not_all(epilogue)
        elif not any(step.same_as(part) for part in parts.values()):
            steps.append(step)
    return as_one(steps)


@dataclass(frozen=True)
class Bounds:
    """The conditions of the elements of a tile: bounds of sums of loops, at the first element and at the last one."""

    first: Sequence[tirx.Expr]
    last: Sequence[tirx.Expr]

    def where_some(self, statement: tirx.Stmt) -> tirx.Stmt:
        """Run a statement for tiles that have an element: each bound then holds at one end."""
        some = [tirx.any(*ends) for ends in zip(self.first, self.last, strict=True)]
        return tirx.IfThenElse(tirx.all(*some), statement, None) if some else statement

    def where_not_all(self, epilogue: tirx.Stmt) -> list[tirx.Stmt]:
        """Let an epilogue write the fringe of tiles in which not every element is an output."""
        if not self.first:
            return []
        fringe = tvm_ffi.structural_map(epilogue, (tirx.BufferStore, _without_loads))
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
    filter = next(load for load in loads if held_by(load.source).role == "filter")
    source = next(load for load in loads if load is not filter)

    def first(load: TensorLoad, at: Mapping[Any, Any], zeros: Sequence[int]) -> TensorLoad:
        indices = [Analyzer().simplify(with_values(index, at)) for index in load.indices]
        for axis in zeros:
            indices[axis] = ZERO
        return tirx.BufferLoad(load.source, indices)

    *_, tiles, channel_blocks, _rows, _columns, _channels = map(int, source.source.shape)
    return EngineSums(
        number=number,
        source=first(source, begin, (-5,)),
        below=first(source, {**begin, loops["hi"]: int32(ROW_BLOCK)}, (-5,)),
        weights=first(filter, begin, (-5, -4)),
        sums=results.sums,
        tile=tile,
        block=results.block,
        tiles=tiles,
        channel_blocks=channel_blocks,
    )


def _results(number: int, epilogue: tirx.Stmt) -> tuple[EngineResults, Bounds]:
    """Read the loops that requantise: what begins where, and which elements are outputs."""
    loops = [(loop.loop_var, int(loop.extent)) for loop in all_of(epilogue, tirx.For)]
    begin, end = ({variable: int32(at(size)) for variable, size in loops} for at in (lambda _: 0, lambda size: size - 1))
    store, conditions = _value(epilogue)
    simplify = Analyzer().simplify
    loads = all_of(store.value, TensorLoad)
    bias = next(load for load in loads if held_by(load.source).role == "bias")
    sums = next(load for load in loads if held_by(load.source).role == "accumulator")
    results = EngineResults(
        number=number,
        sums=tirx.BufferLoad(sums.source, [simplify(with_values(index, begin)) for index in sums.indices]),
        target=tirx.BufferLoad(store.buffer, [simplify(with_values(index, begin)) for index in store.indices]),
        block=simplify(tirx.floordiv(with_values(bias.indices[0], begin), int32(CHANNEL_BLOCK))),
    )
    bounds = [bound for each in conditions for bound in conjuncts(each)]
    ends = ([simplify(with_values(bound, at)) for bound in bounds] for at in (begin, end))
    return results, Bounds(*ends)


def _without_loads(store: tirx.BufferStore) -> tirx.Stmt:
    return tirx.Evaluate(ZERO) if all_of(store.value, TensorLoad) else store


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


@dataclass(frozen=True)
class EngineConv:
    """A conv of the matrix engine.

    Attributes:
        conv: the conv.
        tables: the argument with its bias tables.
        scales: the per-channel values of its requantisation, if there are any.
        converts: VTCM for the tables of one block of channels.
    """

    conv: RowConv
    tables: tirx.Buffer
    scales: Constants | None
    converts: tirx.Buffer

    @classmethod
    def of(cls, conv: RowConv, converts: tirx.Buffer) -> "EngineConv":
        """Declare the arguments of a conv."""
        words, name = conv.out_blocks * TABLES_WORDS, numbered(CONVERTS, conv.number)
        tables = tirx.decl_buffer((words,), "int32", name, data_alignment=instructions.BYTES)
        return cls(conv, tables, scales_of(conv, "global"), converts)

    @property
    def constants(self) -> list[tirx.Buffer]:
        """The arguments that it has in the place of its bias, multipliers and shifts."""
        return [self.tables, *([self.scales.argument] if self.scales else [])]

    def emit_sums(self, at: EngineSums) -> tirx.Stmt:
        """Emit the packets of a tile of sums."""
        block, last_row, last_column = Block(), self.conv.spec.kernel[0] - 1, self.conv.spec.kernel[1] - 1
        taps = (last_row + 1) * (last_column + 1)
        source, weights = at.source.indices[0], at.weights.indices[0]
        below = at.below.indices[0] - source if last_row else ZERO
        tap = int32(last_column << COLUMN_BIT | last_row << ROW_BIT)

        def multiply(to: Block, tile: Number) -> None:
            def one(inner: Block, channels: tirx.Expr) -> None:
                crouton = source + (tile * at.channel_blocks + channels) * CROUTON_BYTES
                first = weights + channels * (taps * TAP_BYTES)
                operands = _pointer(at.source, crouton), tap, below, _pointer(at.weights, first)
                _call(inner, "multiply", *operands, int32(taps * TAP_BYTES - 1))

            to.loop("rc_outer", at.channel_blocks, one)

        def begin(to: Block) -> None:
            _call(to, "clear")
            self._stage_tables(to, at.block)
            multiply(to, ZERO)

        def finish(to: Block) -> None:
            multiply(to, at.tile + 1)
            self._store(to, at, COLUMN_BLOCK - last_column, is_after=True, retains=True)

        block.when(at.tile == 0, begin)
        if last_column:
            self._store(block, at, COLUMN_BLOCK - last_column, is_after=False, retains=False)
            block.when(at.tile + 1 < at.tiles, finish)
        else:
            block.when(at.tile > 0, lambda to: multiply(to, at.tile))
            self._store(block, at, 0, is_after=True, retains=False)
        return block.statement()

    def _stage_tables(self, block: Block, number: tirx.Expr) -> None:
        """Copy the tables of a block of channels to VTCM."""

        def vector(at: Block, place: tirx.Expr) -> None:
            words = tirx.Ramp(number * TABLES_WORDS + place * instructions.WORDS, 1, instructions.WORDS)
            to = tirx.Ramp(place * instructions.WORDS, 1, instructions.WORDS)
            at.store(self.converts, to, instructions.moved(tirx.BufferLoad(self.tables, [words])))

        block.loop("vector", TABLES_WORDS // instructions.WORDS, vector)

    def _store(self, block: Block, at: EngineSums, split: int, is_after: bool, retains: bool) -> None:
        """Store all bytes of the sums on one side of a column; the last store drops the sums, or retains them too."""
        for place in range(len(EXPONENTS)):
            _call(block, "bias", tirx.address_of(tirx.BufferLoad(self.converts, [int32(place * TABLE_WORDS)])))
            plane = _pointer(at.sums, at.sums.indices[0] + place * PLANE_WORDS)
            stays = retains or place + 1 < len(EXPONENTS)
            _call(block, "store", plane, int32(split << COLUMN_BIT), int32(is_after), int32(stays))

    def emit_results(self, at: EngineResults) -> tirx.Stmt:
        """Emit HVX code that puts the bytes of sums together, narrows them, and stores four pixels at a time."""
        block, how = Block(), self.conv.narrowing
        assert how
        lanes = [self.scales.lanes(block, at.block * CHANNEL_BLOCK)] * VECTOR_BLOCKS if self.scales else []

        def four_pixels(inner: Block, number: tirx.Expr) -> None:
            words = [at.sums.indices[0] + place * PLANE_WORDS + number * instructions.WORDS for place in range(4)]
            bytes_ = [tirx.BufferLoad(at.sums.source, [tirx.Ramp(word, 1, instructions.WORDS)]) for word in words]
            bytes_ = [inner.bind("plane", load, instructions.VECTOR) for load in bytes_]
            self._narrow(inner, _whole(inner, bytes_), how, lanes, (at.target, number))

        block.loop("pixels", BLOCK_PIXELS // VECTOR_BLOCKS, four_pixels)
        return block.statement()

    def _narrow(
        self, block: Block, sums: Sequence[tirx.Expr], how: Any, lanes: Sequence[Lanes], to: tuple[TensorLoad, tirx.Expr]
    ) -> None:
        """Narrow the sums of four pixels, and store them."""
        target, number = to
        narrowed = instructions.clamped_bytes(narrow(block, sums, how, lanes), *self.conv.codes)
        place = tirx.Ramp(target.indices[0] + number * instructions.BYTES, 1, instructions.BYTES)
        block.store(target.source, place, instructions.stored(deal_pixels(block, narrowed)))


def _whole(block: Block, planes: Sequence[tirx.Expr]) -> list[tirx.Expr]:
    """Put bytes 0 to 3 of 128 sums together: four vectors of words, in the order of the bytes."""
    low, high = (
        block.bind("halves", instructions.interleaved(planes[place + 1], planes[place], 1), "int32x64") for place in (0, 2)
    )
    words: list[tirx.Expr] = []
    for part in (instructions.lower, instructions.upper):
        pair = block.bind("words", instructions.interleaved(part(high), part(low), 2), "int32x64")
        words += [block.bind("sums", half(pair), instructions.VECTOR) for half in (instructions.lower, instructions.upper)]
    return words


def _pointer(like: TensorLoad, index: Number) -> tirx.Expr:
    return tirx.address_of(tirx.BufferLoad(like.source, [index]))


def _call(block: Block, name: str, *operands: tirx.Expr) -> None:
    block.run(tirx.call_extern("int32", f"hexconv_hmx_{name}", *operands))


def emit_tiles(main: tirx.PrimFunc, convs: Sequence[RowConv]) -> tirx.PrimFunc:
    """Emit what every mark stands for (flat buffers, caches that share memory)."""
    converts = tirx.decl_buffer((TABLES_WORDS,), "int32", CONVERTS, scope=SCOPE, data_alignment=instructions.BYTES)
    made = {conv.number: EngineConv.of(conv, converts) for conv in convs}

    def emitted(statement: tirx.Evaluate) -> tirx.Stmt:
        if sums := marks.read(SUMS, EngineSums, statement):
            return made[sums.number].emit_sums(sums)
        if results := marks.read(RESULTS, EngineResults, statement):
            return made[results.number].emit_results(results)
        return statement

    def touched(store: tirx.BufferStore) -> tirx.Stmt:
        return tirx.Evaluate(ZERO) if marks.is_named(store.value, TOUCH) else store

    body = tvm_ffi.structural_map(main.body, (tirx.BufferStore, touched))
    body = tvm_ffi.structural_map(body, (tirx.Evaluate, emitted))
    replaced = {numbered(what, number) for number in made for what in OF_CHANNELS}
    *kept, output = [argument for argument in main.params if argument.name not in replaced]
    constants = [buffer for conv in made.values() for buffer in conv.constants]
    body = tirx.SeqStmt([tirx.AllocBuffer(converts), *steps_of(body)])
    return tirx.PrimFunc([*kept, *constants, output], body, attrs=main.attrs)


def engine_constants(
    chain: Chain, index: int, layouts: NestLayouts, plan: Plan, given: Mapping[str, Array]
) -> dict[str, Array]:
    """Lay out the constants of conv `index` (from 0) of a chain, from what it is given, by argument."""
    conv = row_conv(chain, index, layouts, plan, "hmx")
    names = [numbered(what, conv.number) for what in OF_CHANNELS if what != "bias"]
    whole = {name: in_whole_blocks(given[name]) for name in names if name in given}
    return {numbered(CONVERTS, conv.number): bias_tables(offsets(conv, given)), **scales(conv, {**given, **whole})}


def engine_convs(chain: Chain, layouts: NestLayouts, plan: Plan) -> tuple[RowConv, ...]:
    """Return the convs of a chain that the matrix engine computes."""
    return tuple(row_conv(chain, index, layouts, plan, "hmx") for index in range(len(chain.conv)))
