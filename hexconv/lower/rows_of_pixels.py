"""Find the loops that copy rows of pixels to croutons and back; marks stand for them until HVX code does.

before:  for wo, co, hi:                                        after:  for hi: CroutonRow(pixels, croutons)
             for wi: if the pixel is there:
                 for ci: cache[wo, co, hi, wi, ci] = input[row, column, co * 32 + ci]
             else:
                 for ci: cache[wo, co, hi, wi, ci] = zero point

TVM has laid out the nest by then, and buffers aren't flat yet (`hexconv.lower.crouton_rows` emits the code).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer

from hexconv.kernel.tiles import VECTOR_BLOCKS
from hexconv.lower.buffers import contents_of
from hexconv.lower.crouton_rows import READ, WRITE, CroutonRow
from hexconv.lower.hvx.instructions import BYTES
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.chain import PIXELS
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.tir import marks
from hexconv.tir.loops import LOOP_NAME, PART
from hexconv.tir.parts import INPUT_READ, WRITE_BACK, read_part
from hexconv.tir.statements import int32
from hexconv.tir.trees import all_of, around, as_one, conjuncts, uses, with_values

TOUCH = "hexconv_touch"
OF_PIXELS = ("wo", "co", "wi", "ci", "ko_inner", "ki")
"""The loops over the columns and the channels of a row."""
COLUMNS = -5
"""The axis of a cache that counts blocks of columns: NHWC8h8w32c."""
ZERO = int32(0)


def mark_rows(main: tirx.PrimFunc, chain: Chain, overlaps: bool) -> tirx.PrimFunc:
    """Put marks in the place of the loops that copy rows of pixels (no blocks, buffers not yet flat).

    What the copy engine moves stays as it is; it can't flip bits, so HVX copies what is flipped.

    Args:
        main: the nest.
        chain: its chain, in phase images.
        overlaps: whether the copy engine moves the ends of the chain.
    """
    ends, input_bytes = tensor_extents(chain), prod(chain.input)

    def row_read(row: CroutonRow) -> tirx.Stmt | None:
        return None if input_bytes < BYTES or (overlaps and not row.flips) else _marked(row, ends[0])

    def row_written(row: CroutonRow) -> tirx.Stmt | None:
        made, channels = row.blocks, ends[-1].channels
        in_whole_vectors = made % VECTOR_BLOCKS == 0 == channels % (made * CHANNEL_BLOCK)
        if overlaps or not (made == ends[-1].channel_blocks or in_whole_vectors):
            return None
        mark = marks.written(WRITE, row)
        return mark if row.is_there is None else tirx.IfThenElse(row.is_there, mark, None)

    def visit(loop: tirx.For) -> tirx.Stmt:
        part = read_part(str(loop.annotations.get(PART, "")))
        if part == INPUT_READ and chain.input_layout == PIXELS and not chain.unfolded:
            return _with_rows(loop, row_read)
        if part == WRITE_BACK and chain.output_layout == PIXELS:
            return _with_rows(loop, row_written)
        return loop

    return main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, visit)))


def _marked(row: CroutonRow, tensor: Extents) -> tirx.Stmt:
    """Return the mark of a row that is read."""
    image = int(row.croutons.indices[COLUMNS]) // tensor.phase_columns
    whole = replace(row, image=image, blocks=tensor.channel_blocks)
    return as_one([touched(row.croutons), marks.written(READ, whole)])


def unclamped(main: tirx.PrimFunc) -> tirx.PrimFunc:
    """Take off the clamps that keep indices of the input inside: rows of taps that it lacks have numbers, too.

    It goes before whatever simplifies: `max(hi * 3 - 3, 0)` would become `max(hi - 1, 0) * 3`.
    """

    def bare(index: tirx.Expr) -> tirx.Expr:
        while isinstance(index, (tirx.Min, tirx.Max)) and isinstance(index.b, tirx.IntImm):
            index = index.a
        return index

    def load(node: TensorLoad) -> TensorLoad:
        if contents_of(node.source).role != "input":
            return node
        return tirx.BufferLoad(node.source, [bare(index) for index in node.indices])

    def read(loop: tirx.For) -> tirx.Stmt:
        is_read = read_part(str(loop.annotations.get(PART, ""))) == INPUT_READ
        return tvm_ffi.structural_map(loop, (TensorLoad, load)) if is_read else loop

    return main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, read)))


def mark_unfolded(main: tirx.PrimFunc, chain: Chain) -> tirx.PrimFunc:
    """Put marks in the place of the loops that unfold the input (no blocks, buffers not yet flat).

    HVX always does: bytes of several taps lie too far apart for the copy engine.
    """
    tensor = tensor_extents(chain)[0]

    def row_read(row: CroutonRow) -> tirx.Stmt:
        image, number, *_ = row.pixels.indices
        pixels = tirx.BufferLoad(row.pixels.source, [image, ZERO, ZERO, ZERO])
        return _marked(replace(row, number=number, pixels=pixels), tensor)

    def visit(loop: tirx.For) -> tirx.Stmt:
        is_read = read_part(str(loop.annotations.get(PART, ""))) == INPUT_READ
        return _with_rows(loop, row_read) if is_read else loop

    return main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, visit)))


def _with_rows(statement: tirx.Stmt, marked: Callable[[CroutonRow], tirx.Stmt | None]) -> tirx.Stmt:
    """Replace the loops over the pixels of each row, where what they do can be marked."""
    if isinstance(statement, tirx.SeqStmt):
        return tirx.SeqStmt([_with_rows(step, marked) for step in statement.seq])
    if isinstance(statement, tirx.IfThenElse) and statement.else_case is None:
        return tirx.IfThenElse(statement.condition, _with_rows(statement.then_case, marked), None)
    if not isinstance(statement, tirx.For):
        return statement
    if loop_name(statement) not in OF_PIXELS:
        return around(statement, _with_rows(statement.body, marked))
    found = value_stored(statement)
    if found is None:
        return statement
    store, loops, conditions = found
    over = [loop.loop_var for loop in loops if loop_name(loop) in OF_PIXELS]
    rows = [loop for loop in loops if loop_name(loop) not in OF_PIXELS]
    others = [each for each in conditions if uses(each, *over)]
    if any(uses(each, *(loop.loop_var for loop in rows)) and not _of_channels(each, loops) for each in others):
        return statement
    of_rows = [each for each in conditions if not uses(each, *over)]
    mark = marked(_row_of(statement, store, of_rows, loops))
    for loop in reversed(rows):
        mark = mark and around(loop, mark)
    return as_part(statement, mark) if mark else statement


def _of_channels(condition: tirx.Expr, loops: Sequence[tirx.For]) -> bool:
    """Whether a condition is one of channels: of an unfolded input it says which taps are there."""
    return uses(condition, *(loop.loop_var for loop in loops if loop_name(loop) == "ci"))


def as_part(loop: tirx.For, body: tirx.Stmt) -> tirx.Stmt:
    """Let a statement stand for the loop that begins a part of the nest; any other loop is not needed any more."""
    if PART not in loop.annotations:
        return body
    notes = {PART: loop.annotations[PART], LOOP_NAME: "copy"}
    return tirx.For(tirx.Var("copy", "int32"), 0, 1, tirx.ForKind.SERIAL, body, annotations=notes)


def _row_of(
    statement: tirx.For, store: tirx.BufferStore, conditions: Sequence[tirx.Expr], loops: Sequence[tirx.For]
) -> CroutonRow:
    """Read what loops over the pixels of a row copy: `store`, under conditions of rows; of the first phase image."""
    (load,) = all_of(store.value, TensorLoad)
    rows = {loop_name(loop): loop.loop_var for loop in loops}
    target = begin_of_row(store.buffer, store.indices, loops, rows)
    source = begin_of_row(load.source, load.indices, loops, rows)
    tiles = [int(loop.extent) for loop in loops if loop_name(loop) == "ko_inner"]
    is_read, fringe = len(target.indices) > len(source.indices), fringe_stored(statement)
    batch, row, *_ = source.indices
    return CroutonRow(
        pixels=tirx.BufferLoad(source.source, [batch, row, ZERO, ZERO]) if is_read else target,
        croutons=target if is_read else source,
        blank=fringe and begin_of_row(fringe[0].buffer, fringe[0].indices, fringe[1], rows),
        is_there=tirx.all(*conditions) if conditions else None,
        image=0,
        fill=int(fringe[0].value) & 255 if fringe else 0,
        flips=int(not isinstance(store.value, TensorLoad)),
        blocks=tiles[0] if tiles else 1,
    )


def loop_name(loop: tirx.For) -> str:
    """Return the name of a loop."""
    return str(loop.annotations.get(LOOP_NAME, ""))


Stored = tuple[tirx.BufferStore, list[tirx.For], list[tirx.Expr]]
"""A store, with the loops and the conditions around it."""


def value_stored(statement: tirx.Stmt) -> Stored | None:
    """Find the store of a value, not of a constant; None if there is none."""
    return _stored(statement, lambda store: bool(all_of(store.value, TensorLoad)), [], [])


def fringe_stored(statement: tirx.Stmt) -> Stored | None:
    """Find the store of a constant; None if there is none."""
    return _stored(statement, lambda store: isinstance(store.value, tirx.IntImm), [], [])


def _stored(
    statement: tirx.Stmt,
    is_wanted: Callable[[tirx.BufferStore], bool],
    loops: list[tirx.For],
    conditions: list[tirx.Expr],
) -> Stored | None:
    if isinstance(statement, tirx.For):
        return _stored(statement.body, is_wanted, [*loops, statement], conditions)
    if isinstance(statement, tirx.IfThenElse):
        held = [*conditions, *conjuncts(statement.condition)]
        inside = _stored(statement.then_case, is_wanted, loops, held)
        if inside is not None or statement.else_case is None:
            return inside
        return _stored(statement.else_case, is_wanted, loops, [*conditions, tirx.Not(statement.condition)])
    if isinstance(statement, tirx.SeqStmt):
        found = (_stored(step, is_wanted, loops, conditions) for step in statement.seq)
        return next((each for each in found if each), None)
    is_found = isinstance(statement, tirx.BufferStore) and is_wanted(statement)
    return (statement, loops, conditions) if is_found else None


def begin_of_row(
    buffer: tirx.Var, indices: Sequence[tirx.Expr], loops: Sequence[tirx.For], rows: Mapping[str, tirx.Var]
) -> TensorLoad:
    """Return the first element of a row, of an access inside of some loops.

    Args:
        buffer: what is accessed.
        indices: where.
        loops: the loops around the access.
        rows: the variables by which loops over rows are known, by the names of the loops.
    """
    names = {loop.loop_var: loop_name(loop) for loop in loops}
    at = {variable: ZERO if name in OF_PIXELS else rows.get(name, variable) for variable, name in names.items()}
    return tirx.BufferLoad(buffer, [Analyzer().simplify(with_values(index, at)) for index in indices])


def touched(load: TensorLoad) -> tirx.Stmt:
    """Say that a buffer is written: caches have their names and their lifetimes by what stores to them."""
    return tirx.BufferStore(load.source, tirx.call_extern(str(load.source.dtype), TOUCH), list(load.indices))
