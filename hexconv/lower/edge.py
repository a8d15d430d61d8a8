"""Find the row of an element of the input or the output, whatever layout it has."""

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer

from hexconv.layout import Layout


@dataclass(frozen=True)
class Edge:
    """The input or the output of a chain.

    Attributes:
        argument: its buffer.
        layout: its layout.
    """

    argument: tirx.Var
    layout: Layout

    def row(self, indices: Sequence[tirx.Expr]) -> tirx.Expr:
        """Return the row of the element that has these indices.

        Where rows lie in blocks, TVM may write `(row - 1) // 8` beside `(row + 7) % 8`, and not see that they are of
        one row: what the quotient q leaves is then written as `row - 1 - 8 * q`, so that q cancels out.
        """
        row = Analyzer().simplify(self.layout.logical_index(tuple(indices))[1])
        quotients, rests = list[tirx.FloorDiv](), list[tirx.FloorMod]()
        tvm_ffi.structural_walk(row, [(tirx.FloorDiv, quotients.append), (tirx.FloorMod, rests.append)])
        if not quotients or not rests:
            return row
        divided, by, quotient = quotients[0].a, quotients[0].b, tirx.Var("quotient", "int32")
        parts = [(tirx.FloorDiv, lambda _: quotient), (tirx.FloorMod, lambda _: divided - quotient * by)]
        return Analyzer().simplify(tvm_ffi.structural_map(row, parts))
