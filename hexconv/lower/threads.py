"""Parallelise a nest over bands of rows: each thread copies and computes only its own rows.

before:  filters, once                after:  filters, once
             for ho_outer in range(8):            for band in parallel(4):
                 input cache read                     first_row0 = ..., end_row0 = ..., first_stripe = ...
                 conv2d #1                            for ho_outer in range(stripes):
                 ...                                      input cache read, where first_row0 <= row < end_row0
                                                          ...

This runs after TVM's CompactBufferAllocation: a band's caches are those that TVM gives to the whole chain. A thread is
one trip of a loop in this one function, not a function of its own. So the loops that TVM compacts, that are run to
count, that are printed and that are compiled are the same loops, and the code of a band is there once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Range, TensorLoad
from tvm.sym import Analyzer

from hexconv.errors import Unsupported
from hexconv.kernel.bands import RowBands
from hexconv.layout import Layout
from hexconv.lower.buffers import argument, cache_name
from hexconv.lower.copies import MOST, is_over_bands, part_of
from hexconv.lower.split_copies import ranges_of
from hexconv.lower.step_calls import Mark
from hexconv.schedule.conv_blocks import FIRST_STRIPE, end_row, first_row
from hexconv.spec.names import INPUT, INPUT_CACHE, OUTPUT
from hexconv.tir.guards import IF_THEN_ELSE
from hexconv.tir.loops import LOOP_NAME, PART, STRIPES
from hexconv.tir.parts import Does
from hexconv.tir.trees import all_of, around, as_one, steps_of, with_values


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
        return store.indices[1] + first_rows[name]
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


TRIPS = "stripes"
_NUMBER = "tirx.call_pure_extern"
_NAMED = {LOOP_NAME: "band", PART: "bands"}


@dataclass(frozen=True)
class Numbers:
    """The variables that the guards of a band use; they get their values once TVM has simplified the guards.

    If they had values earlier, TVM would substitute them and work on long expressions everywhere.

    Attributes:
        bands: all bands of the chain.
        run_in: warm-up stripes before the first stripe of each band (`hexconv.schedule.stream`).
        known: the variables by name.
    """

    bands: RowBands
    run_in: int
    known: dict[str, tirx.Var]

    @classmethod
    def of(cls, bands: RowBands, run_in: int) -> "Numbers":
        """Make new variables for the bands of a chain."""
        tensors = range(len(bands.spans))
        names = [FIRST_STRIPE, TRIPS, *map(first_row, tensors), *map(end_row, tensors)]
        return cls(bands, run_in, {name: tirx.Var(name, "int32") for name in names})

    def first(self, tensor: int) -> tirx.Var:
        """Return the variable of the first row of a tensor that the band computes."""
        return self.known[first_row(tensor)]

    def end(self, tensor: int) -> tirx.Var:
        """Return the variable of one past the last row of a tensor that the band computes."""
        return self.known[end_row(tensor)]

    @property
    def ranges(self) -> dict[tirx.Var, Range]:
        """The range of values of each variable."""
        bands, last = self.bands, self.bands.count - 1
        ranges = {
            self.known[FIRST_STRIPE]: Range(0, bands.stripes(last)[0] + 1),
            self.known[TRIPS]: Range(1, self.most_trips + 1),
        }
        for tensor, span in enumerate(bands.spans):
            ranges[self.first(tensor)] = Range(0, bands.first(tensor, last) + 1)
            ranges[self.end(tensor)] = Range(1, span.rows + 1)
        return ranges

    def values(self, band: tirx.Var) -> Iterator[tirx.Stmt]:
        """Yield statements that give all variables their values in a band."""
        bands = self.bands
        for tensor, span in enumerate(bands.spans):
            most = tirx.min((band + 1) * (bands.rows * span.scale) + span.more, span.rows)
            end = tirx.Select(band == bands.count - 1, tirx.const(span.rows, "int32"), most)
            yield tirx.Bind(self.first(tensor), bands.first(tensor, band))
            yield tirx.Bind(self.end(tensor), end)
        output, first = len(bands.spans) - 1, self.known[FIRST_STRIPE]
        yield tirx.Bind(first, tirx.floordiv(self.first(output), bands.stripe_rows))
        end = tirx.floordiv(self.end(output) + (bands.stripe_rows - 1), bands.stripe_rows)
        yield tirx.Bind(self.known[TRIPS], end - first + self.run_in)

    @property
    def most_trips(self) -> int:
        """The stripes of the band that has most, warm-up included."""
        return self.bands.most_stripes + self.run_in


def in_bands(
    func: tirx.PrimFunc,
    numbers: Numbers,
    layouts: tuple[Layout, Layout],
    is_resident: bool,
    first_rows: Mapping[str, int],
) -> tirx.PrimFunc:
    """Parallelise a function over bands of rows (no blocks, rings not yet folded, buffers not yet flat).

    Args:
        func: the function of a nest of rows.
        numbers: the numbers of its bands, which are free variables of the function from here on.
        layouts: the layouts of its input and of its output.
        is_resident: whether filters are staged before all bands, for all of them.
        first_rows: the row at which each ring begins to count.
    """
    if numbers.bands.count == 1:
        return func
    steps = steps_of(func.body)
    shared = [step for step in steps if isinstance(step, tirx.AllocBuffer) or (is_resident and _reads_filter(step))]
    own = as_one([_striped(step, numbers) for step in steps if step not in shared])
    edges = [Edge(argument(func, name), layout) for name, layout in zip((INPUT, OUTPUT), layouts, strict=True)]
    body = _guarded(own, numbers, edges[0], edges[1], first_rows)
    band = tirx.Var("band", "int32")
    loop = tirx.For(band, 0, numbers.bands.count, tirx.ForKind.PARALLEL, body, annotations=_NAMED)
    return func.with_body(as_one([*shared, loop]))


def with_numbers(module: tvm.IRModule, numbers: Numbers) -> tvm.IRModule:
    """Give the variables of bands their values (flat buffers)."""
    main = module["main"]
    return tvm.IRModule(
        {"main": main.with_body(_with_begun(main.body, lambda loop: list(numbers.values(loop.loop_var))))}
    )


def with_memory(body: tirx.Stmt, memory: Sequence[tirx.Buffer], shared: Sequence[str] = ()) -> tirx.Stmt:
    """Allocate memory around a function's body: in each thread's own trip, except memory that all threads share.

    Args:
        body: the body of a function.
        memory: the buffers that it needs.
        shared: the names of the buffers that are allocated once for all threads.
    """
    has_bands = any(map(is_over_bands, steps_of(body)))
    own = [tirx.AllocBuffer(buffer) for buffer in memory if has_bands and buffer.name not in shared]
    once = [tirx.AllocBuffer(buffer) for buffer in memory if not has_bands or buffer.name in shared]
    return as_one([*once, *steps_of(_with_begun(body, lambda _loop: own))])


def _with_begun(body: tirx.Stmt, more: Callable[[tirx.For], Sequence[tirx.Stmt]]) -> tirx.Stmt:
    """Insert statements where each thread begins."""

    def inside(step: tirx.Stmt) -> tirx.Stmt:
        if not isinstance(step, tirx.For) or not is_over_bands(step):
            return step
        return around(step, as_one([*more(step), *steps_of(step.body)]))

    return as_one([inside(step) for step in steps_of(body)])


def _striped(step: tirx.Stmt, numbers: Numbers) -> tirx.Stmt:
    """Let the loop over stripes of the output run over the stripes of the band alone."""
    first, trips = numbers.known[FIRST_STRIPE], numbers.known[TRIPS]

    def visit(loop: tirx.For) -> tirx.Stmt:
        if loop.annotations.get(LOOP_NAME) != STRIPES:
            return loop
        moved = with_values(loop.body, {loop.loop_var: first + loop.loop_var})
        notes = {**loop.annotations, MOST: numbers.most_trips}
        return tirx.For(loop.loop_var, loop.min, trips, loop.kind, moved, annotations=notes)

    return tvm_ffi.structural_map(step, (tirx.For, visit))


def _guarded(
    body: tirx.Stmt,
    numbers: Numbers,
    read: Edge,
    written: Edge,
    first_rows: Mapping[str, int],
) -> tirx.Stmt:
    """Restrict copies in and copies out to the band's rows, and add these rows to the arguments of marks of convs.

    `first_rows` has the row at which each ring begins to count.
    """
    known = ranges_of(body, {})
    asked, output = {f"hexconv_{name}": variable for name, variable in numbers.known.items()}, len(numbers.bands.spans)

    def named(call: Call) -> tirx.Expr:
        return asked.get(str(call.args[0].value), call) if call.op.name == _NUMBER else call

    def within(statement: tirx.Stmt, tensor: int, row: tirx.Expr) -> tirx.Stmt:
        return tirx.IfThenElse(tirx.all(numbers.first(tensor) <= row, row < numbers.end(tensor)), statement, None)

    def row_of_input(statement: tirx.BufferStore) -> tirx.Expr | None:
        return row_read(statement, read, numbers.bands.tops[0], first_rows, known)

    def store(statement: tirx.BufferStore) -> tirx.Stmt:
        if statement.buffer.same_as(written.argument):
            return within(statement, output - 1, written.row(statement.indices, known))
        row = row_of_input(statement)
        if row is not None:
            return within(statement, 0, row)
        return statement

    def marked(statement: tirx.Evaluate) -> tirx.Stmt:
        mark = Mark.of(statement)
        if mark is None:
            return statement
        return mark.in_band(numbers.first(mark.number), numbers.end(mark.number)).statement

    for statement in all_of(body, tirx.BufferStore):  # here, since no error passes through TVM's map
        check_told(row_of_input(statement))
    body = tvm_ffi.structural_map(body, (Call, named))
    return tvm_ffi.structural_map(body, [(tirx.BufferStore, store), (tirx.Evaluate, marked)])


def _reads_filter(step: tirx.Stmt) -> bool:
    """Whether a statement reads a whole filter."""
    part = part_of(step)
    return part is not None and part.does == Does.READ_FILTER
