"""Split int16 rows into high bytes and low bytes: HVX multiplies bytes.

The input cache holds whole elements, while tiles want words of four bytes that weigh alike. So before a row of outputs
is computed, the rows that its windows are the first to read are split. Scratch holds as many as a window has, of
the planes of channels that a tile multiplies.
"""

from tvm import tirx

from hexconv.kernel.channels import channel_form
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import VECTOR_BYTES
from hexconv.lower.conv_step import Rows, in_ring
from hexconv.lower.hvx import instructions
from hexconv.tir.statements import Block, Number, int32

HALVES = 64
"""int16 elements of a vector."""


def row_of_split(conv: RowConv, row: Number) -> Number:
    """Return the byte where a row lies after it was split; the first row that the step reads is row 0."""
    return tirx.floormod(row, int32(conv.spec.reach[0])) * channel_form(conv).tile_row_bytes


def split_rows(
    block: Block, conv: RowConv, source: Rows, apart: tirx.Buffer, top: tirx.Expr, is_first: tirx.Expr
) -> None:
    """Take apart the rows that the windows of a row of outputs are the first to read.

    Args:
        block: the block to emit into.
        conv: the conv that reads the rows.
        source: the rows of the input cache.
        apart: the buffer for the bytes that are split.
        top: the first row of the windows.
        is_first: whether no row of outputs came before: then all of them are new.
    """
    reach = conv.spec.reach[0]
    new = block.bind("new", tirx.Select(is_first, int32(reach), int32(min(reach, conv.spec.stride[0]))))

    def one(at: Block, index: tirx.Expr) -> None:
        row = at.bind("row", top + (reach - new) + index)
        size, planes = conv.plane_elements, conv.plane.count
        element = at.bind("element", in_ring(source, source.first + row) * (planes * size) + source.origin)
        byte = at.bind("byte", row_of_split(conv, row))

        def plane(inner: Block, number: tirx.Expr) -> None:
            to = byte + number * conv.plane.bytes
            _split_plane(inner, size, source.buffer, element + number * size, apart, to)

        at.loop("plane", channel_form(conv).planes, plane)

    block.loop("split", new, one)


def _split_plane(block: Block, size: int, source: tirx.Buffer, first: Number, apart: tirx.Buffer, byte: Number) -> None:
    """Take a plane of one row apart, 128 elements at a time, then the rest."""
    vectors, rest = divmod(size, VECTOR_BYTES)

    def two(at: Block, index: tirx.Expr) -> None:
        element = first + index * VECTOR_BYTES
        lower, upper = (_loaded(at, source, element + start) for start in (0, HALVES))
        at.store(
            apart,
            instructions.at(byte + index * VECTOR_BYTES),
            instructions.stored(instructions.high_bytes(upper, lower)),
        )
        at.store(
            apart,
            instructions.at(byte + size + index * VECTOR_BYTES),
            instructions.stored(instructions.low_bytes(upper, lower)),
        )

    def one(at: Block, index: tirx.Expr) -> None:
        place = index + vectors * VECTOR_BYTES
        value = at.bind("value", tirx.BufferLoad(source, [first + place]), "int16")
        at.store(apart, byte + place, (value >> tirx.const(8, "int16")).astype("uint8"))
        at.store(apart, byte + size + place, value.astype("uint8"))

    block.loop("vector", vectors, two)
    block.loop("element", rest, one)


def _loaded(block: Block, source: tirx.Buffer, element: Number) -> tirx.Expr:
    """Load 64 elements."""
    value = tirx.reinterpret(instructions.VECTOR, tirx.BufferLoad(source, [tirx.Ramp(element, 1, HALVES)]))
    return block.bind("halfwords", value, instructions.VECTOR)
