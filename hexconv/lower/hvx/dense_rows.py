"""Lay out dense rows as copies that begin at other windows, and sum the windows (`hexconv.kernel.hvx.dense`).

The copies hold unsigned bytes: int8 activations become uint8 on the way.
"""

from tvm import tirx

from hexconv.kernel.hvx.dense import HALFWORD_BYTES, DenseRows
from hexconv.kernel.hvx.tiles import VECTOR_BYTES
from hexconv.lower.conv_step import Rows
from hexconv.lower.hvx import across, vector
from hexconv.lower.hvx.planes import Planes, each_new_row
from hexconv.schedule.block import Block, Number

PAIR = "int32x64"


def lay_dense_rows(
    block: Block, planes: Planes, dense: DenseRows, source: Rows, top: tirx.Expr, is_first: tirx.Expr
) -> None:
    """Lay out new rows as copies; `dense` says how they lie."""

    def one(at: Block, byte: tirx.Expr, to: Number) -> None:
        _copy_row(at, planes, dense, source.buffer, byte, at.bind("copies_row", to))

    each_new_row(block, planes, source, top, is_first, one)


def _copy_row(block: Block, planes: Planes, dense: DenseRows, source: tirx.Var, byte: Number, to: Number) -> None:
    """Copy a row as often as it takes; what lies behind the row isn't read."""
    size = dense.planes.source.row_bytes

    def one(at: Block, copy: int, number: Number, missing: int) -> None:
        value = vector.load(source, byte + (dense.left(copy) - missing) + number * VECTOR_BYTES)
        value = across.rotated(value, missing) if missing else value
        value = value if planes.conv.reads_unsigned else across.flipped(value)
        place = to + copy * dense.copy_bytes + number * VECTOR_BYTES
        at.store(planes.laid, vector.at(place), vector.stored(value))

    copies = range(dense.copies)

    def all_copies(at: Block, number: tirx.Expr) -> None:
        for copy in copies:
            one(at, copy, number, 0)

    whole = min(min(dense.copied(copy), max(size - dense.left(copy), 0) // VECTOR_BYTES) for copy in copies)
    block.loop("vector", whole, all_copies)
    for copy in copies:
        for number in range(whole, dense.copied(copy)):
            one(block, copy, number, max(dense.left(copy) + (number + 1) * VECTOR_BYTES - size, 0))


def sum_windows(block: Block, planes: Planes, dense: DenseRows, top: Number) -> None:
    """Sum the bytes of all windows of a row of outputs, as halfwords; `top` is the first row of the windows."""
    conv = planes.conv
    rows = [block.bind("row", planes.row(top + tap * conv.spec.dilation[0])) for tap in range(conv.spec.kernel[0])]
    pairs = dense.rows * dense.row_bytes
    evens = pairs + dense.halfwords_bytes

    def of_rows(at: Block, number: tirx.Expr, phase: int) -> None:
        first = at.bind("first", number * VECTOR_BYTES)
        loads = [vector.load(planes.laid, row + (phase * dense.copy_bytes) + first) for row in rows]
        total = at.bind("halfwords", _summed(loads), PAIR)
        even, odd = across.lower(total), across.upper(total)
        at.store(planes.laid, vector.at(first + pairs), vector.stored(_add(even, odd)))
        if dense.has_odd_byte:
            at.store(planes.laid, vector.at(first + evens), vector.stored(even))

    def of_windows(at: Block, number: tirx.Expr, phase: int) -> None:
        first = at.bind("first", number * VECTOR_BYTES)
        places = [pairs + pair * HALFWORD_BYTES for pair in range(dense.pairs)]
        places += [evens + dense.pairs * HALFWORD_BYTES] if dense.has_odd_byte else []
        total = vector.load(planes.laid, first + places[0])
        for place in places[1:]:
            total = _add(total, vector.load(planes.laid, first + place))
        to = dense.corrections_byte + phase * dense.copy_bytes
        at.store(planes.laid, vector.at(first + to), vector.stored(total))

    for phase in range(dense.phases):
        block.loop("vector", dense.copy_vectors, lambda at, number, phase=phase: of_rows(at, number, phase))
        block.loop("vector", dense.copy_vectors, lambda at, number, phase=phase: of_windows(at, number, phase))


def _summed(rows: list[tirx.Expr]) -> tirx.Expr:
    """Add up the bytes of vectors: a pair of vectors of halfwords, of the even bytes and of the odd ones."""
    padded = [*rows, vector.splat(0)] if len(rows) % 2 else rows
    total = vector.instruction("vaddubh", padded[0], padded[1], result=PAIR)
    for one, other in zip(padded[2::2], padded[3::2], strict=True):
        total = vector.instruction("vaddubh.acc", total, one, other, result=PAIR)
    return total


def _add(one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Add halfwords, modulo 65536."""
    return vector.instruction("vaddh", one, other)
