"""Mark what convs write: each block that writes a result says where in the whole tensor that is.

The mark is a call of no function. It stands in the block, and its arguments are expressions of the block's axes, so
TVM's own passes keep them right wherever the loops go.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, TensorLoad

from hexconv.lower.sblock import with_body
from hexconv.spec.extents import CHANNEL_BLOCK

MARK = "hexconv_at"
KEPT = "hexconv_kept"


@dataclass(frozen=True)
class Result:
    """How the block that writes a conv's result counts rows and channels.

    Attributes:
        number: the number of the conv, from 1.
        image_axis: the block's axis of images.
        row_axis: the block's axis of rows.
        channel_axis: the block's axis of blocks of channels.
        channels: how many channels one step along `channel_axis` is.
        rows: how many rows one step along `row_axis` is.
    """

    number: int
    image_axis: int
    row_axis: int
    channel_axis: int
    channels: int
    rows: int


@dataclass(frozen=True)
class Mark:
    """Where in the whole tensor a block writes its result.

    Attributes:
        number: the number of the conv, from 1.
        image: the image that it writes.
        row: the row that it writes, or the first row of a block of rows.
        rows: how many rows such a block has.
        block: the block of 32 channels that it writes.
        band: the rows that a thread makes, the first and one past the last; None where one thread makes all.
    """

    number: int
    image: tirx.Expr
    row: tirx.Expr
    rows: int
    block: tirx.Expr
    band: tuple[tirx.Expr, tirx.Expr] | None = None

    @classmethod
    def of(cls, statement: Any) -> "Mark | None":
        """Read a mark; None for a statement that is no mark."""
        if not isinstance(statement, tirx.Evaluate) or not is_call(statement.value, MARK):
            return None
        number, image, row, rows, block, *band = statement.value.args[1:]
        return cls(int(number), image, row, int(rows), block, (band[0], band[1]) if band else None)

    @property
    def statement(self) -> tirx.Stmt:
        """Write the mark as it stands in a block."""
        arguments = (self.number, self.image, self.row, self.rows, self.block, *(self.band or ()))
        return tirx.Evaluate(tirx.call_extern("int32", MARK, *arguments))

    def in_band(self, first: tirx.Expr, end: tirx.Expr) -> "Mark":
        """Return the same mark in a thread that makes rows `first` .. `end - 1`."""
        return replace(self, band=(first, end))


def mark(module: tvm.IRModule, results: Mapping[str, Result]) -> tvm.IRModule:
    """Say in each block that writes a result where in the whole tensor that is.

    Args:
        module: a scheduled module with blocks.
        results: the results of the convs, by the names of the blocks that write them.
    """

    def marked(block: s_tir.SBlock) -> s_tir.SBlock:
        if block.name_hint not in results:
            return block
        result = results[block.name_hint]
        axes = (result.image_axis, result.row_axis, result.channel_axis)
        image, row, channel = (block.iter_vars[axis].var for axis in axes)
        number = _blocks(channel, result.channels)
        at = Mark(result.number, image, row * result.rows, result.rows, number).statement
        return with_body(block, tirx.SeqStmt([at, block.body]))

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (s_tir.SBlock, marked)))})


def touch_kept(element: TensorLoad) -> tirx.Stmt:
    """Say that a step touches an element of the columns that it keeps for the next strip."""
    return tirx.Evaluate(tirx.call_extern("int32", KEPT, element))


def touched_kept(statement: tirx.Stmt) -> TensorLoad | None:
    """Return the element that such a statement names; None for any other statement."""
    if not isinstance(statement, tirx.Evaluate) or not is_call(statement.value, KEPT):
        return None
    call: Any = statement.value
    return call.args[1]


def is_call(value: Any, name: str) -> bool:
    """Return whether a value calls a function of this project's that has some name."""
    return isinstance(value, Call) and value.op.name == "tirx.call_extern" and value.args[0].value == name


def _blocks(place: tirx.Expr, channels: int) -> tirx.Expr:
    """The block of 32 channels at a place along an axis that counts `channels` at a time."""
    if channels >= CHANNEL_BLOCK:
        return place * (channels // CHANNEL_BLOCK)
    return tirx.floordiv(place, tirx.const(CHANNEL_BLOCK // channels, "int32"))
