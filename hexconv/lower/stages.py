"""Stages of lowering that all nests share, each from a `Lowering` to a `Lowering`; `hexconv.lower.pipeline` lists them.

Activations.

before:  output[i] = hexconv_silu(sums[i] + bias[k], slope, offset)
after:   register_x = sums[i] + bias[k]
         ...
         output[i] = register_x * register_inverse

Values that are used several times lie in buffers of one element, which LLVM keeps in registers: TVM's passes look
through variables, but not through buffers, and take no longer than the arithmetic is.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import gcd
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call
from tvm.ir.instrument import pass_instrument
from tvm.sym import Analyzer

from hexconv.compute.activation_code import CALLED, FUNCTIONS, activated
from hexconv.lower import copy_code, overlap, rings
from hexconv.lower.buffers import argument, cache_name, rename_buffers, rename_loops, stores
from hexconv.lower.lowered import Lowering
from hexconv.schedule.stream import ReadAhead
from hexconv.spec.names import INPUT
from hexconv.tir import guards
from hexconv.tir.statements import int32, scalar_register
from hexconv.tir.trees import all_of, steps_of, uses, with_values


def _passed(module: tvm.IRModule, *passes: tvm.ir.transform.Pass) -> tvm.IRModule:
    """Run passes of TVM."""
    return tvm.ir.transform.Sequential(list(passes))(module)


def place_caches(nest: Lowering) -> Lowering:
    """Allocate each cache where it is used; rings, and columns that strips keep, outside of all loops."""
    placed = nest.to(
        _passed(
            nest.module,
            s_tir.transform.LowerInitBlock(),
            s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        )
    )
    outside = rings.allocate_outside(placed.main, {*nest.scheduled.rings, *nest.kept})
    return nest.to(s_tir.transform.ConvertBlocksToOpaque()(nest.to(outside).module))


def compact(nest: Lowering) -> Lowering:
    """Allocate each cache in the size of the region that is used where it is.

    CompactBufferAllocation runs twice. Its first result is an upper bound that can be far too large where a guard
    (`T.where`) cuts the last step of a split: the regions of writer and reader then differ in symbols of the outer
    loops that it doesn't cancel. It also rebases all indices to the start of the region; once these are simplified the
    outer loops are gone from them, and the second run finds the exact size.

    Neither run sees the guards of values. They say which elements exist, and not which a step uses; where one fails in
    all of a step, as in a block row of padding, TVM derives a region from it that lies outside of what is used, or one
    whose start is no longer the step's, and that no second run makes smaller.

    With warm-up stripes, neither run sees in which block of the input a row lies: all rows that the later stripes
    read may lie in one, and those that come first in others.
    """
    hidden, found = guards.without_guards(nest.main)
    if nest.scheduled.beginning:
        hidden, quotients = guards.without_quotients(hidden, argument(hidden, INPUT))
        found = [*found, *quotients]
    compacted = _passed(
        nest.to(hidden).module,
        s_tir.transform.CompactBufferAllocation(),
        s_tir.transform.StmtSimplify(),
        s_tir.transform.CompactBufferAllocation(),
    )
    main = guards.with_guards(compacted["main"], found)
    return replace(nest.to(main), starts=rings.first_slabs(nest.main, main, nest.scheduled.rings))


def run_stripes_in(nest: Lowering) -> Lowering:
    """Begin stripes early: before TVM simplifies anything, or it would use facts that hold for all others only."""
    beginning = nest.scheduled.beginning
    begun = rings.run_in(nest.main, beginning) if beginning else nest.main
    return nest.to(s_tir.transform.StmtSimplify()(nest.to(begun).module))


def count_rings_in_phase(nest: Lowering) -> Lowering:
    """Number the slots of rings so that no reader adds a constant; where a ring is read ahead, its end likewise."""
    scheduled, starts = nest.scheduled, rings.in_phase(nest.main, nest.scheduled.rings, nest.starts)
    ahead = {
        name: ReadAhead(read.ahead_slabs, read.end_slab + starts[name] - nest.starts[name])
        for name, read in scheduled.ahead.items()
    }
    return replace(nest, starts=starts, scheduled=replace(scheduled, ahead=ahead))


def open_blocks(nest: Lowering) -> Lowering:
    """Turn blocks into plain loops."""
    return nest.to(s_tir.transform.LowerOpaqueBlock()(nest.module))


def fold_rings(nest: Lowering) -> Lowering:
    """Keep only as many slabs as a ring has."""
    scheduled = nest.scheduled
    return nest.to(rings.fold(nest.main, scheduled.rings, nest.starts)) if scheduled.rings else nest


def hoist_guards(nest: Lowering) -> Lowering:
    """Make statements of guards of values, at the loops that decide them."""
    return nest.to(guards.hoist_guards(guards.guards_to_statements(nest.main)))


def overlap_copies(nest: Lowering) -> Lowering:
    """Let copies run while the nest computes, where its plan says so."""
    scheduled = nest.scheduled
    changed = nest.to(overlap.overlap(nest.main, scheduled.ahead)) if scheduled.overlaps else nest
    return nest.to(_passed(changed.module, tirx.transform.ConvertSSA(), tirx.transform.StmtSimplify()))


def keep_indices_inside(nest: Lowering) -> Lowering:
    """Clamp indices that loops alone would let out of their buffers."""
    return nest.to(guards.keep_inside(nest.main, nest.rows.numbers.ranges if nest.rows else None))


def name_loops(nest: Lowering) -> Lowering:
    """Give loops the names that a reader knows: the shape before buffers become flat."""
    named = nest.to(rename_loops(nest.module))
    return replace(named, shaped=named.module)


def flatten(nest: Lowering) -> Lowering:
    """Flatten packed buffers to one-dimensional ones.

    Guards are statements by now. FlattenBuffer simplifies an index by the conditions around it: with the condition
    inside of the value, `sums` would be read at another index than `output` is written at, and StorageRewrite could not
    see that the two may share memory element by element.
    """
    return nest.to(_passed(nest.module, tirx.transform.FlattenBuffer(), tirx.transform.StmtSimplify()))


def name_caches(nest: Lowering) -> Lowering:
    """Give buffers the names of their caches."""
    targets = [cache_name(store.buffer) for store in stores(nest.module)]
    named = nest.to(rename_buffers(nest.module, targets))
    return replace(named, targets=targets, unmerged=named.module)


def merge_caches(nest: Lowering) -> Lowering:
    """Let caches that are never live together share memory, as TVM sees it."""
    merged = _passed(nest.module, tirx.transform.StorageRewrite(), tirx.transform.StmtSimplify())
    named = nest.to(rename_buffers(merged, nest.targets))
    return replace(named, merged=named.module)


def start_copies(nest: Lowering) -> Lowering:
    """Let the copy engine copy; where a loop is split, each part gets a variable of its own."""
    return nest.to(started(nest.module))


def started(flat: tvm.IRModule) -> tvm.IRModule:
    """Let the copy engine copy."""
    return tirx.transform.ConvertSSA()(copy_code.start_copies(flat))


def write_activations_out(nest: Lowering) -> Lowering:
    """Compute activations in the place of calls that stand for them."""
    return nest.to(with_arithmetic(nest.module))


NAMES = {f"{CALLED}{name}": name for name in FUNCTIONS}


def with_arithmetic(module: tvm.IRModule) -> tvm.IRModule:
    """Replace every call that stands for an activation (no blocks)."""
    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.BufferStore, _written_out)))})


def _written_out(store: tirx.BufferStore) -> tirx.Stmt:
    """Return a store with the statements before it that compute what it stores."""
    statements: list[tirx.Stmt] = []

    def bind(name: str, value: tirx.Expr) -> tirx.Expr:
        register = scalar_register(name, "float32")
        statements.extend([tirx.AllocBuffer(register), tirx.BufferStore(register, value, [int32(0)])])
        return tirx.BufferLoad(register, [int32(0)])

    def replaced(call: Call) -> tirx.Expr:
        name = _name(call)
        return activated(name, *call.args[1:], bind=bind) if name else call

    value = tvm_ffi.structural_map(store.value, (Call, replaced))
    return tirx.SeqStmt([*statements, tirx.BufferStore(store.buffer, value, store.indices)]) if statements else store


def _name(call: Call) -> str:
    """The activation that a call stands for; empty for any other call."""
    return NAMES.get(call.args[0].value, "") if call.op.name == "tirx.call_pure_extern" else ""


def without_compaction(shares_memory: bool = True) -> tvm.transform.PassContext:
    """Return the context for TVM's own pipeline on a module whose caches have their sizes already.

    The pipeline would run CompactBufferAllocation again, which changes no cache there and looks at every access in
    every loop around it: several seconds for an HVX kernel. What is `UNUSED` is left out, too.

    Args:
        shares_memory: whether caches that TVM takes for dead may give their memory to others.
    """
    others = [] if shares_memory else ["tirx.StorageRewrite"]
    return tvm.transform.PassContext(disabled_pass=["s_tir.CompactBufferAllocation", *UNUSED, *others])


def propagate_constants(module: tvm.IRModule) -> tvm.IRModule:
    """Put constants for the variables that are bound to them: TVM would do so, and simplify nothing around them.

    The variables stay for who reads the code in a debugger.

    before:  left = 3072; cache[x + left * 2] = ...         after:   left = 3072; cache[x + 3072 * 2] = ...
    """
    return tvm.IRModule({name: _with_constants(function) for name, function in module.functions.items()})


def _with_constants(function: tirx.PrimFunc) -> tirx.PrimFunc:
    numbers: dict[tirx.Var, tirx.Expr] = {}
    for named in all_of(function.body, tirx.Bind):
        value = Analyzer().simplify(with_values(named.value, numbers))
        if isinstance(value, tirx.IntImm):
            numbers[named.var] = value

    def apart(named: tirx.Bind) -> tirx.Bind:
        return tirx.Bind(tirx.Var(named.var.name, named.var.ty), named.value) if named.var in numbers else named

    if not numbers:
        return function
    return function.with_body(with_values(tvm_ffi.structural_map(function.body, (tirx.Bind, apart)), numbers))


def without_idle_passes(is_tidy: bool = True) -> tvm.transform.PassContext:
    """Return the same context for a module that `lower` made: passes are skipped where they would change nothing.

    Half of the passes' time goes to some that rewrite every expression. Lowering has simplified its modules after each
    change. Others, such as loops that are written by hand, need TVM's last simplification.

    Args:
        is_tidy: whether the module is as its simplification left it; False where the matrix engine's packets have taken
            the place of loops since.
    """
    disabled = ["s_tir.CompactBufferAllocation", *UNUSED]
    return tvm.transform.PassContext(disabled_pass=disabled, instruments=[_WithoutIdlePasses(not is_tidy)])


UNUSED = ("s_tir.InjectVirtualThread", "s_tir.InjectPermutedLayout")
"""Passes for threads of GPUs and for annotations that no schedule here has; they copy the module all the same."""


@pass_instrument
class _WithoutIdlePasses:
    """Skips passes that find nothing to change; each would rewrite every expression of the module for a result alike.

    - LowerOpaqueBlock puts 0 for the index of a loop of one trip, VectorizeLoop a vector for that of a vectorised one.
    - HoistIfThenElse moves an `if` out of a loop whose whole body it is.
    - RenormalizeSplitPattern divides comparisons and divisions of sums by common factors: `x * 8 + y < 56`. Those
      without such factors it writes as divisions (`x // 9 < 1`), and the simplification behind it takes that back.
    - That simplification finds work only where one of these has been, or where the first one leaves some: vectors of
      which one is a number, `27 & 7`, and `x // 2 % 2`, for which it would then write `x % 4 // 2`.
    - RemoveNoOp finds work behind them, and in loops without trips.
    """

    def __init__(self, has_changed: bool) -> None:
        self.has_changed = has_changed

    def should_run(self, module: tvm.IRModule, pass_info: Any) -> bool:
        """Whether a pass of TVM may change the module."""
        if pass_info.name not in _CHANGES:
            return True
        kinds, is_changed = _CHANGES[pass_info.name]
        may_change = any(map(is_changed, all_of(module, *kinds)))
        if pass_info.name == "tirx.RemoveNoOp":  # loops without trips are its alone
            return may_change or self.has_changed
        self.has_changed |= may_change
        if pass_info.name == "tirx.StmtSimplify":
            return self.has_changed
        return may_change or pass_info.name not in _IDLE_OTHERWISE


def _is_no_loop(loop: tirx.For) -> bool:
    """Whether a loop has one trip, whose number its body uses, or becomes vectors or copies of its body."""
    is_one = isinstance(loop.extent, tirx.IntImm) and int(loop.extent) == 1
    is_replaced = is_one and uses(loop.body, loop.loop_var)
    return is_replaced or loop.kind in (tirx.ForKind.VECTORIZED, tirx.ForKind.UNROLLED)


def _is_empty(loop: tirx.For) -> bool:
    """Whether a loop has no trips."""
    return isinstance(loop.extent, tirx.IntImm) and int(loop.extent) == 0


def _is_untidy(node: Any) -> bool:
    """Whether a remainder is that of a quotient, or numbers are not yet one number."""
    if isinstance(node, tirx.FloorMod):
        return isinstance(node.a, tirx.FloorDiv)
    if isinstance(node, tirx.Add):
        return isinstance(node.a, tirx.Broadcast) and isinstance(node.a.value, tirx.IntImm)
    return isinstance(node.a, tirx.IntImm) and isinstance(node.b, tirx.IntImm)


def _is_under_guard(loop: tirx.For) -> bool:
    """Whether the whole body of a loop stands under an `if`, but for values that it names."""
    acts = [step for step in steps_of(loop.body) if not isinstance(step, (tirx.Bind, tirx.DeclBuffer))]
    return all(isinstance(step, (tirx.IfThenElse, tirx.AttrStmt, tirx.AllocBuffer)) for step in acts)


def _is_divided(expression: Any) -> bool:
    """Whether a sum that is divided by a number, or compared with one, has a product with a factor of that number."""
    is_turned = isinstance(expression, (tirx.GT, tirx.LE))  # `c > x` is `x < c`, and `c <= x` its opposite
    whole, by = (expression.b, expression.a) if is_turned else (expression.a, expression.b)
    divisor = by.value if isinstance(by, tirx.Broadcast) else by
    if not isinstance(whole, (tirx.Add, tirx.Sub)) or not isinstance(divisor, tirx.IntImm):
        return False
    return any(gcd(int(factor), int(divisor)) > 1 for factor in _factors(whole))


def _factors(whole: tirx.Expr) -> Iterator[tirx.IntImm]:
    """Yield the numbers by which terms of a sum are multiplied."""
    if isinstance(whole, (tirx.Add, tirx.Sub)):
        yield from _factors(whole.a)
        yield from _factors(whole.b)
    elif isinstance(whole, tirx.Mul):
        factor = whole.b.value if isinstance(whole.b, tirx.Broadcast) else whole.b
        if isinstance(factor, tirx.IntImm):
            yield factor


_COMPARED = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.FloorDiv)

_CHANGES = {
    "s_tir.LowerOpaqueBlock": ((tirx.For,), _is_no_loop),
    "s_tir.HoistIfThenElse": ((tirx.For,), _is_under_guard),
    "s_tir.RenormalizeSplitPattern": (_COMPARED, _is_divided),
    "tirx.StmtSimplify": ((tirx.FloorMod, tirx.Add, tirx.BitwiseAnd), _is_untidy),
    "tirx.RemoveNoOp": ((tirx.For,), _is_empty),
}
"""What passes change, and which nodes of what kinds they do change."""
_IDLE_OTHERWISE = ("s_tir.HoistIfThenElse", "s_tir.RenormalizeSplitPattern")
