"""Look into the loops of one step of a conv: what they make and from what, and the guards that they stand under."""

from dataclasses import dataclass

from tvm import tirx
from tvm.ir import TensorLoad

from hexconv.lower.buffers import held_by
from hexconv.lower.conv_marks import Mark, touched_kept
from hexconv.lower.ranges import ZERO, range_of
from hexconv.schedule.loops import LOOP_NAME
from hexconv.schedule.trees import all_of, conjuncts, with_values


@dataclass(frozen=True)
class Inside:
    """The statements inside of the loops of a step.

    Attributes:
        loops: the variables of the loops.
        named: the loops that have names, by name.
        guards: the conditions around the result.
        at: where in the whole tensor the result is.
        result: the store of the result.
        sums: the store that adds a product; None where no element of the result is logical.
        kept: the elements at which the columns begin that it keeps for the next strip, for each tensor.
    """

    loops: list[tirx.Var]
    named: dict[str, tirx.For]
    guards: list[tirx.Expr]
    at: Mark
    result: tirx.BufferStore
    sums: tirx.BufferStore | None
    kept: list[TensorLoad]

    def begin(self, expression: tirx.Expr) -> tirx.Expr:
        """Return an expression where all loops of the step begin."""
        return with_values(expression, dict.fromkeys(self.loops, ZERO))

    def extent(self, name: str) -> int:
        """Return how often a loop of the step runs."""
        return int(self.named[name].extent) if name in self.named else 1

    def trips(self, name: str) -> tuple[tirx.Expr, tirx.Expr]:
        """Return the trips of a loop of the step that its guards let through: the first, and one past the last."""
        if name not in self.named:
            return ZERO, tirx.const(1, "int32")
        loop = self.named[name]
        begin, end = range_of(self.guards, loop.loop_var, loop.extent)
        return self.begin(begin), self.begin(end)

    @property
    def operands(self) -> tuple[TensorLoad, TensorLoad] | None:
        """Return the loads of a product's activation and filter; of bytes that lie apart, those of the high bytes."""
        if self.sums is None:
            return None
        loads = all_of(self.sums.value, TensorLoad)
        others = [load for load in loads if not load.source.same_as(self.sums.buffer)]
        of_filter = [load for load in others if held_by(load.source).role == "filter"]
        return next(load for load in others if load not in of_filter), of_filter[0]


def inside_of(loop: tirx.For) -> Inside:
    """Look into the loops of a step."""
    loops: list[tirx.Var] = []
    named: dict[str, tirx.For] = {}
    stores: list[tirx.BufferStore] = []
    guards: list[tirx.Expr] = []
    marks: list[Mark] = []
    kept: list[TensorLoad] = []

    def visit(statement: tirx.Stmt, conditions: list[tirx.Expr]) -> None:
        if isinstance(statement, tirx.For):
            loops.append(statement.loop_var)
            if name := statement.annotations.get(LOOP_NAME):
                named.setdefault(str(name), statement)
            visit(statement.body, conditions)
        elif isinstance(statement, tirx.SeqStmt):
            for step in statement.seq:
                visit(step, conditions)
        elif isinstance(statement, tirx.IfThenElse):
            visit(statement.then_case, [*conditions, *conjuncts(statement.condition)])
        elif isinstance(statement, tirx.BufferStore):
            stores.append(statement)
        elif mark := Mark.of(statement):
            marks.append(mark)
            guards.extend(conditions)
        elif (load := touched_kept(statement)) is not None:
            kept.append(load)

    visit(loop, [])
    products = [store for store in stores if isinstance(store.value, tirx.Add)]
    return Inside(loops, named, guards, marks[0], stores[-1], products[0] if products else None, kept)
