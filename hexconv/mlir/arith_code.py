"""TIR expressions as operations of MLIR's `arith`: what follows a conv's sums is stated once, in `hexconv.compute`."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import tvm
from tvm import tirx
from tvm.ir import Call
from tvm.ir.expr import TensorLoad

from hexconv.compute.activation_code import CALLED, activated

INDENT = "  "
FLOATS = {"float16": "f16", "float32": "f32"}


def element_type(dtype: str) -> str:
    """Return MLIR's type of an element; integers have no sign, which operations have instead.

    >>> element_type("uint8"), element_type("float16"), element_type("bool")
    ('i8', 'f16', 'i1')
    """
    return FLOATS.get(dtype) or ("i1" if dtype == "bool" else f"i{tvm.DataType(dtype).bits}")


@dataclass(frozen=True)
class Region:
    """Lines of one function: those of a region, and of all regions inside of it.

    Attributes:
        lines: the lines of the function so far.
        depth: how deep the region stands.
        known: the names of results by their operations, which have no effect, in this region and those around it.
        number: counts the values of the function that have no names of their own.
        taken: how often each name was asked for in the function.
    """

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    known: dict[str, str] = field(default_factory=dict)
    number: Iterator[int] = field(default_factory=count)
    taken: Counter[str] = field(default_factory=Counter)

    def inside(self) -> "Region":
        """Return a region inside of this one."""
        return Region(self.lines, self.depth + 1, dict(self.known), self.number, self.taken)

    def named(self, name: str) -> str:
        """Return a name that the function has not had: this one, or with a number behind it."""
        self.taken[name] += 1
        return name if self.taken[name] == 1 else f"{name}_again{self.taken[name] - 1}"

    def say(self, line: str) -> None:
        """Add a line."""
        self.lines.append(f"{INDENT * self.depth}{line}")

    def value(self, operation: str) -> str:
        """Add an operation with one result, unless it is there, and return the result's name."""
        if operation not in self.known:
            self.known[operation] = f"%{next(self.number)}"
            self.say(f"{self.known[operation]} = {operation}")
        return self.known[operation]

    def constant(self, value: float, element: str) -> str:
        """Add a constant of an element type."""
        return self.value(f"arith.constant {literal(value, element)} : {element}")


def literal(value: float, element: str) -> str:
    """Write a constant as MLIR reads it back exactly.

    >>> literal(200, "i8"), literal(0.5, "f32"), literal(0, "f16")
    ('200', '5.0000000000000000e-01', '0.0000000000000000e+00')
    """
    return f"{value:.16e}" if element.startswith("f") else str(int(value))


Loads = Mapping[str, Callable[[Region, str], str]]
"""By the name of a buffer, from a region and the name of an index in it to the name of the element."""

INTEGER, FLOAT, UNSIGNED = "int", "float", "uint"
BINARY: dict[type[tirx.Expr], Mapping[str, str]] = {
    tirx.Add: {INTEGER: "arith.addi", FLOAT: "arith.addf"},
    tirx.Sub: {INTEGER: "arith.subi", FLOAT: "arith.subf"},
    tirx.Mul: {INTEGER: "arith.muli", FLOAT: "arith.mulf"},
    tirx.Min: {INTEGER: "arith.minsi", FLOAT: "arith.minimumf"},
    tirx.Max: {INTEGER: "arith.maxsi", FLOAT: "arith.maximumf"},
    tirx.LShift: {INTEGER: "arith.shli"},
    tirx.RShift: {INTEGER: "arith.shrsi"},
    tirx.BitwiseAnd: {INTEGER: "arith.andi"},
    tirx.And: {INTEGER: "arith.andi"},
}
COMPARED = {tirx.LT: ("slt", "olt"), tirx.GT: ("sgt", "ogt"), tirx.EQ: ("eq", "oeq")}


@dataclass(frozen=True)
class Arithmetic:
    """Writes one expression into a region.

    Attributes:
        region: the region.
        known: the names of values by the variables that stand for them.
        loads: how elements of buffers are read.
    """

    region: Region
    known: dict[tirx.Var, str]
    loads: Loads

    def value(self, of: tirx.Expr) -> str:
        """Write the operations that compute an expression, and return the name of its value."""
        if isinstance(of, tirx.Var):
            return self.known[of]
        if isinstance(of, (tirx.IntImm, tirx.FloatImm)):
            return self.region.constant(of.value, element_type(_dtype(of)))
        if isinstance(of, tirx.Cast):
            return self._cast(of)
        if isinstance(of, TensorLoad):
            return self.loads[of.source.name](self.region, self.value(of.indices[0]))
        if isinstance(of, Call):
            return self._call(of)
        return self._operation(of)

    def _operation(self, of: tirx.Expr) -> str:
        """Write an operation of two operands, or a selection."""
        if isinstance(of, tirx.Select):
            condition, chosen, other = (self.value(each) for each in (of.condition, of.true_value, of.false_value))
            return self.region.value(f"arith.select {condition}, {chosen}, {other} : {element_type(_dtype(of))}")
        left, right, element = self.value(of.a), self.value(of.b), element_type(_dtype(of.a))
        if type(of) in COMPARED:
            signed, ordered = COMPARED[type(of)]
            compared = f"arith.cmpf {ordered}" if element in FLOATS.values() else f"arith.cmpi {signed}"
            return self.region.value(f"{compared}, {left}, {right} : {element}")
        return self.region.value(f"{BINARY[type(of)][_kind(_dtype(of))]} {left}, {right} : {element}")

    def _cast(self, of: tirx.Cast) -> str:
        value, was, becomes = self.value(of.value), _dtype(of.value), _dtype(of)
        return cast(self.region, value, was, becomes)

    def _call(self, of: Call) -> str:
        """Write a call of TIR's own, or the arithmetic of an activation in the place of its call."""
        if of.op.name == "tirx.call_pure_extern":
            return self.value(activated(of.args[0].value.removeprefix(CALLED), *of.args[1:], bind=self._bind))
        assert of.op.name == "tirx.reinterpret", of
        value, was, becomes = self.value(of.args[0]), *(element_type(_dtype(each)) for each in (of.args[0], of))
        return value if was == becomes else self.region.value(f"arith.bitcast {value} : {was} to {becomes}")

    def _bind(self, name: str, value: tirx.Expr) -> tirx.Expr:
        """Compute a value once, for all that use the variable that is returned."""
        variable = tirx.Var(name, _dtype(value))
        self.known[variable] = self.value(value)
        return variable


def cast(region: Region, value: str, was: str, becomes: str) -> str:
    """Convert a value from one dtype to another; integers keep their low bits, or are extended by their own sign."""
    before, after = element_type(was), element_type(becomes)
    if before == after:
        return value
    return region.value(f"arith.{_conversion(was, becomes)} {value} : {before} to {after}")


def _conversion(was: str, becomes: str) -> str:
    wider = tvm.DataType(becomes).bits > tvm.DataType(was).bits
    if _kind(was) == FLOAT:
        return "extf" if wider else "truncf"
    if not wider:
        return "trunci"
    return "extui" if was.startswith(UNSIGNED) or was == "bool" else "extsi"


def _dtype(of: tirx.Expr) -> str:
    return str(of.ty.dtype)


def _kind(dtype: str) -> str:
    return FLOAT if dtype.startswith(FLOAT) else INTEGER
