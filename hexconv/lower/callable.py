"""Turn a lowered module into functions that C can call: they take pointers and need nothing of TVM's runtime.

before:  main(input, filter1, ..., output):      after:  NAME_kernel(input, filter1, ..., output, cache, ..., call):
             cache = alloc_buffer(...)                       ...
             for band in parallel(4): ...                    NAME_in_parallel(call, 0, 4)
             hexconv_start_group(queue)                      call[queue] += 1
             hexconv_wait(queue, k)                          NAME_wait(call, queue, k)
                                                         NAME_task0(input, ..., cache, ..., call, band): ...

Every cache becomes a parameter of its own: whoever calls decides where it lies. `call` points to the number of groups
of copies that were started in each queue, int32, and to what the caller keeps behind them; it is handed on to the
functions that the caller has to provide. Buffers in registers stay as they are.

A parallel loop becomes a function of its index. Each call of it gets caches of its own, and a `call` of its own, since
a queue of copies belongs to one thread. It gets them from its caller: LLVM would no longer see that words are aligned
behind an offset that hangs on an index, and would load byte by byte.
"""

from collections import Counter
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from hexconv.errors import Unsupported
from hexconv.lower import queues
from hexconv.lower.buffers import is_register
from hexconv.lower.engine import FUNCTIONS, ROWS, call_engine
from hexconv.lower.hexagon_target import with_long_loops
from hexconv.lower.in_turns import without_views
from hexconv.lower.signature import ALIGNMENT_BYTES, Pointer, Signature
from hexconv.lower.vtcm import SCOPE, buffer_bytes
from hexconv.schedule.trees import all_of, around, steps_of

MOST_QUEUES = 32
"""As in `hexconv_platform.h`."""
_EXTERN = tvm.ir.Op.get("tirx.call_extern")


@dataclass(frozen=True)
class Memory:
    """The memory of a cache, which the caller provides.

    Attributes:
        name: the name of the cache.
        bytes: the bytes of one copy.
        copies: how many copies lie one after the other: one for each index of the parallel loop that uses the cache.
        in_vtcm: whether its schedule wants it in VTCM.
    """

    name: str
    bytes: int
    copies: int
    in_vtcm: bool


@dataclass(frozen=True)
class Callable:
    """The functions of a chain that C can call.

    Attributes:
        module: `NAME_kernel` and `NAME_task0`, ...
        name: the text with which their names begin.
        arguments: names of the chain's arguments, in the order of the parameters.
        memories: the caches, in the order of the parameters behind them.
        tasks: the number of iterations of each parallel loop.
        copies: whether the functions ask for asynchronous copies.
        queues: how many queues their copies take, numbered from 0 on.
    """

    module: tvm.IRModule
    name: str
    arguments: tuple[str, ...]
    memories: tuple[Memory, ...]
    tasks: tuple[int, ...]
    copies: bool
    queues: int


def callable_module(module: tvm.IRModule, name: str) -> Callable:
    """Make `main` of a lowered module callable from C.

    Args:
        module: flat buffers, no blocks (`Lowered.module`).
        name: a C identifier.

    Raises:
        Unsupported: a parallel loop uses a number that is computed before it, or copies take too many queues.
    """
    main = call_engine(without_views(module))["main"]
    arguments = [tirx.Var(buffer.name, buffer.data.ty) for buffer in main.params]
    caches = _Caches()
    most = _queues(main.body, name)
    body = _without_allocations(main.body, caches)
    call = tirx.Var("call", tvm.ir.PointerType(tvm.ir.PrimType("int32")))
    signature = Signature(name, tuple(main.params), tuple(arguments), tuple(caches.pointers), call)
    body, tasks = _outlined(_named_engine(body, signature), signature)
    functions = {f"{name}_kernel": signature.function(f"{name}_kernel", body)}
    for number, task in enumerate(tasks):
        functions[f"{name}_task{number}"] = signature.function(f"{name}_task{number}", task.body, [task.index])
    return Callable(
        module=tvm.IRModule({name: with_long_loops(function, main) for name, function in functions.items()}),
        name=name,
        arguments=tuple(buffer.name for buffer in main.params),
        memories=tuple(caches.memories),
        tasks=tuple(task.extent for task in tasks),
        copies=any(str(call.args[0].value) in (ROWS, FUNCTIONS[queues.COPY]) for call in _calls_of_engine(main.body)),
        queues=most,
    )


class _Caches:
    """Collects the parameters that caches become."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []
        self.pointers: list[Pointer] = []
        self._taken: Counter[str] = Counter()

    def add(self, buffer: tirx.Var, copies: int) -> Pointer:
        """Add a cache; caches of the same name are told apart by a number."""
        taken = self._taken[buffer.name]
        self._taken[buffer.name] += 1
        name = f"{buffer.name}.{taken}" if taken else buffer.name
        size_bytes = -(-buffer_bytes(buffer) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self.memories.append(Memory(name, size_bytes, copies, buffer.scope() == SCOPE))
        self.pointers.append(tirx.Var(name.replace(".", "_"), buffer.data.ty))
        return self.pointers[-1]


def _without_allocations(body: tirx.Stmt, caches: _Caches) -> tirx.Stmt:
    """Turn caches into views of parameters; each index of a parallel loop is called with a copy of its own."""

    def viewed(node: tirx.AllocBuffer, loop: tirx.For | None) -> tirx.Stmt:
        buffer = node.buffer
        if is_register(buffer):
            return node
        return tirx.DeclBuffer(buffer, data=caches.add(buffer, int(loop.extent) if loop else 1))

    def inside(loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.PARALLEL:
            return loop
        inner = tvm_ffi.structural_map(loop.body, (tirx.AllocBuffer, lambda node: viewed(node, loop)))
        return around(loop, inner)

    body = tvm_ffi.structural_map(body, (tirx.For, inside))
    return tvm_ffi.structural_map(body, (tirx.AllocBuffer, lambda node: viewed(node, None)))


def _named_engine(body: tirx.Stmt, signature: Signature) -> tirx.Stmt:
    """Turn `hexconv_copy(...)` and its like into `NAME_copy(call, ...)`, and count the groups that start."""

    def named(call: Call) -> tirx.Expr:
        if not _is_of_engine(call):
            return call
        function = f"{signature.name}_{str(call.args[0].value).removeprefix('hexconv_')}"
        return tirx.call_extern("int32", function, signature.call, *call.args[1:])

    def counted(statement: tirx.Evaluate) -> tirx.Stmt:
        call = statement.value
        if not isinstance(call, Call) or not _is_of_engine(call):
            return statement
        if str(call.args[0].value) == FUNCTIONS[queues.END]:
            return tirx.Evaluate(tirx.IntImm("int32", 0))
        if str(call.args[0].value) == FUNCTIONS[queues.START]:
            queue = call.args[1]
            return tirx.BufferStore(groups, tirx.BufferLoad(groups, [queue]) + 1, [queue])
        return statement

    groups = tirx.decl_buffer([MOST_QUEUES], "int32", "groups")
    body = tvm_ffi.structural_map(body, (tirx.Evaluate, counted))
    body = tvm_ffi.structural_map(body, (Call, named))
    return tirx.SeqStmt([tirx.DeclBuffer(groups, data=signature.call), *steps_of(body)])


def _is_of_engine(call: Call) -> bool:
    """Whether a call is to one of the copy engine's functions."""
    return call.op.same_as(_EXTERN) and str(call.args[0].value).startswith("hexconv_")


@dataclass(frozen=True)
class _Task:
    """A parallel loop as a function of its index."""

    index: tirx.Var
    extent: int
    body: tirx.Stmt


def _outlined(body: tirx.Stmt, signature: Signature) -> tuple[tirx.Stmt, list[_Task]]:
    """Turn parallel loops, which stand in the outermost sequence, into tasks and calls that start them."""
    steps = steps_of(body)
    views = [step for step in steps if isinstance(step, tirx.DeclBuffer)]
    tasks: list[_Task] = []
    for place, step in enumerate(steps):
        if isinstance(step, tirx.For) and step.kind == tirx.ForKind.PARALLEL:
            tasks.append(_Task(step.loop_var, int(step.extent), tirx.SeqStmt([*views, step.body])))
            _check_free(tasks[-1], signature)
            start = [signature.call, len(tasks) - 1, step.extent]
            steps[place] = tirx.Evaluate(tirx.call_extern("int32", f"{signature.name}_in_parallel", *start))
    return tirx.SeqStmt(steps), tasks


def _check_free(task: _Task, signature: Signature) -> None:
    """Refuse a task that uses variables other than its index and its parameters."""
    known = [task.index, *signature.arguments, *signature.caches, signature.call, *signature.buffers]
    for variable in tirx.analysis.undefined_vars(task.body, []):
        if not any(variable.same_as(one) for one in known):
            raise Unsupported(f"{signature.name}: a parallel loop uses {variable.name}, which is computed before it")


def _queues(body: tirx.Stmt, name: str) -> int:
    """Count the queues that copies take; refuse more than a platform has for each thread."""
    most = max((int(call.args[1]) + 1 for call in _calls_of_engine(body)), default=0)
    if most > MOST_QUEUES:
        raise Unsupported(
            f"{name}: its asynchronous copies take {most} queues, and platforms have {MOST_QUEUES} for each thread; "
            'use a shorter chain, or buffering = "single"'
        )
    return most


def _calls_of_engine(body: tirx.Stmt) -> list[Call]:
    """Find the calls of the copy engine's functions."""
    return [call for call in all_of(body, Call) if _is_of_engine(call)]
