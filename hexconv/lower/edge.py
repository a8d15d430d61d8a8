"""Find the row of an element of the input or the output, whatever layout it has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer

from hexconv.errors import Unsupported
from hexconv.layout import Layout
from hexconv.lower.buffers import cache_name
from hexconv.lower.guards import IF_THEN_ELSE
from hexconv.schedule.trees import all_of
from hexconv.spec.names import INPUT_CACHE


@dataclass(frozen=True)
class Edge:
    """The input or the output of a chain.

    Attributes:
        argument: its buffer.
        layout: its layout.
    """

    argument: tirx.Var
    layout: Layout

    def row(self, indices: Sequence[tirx.Expr], known: Analyzer) -> tirx.Expr:
        """Return the row of the element that has these indices, without quotients and rests.

        Where rows lie in blocks, TVM may write `(row - 1) // 8` beside `(row + 7) % 8`, and not see that they are of
        one row: what the quotient q leaves is then written as `row - 1 - 8 * q`, so that q cancels out. If there is
        one block only, TVM may have left its number out, 0, and `known` tells what `(row + 7) // 8` is; or it has
        written what the quotient leaves as `row - 1`, and has kept the quotient, which is 0 where the element exists.

        Args:
            indices: the indices of the element.
            known: what is known of the variables where the element exists.
        """
        row = self._row(indices)
        if not all_of(row, tirx.FloorMod):
            sizes = zip(indices, self.argument.shape, strict=True)
            only = [tirx.const(0, "int32") if int(size) == 1 else index for index, size in sizes]
            return self._row(only) if all_of(row, tirx.FloorDiv) else row
        parts: list[tuple[type, Callable]] = [(tirx.FloorMod, lambda rest: _without_quotient(rest, known))]
        if quotients := all_of(row, tirx.FloorDiv):
            divided, by, quotient = quotients[0].a, quotients[0].b, tirx.Var("quotient", "int32")
            parts = [(tirx.FloorDiv, lambda _: quotient), (tirx.FloorMod, lambda _: divided - quotient * by)]
        return Analyzer().simplify(tvm_ffi.structural_map(row, parts))

    def _row(self, indices: Sequence[tirx.Expr]) -> tirx.Expr:
        return Analyzer().simplify(self.layout.logical_index(tuple(indices))[1])


def row_read(
    store: tirx.BufferStore, image: Edge, top: int, first_rows: Mapping[str, int], known: Analyzer
) -> tirx.Expr | None:
    """Return the stored row of the input that a store fills, None for a store into another cache.

    A ring counts rows. Another cache doesn't, but its load of the image tells the row. (TVM simplifies that load by the
    conditions on it, so its row may be another one in padding, and there may be no load at all where all is padding.)
    """
    name = store.buffer.name
    if name in first_rows and cache_name(store.buffer) == INPUT_CACHE:
        return store.indices[1] + int(first_rows[name])
    for load in all_of(store.value, TensorLoad):
        if load.source.same_as(image.argument):
            with known.constraint_scope(tirx.all(tirx.const(True, "bool"), *_conditions(store.value, load))):
                return image.row(load.indices, known) + top
    return None


def check_told(row: tirx.Expr | None) -> None:
    """Refuse a row that is known only where the image has it: threads have to tell their own rows in padding too.

    Raises:
        Unsupported: something is left to divide, so the row is another one in padding.
    """
    if row is not None and all_of(row, tirx.FloorDiv, tirx.FloorMod):
        raise Unsupported(
            "threads can't tell which rows are theirs of an input in one block of 8 rows, inside of padding; take "
            'input_layout = "NHWC", halo = "roll" or one thread'
        )


def _without_quotient(rest: tirx.FloorMod, known: Analyzer) -> tirx.Expr:
    """Return a rest as what was divided, less a number of divisors, where there is only one such number."""
    divided, divisor = known.const_int_bound(rest.a), int(rest.b)
    quotient = divided.min_value // divisor
    return rest.a - quotient * divisor if divided.max_value // divisor == quotient else rest


def _conditions(value: tirx.Expr, load: TensorLoad) -> Sequence[tirx.Expr]:
    """Return the conditions under which an expression evaluates a load."""
    choices = [call for call in all_of(value, Call) if call.op.same_as(IF_THEN_ELSE)]
    return [call.args[0] for call in choices if any(each.same_as(load) for each in all_of(call.args[1], TensorLoad))]
