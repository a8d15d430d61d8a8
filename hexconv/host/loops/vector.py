"""Vectors of float32 as TIR expressions; the machine determines the number of lanes."""

from tvm import tirx

from hexconv.schedule.block import REGISTER, Block, Number

ALIGNMENT_BYTES = 64


def load(buffer: tirx.Buffer, element: Number, lanes: int) -> tirx.Expr:
    """Load a vector from `element` on."""
    return tirx.BufferLoad(buffer, [_places(element, lanes)])


def store(block: Block, buffer: tirx.Buffer, element: Number, value: tirx.Expr, lanes: int) -> None:
    """Write a vector from `element` on."""
    block.store(buffer, _places(element, lanes), value)


def _places(element: Number, lanes: int) -> Number:
    return tirx.Ramp(element, 1, lanes) if lanes > 1 else element


def filled(value: "float | tirx.Expr", lanes: int) -> tirx.Expr:
    """Return a vector with one value in every lane."""
    return tirx.Broadcast(tirx.const(value, "float32") if isinstance(value, (int, float)) else value, lanes)


def multiply_add(one: tirx.Expr, other: tirx.Expr, total: tirx.Expr, lanes: int) -> tirx.Expr:
    """Return `one * other + total`, in one instruction where the machine has it."""
    return tirx.call_llvm_pure_intrin(f"float32x{lanes}", f"llvm.fmuladd.v{lanes}f32", one, other, total)


def first_lanes(value: tirx.Expr, count: int, lanes: int) -> tirx.Expr:
    """Return the first `count` lanes of a vector, with zero in the others."""
    if count >= lanes:
        return value
    exists = tirx.Ramp(0, 1, lanes) < tirx.Broadcast(tirx.const(count, "int32"), lanes)
    return tirx.Select(exists, value, filled(0, lanes))


def register(block: Block, name: str, lanes: int) -> tirx.Buffer:
    """Allocate a buffer of one vector, small enough to be promoted to a register."""
    return block.allocate(tirx.decl_buffer((lanes,), "float32", REGISTER + name, data_alignment=ALIGNMENT_BYTES))
