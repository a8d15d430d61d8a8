"""A lowered module as functions that C can call: pointers in, nothing of TVM's runtime behind them.

before:  main(input, filter1, ..., output):      after:  NAME_kernel(input, filter1, ..., output, cache, ..., call):
             cache = alloc_buffer(...)                       ...
             for band in parallel(4): ...                    NAME_in_parallel(call, 0, 4)
             hexconv_wait(queue, k)                          NAME_wait(call, queue, k)
                                                         NAME_task0(input, ..., cache, ..., call, band): ...

Every cache becomes a parameter of its own: whoever calls decides where it lies. `call` is an opaque pointer that is
handed on to the functions that the caller has to bring. Registers stay what they are. A parallel loop becomes a
function of its index.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from hexconv.errors import Unsupported
from hexconv.lower.engine import call_engine
from hexconv.lower.vtcm import SCOPE, buffer_bytes
from hexconv.schedule.block import REGISTER

ALIGNMENT_BYTES = 128
"""One HVX vector: every pointer that is passed starts at a multiple of it."""

NO_PACKED_API = 2
"""TVM's number of a calling convention whose functions its pass `MakePackedAPI` leaves alone."""

Pointer = tirx.Var


@dataclass(frozen=True)
class Memory:
    """A cache, which the caller provides.

    Attributes:
        name: of the cache.
        bytes: of one copy.
        copies: how many lie one behind the other: one for each index of the parallel loop that uses it.
        in_vtcm: whether its schedule wants it in VTCM.
    """

    name: str
    bytes: int
    copies: int
    in_vtcm: bool


@dataclass(frozen=True)
class Callable:
    """Functions for C.

    Attributes:
        module: `NAME_kernel` and `NAME_task0`, ...
        name: what their names begin with.
        arguments: names of the chain's arguments, in the order of the parameters.
        memories: the caches, in the order of the parameters behind them.
        tasks: iterations of each parallel loop.
        copies: whether asynchronous copies are asked for.
    """

    module: tvm.IRModule
    name: str
    arguments: tuple[str, ...]
    memories: tuple[Memory, ...]
    tasks: tuple[int, ...]
    copies: bool


def callable_module(module: tvm.IRModule, name: str) -> Callable:
    """Make `main` of a lowered module callable from C.

    Args:
        module: flat buffers, no blocks (`Lowered.module`).
        name: a C identifier.

    Raises:
        Unsupported: a parallel loop uses a number that is worked out before it.
    """
    main = call_engine(module)["main"]
    arguments = [tirx.Var(buffer.name, buffer.data.ty) for buffer in main.params]
    caches = _Caches()
    body = _without_allocations(main.body, caches)
    call = tirx.Var("call", tvm.ir.PointerType(tvm.ir.PrimType("void")))
    signature = _Signature(name, tuple(main.params), tuple(arguments), tuple(caches.pointers), call)
    body, tasks = _outlined(_named_engine(body, signature), signature)
    functions = {f"{name}_kernel": signature.function(f"{name}_kernel", body)}
    for number, task in enumerate(tasks):
        functions[f"{name}_task{number}"] = signature.function(f"{name}_task{number}", task.body, [task.index])
    return Callable(
        module=tvm.IRModule(functions),
        name=name,
        arguments=tuple(buffer.name for buffer in main.params),
        memories=tuple(caches.memories),
        tasks=tuple(task.extent for task in tasks),
        copies=any(_calls(body, f"{name}_{how}") for how in ("copy", "copy_rows")),
    )


class _Caches:
    """The parameters that allocations become, as they are found."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []
        self.pointers: list[Pointer] = []

    def add(self, buffer: tirx.Var, copies: int) -> Pointer:
        """One more; two of one name are told apart by a number."""
        taken = sum(memory.name.partition(".")[0] == buffer.name for memory in self.memories)
        name = f"{buffer.name}.{taken}" if taken else buffer.name
        size_bytes = -(-buffer_bytes(buffer) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self.memories.append(Memory(name, size_bytes, copies, buffer.scope() == SCOPE))
        self.pointers.append(tirx.Var(name.replace(".", "_"), buffer.data.ty))
        return self.pointers[-1]


def _without_allocations(body: tirx.Stmt, caches: _Caches) -> tirx.Stmt:
    """Caches become views of parameters; inside of a parallel loop, of one copy for each index."""

    def viewed(node: tirx.AllocBuffer, loop: tirx.For | None) -> tirx.Stmt:
        buffer = node.buffer
        if buffer.name.startswith(REGISTER):
            return node
        pointer = caches.add(buffer, int(loop.extent) if loop else 1)
        if loop is None:
            return tirx.DeclBuffer(buffer, data=pointer)
        offset = loop.loop_var * caches.memories[-1].bytes
        return tirx.DeclBuffer(buffer, data=Call("tirx.handle_add_byte_offset", [pointer, offset], ret_ty=pointer.ty))

    def inside(loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.PARALLEL:
            return loop
        inner = tvm_ffi.structural_map(loop.body, (tirx.AllocBuffer, lambda node: viewed(node, loop)))
        return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, inner, annotations=loop.annotations)

    body = tvm_ffi.structural_map(body, (tirx.For, inside))
    return tvm_ffi.structural_map(body, (tirx.AllocBuffer, lambda node: viewed(node, None)))


@dataclass(frozen=True)
class _Signature:
    """The parameters that all functions of a chain have."""

    name: str
    buffers: tuple[tirx.Var, ...]
    arguments: tuple[Pointer, ...]
    caches: tuple[Pointer, ...]
    call: Pointer

    def function(self, name: str, body: tirx.Stmt, more: Sequence[tirx.Var] = ()) -> tirx.PrimFunc:
        """A function of these parameters and `more`."""
        views = [
            tirx.DeclBuffer(buffer, data=pointer) for buffer, pointer in zip(self.buffers, self.arguments, strict=True)
        ]
        whole = _aligned((*self.arguments, *self.caches), tirx.SeqStmt([*views, body]))
        function = tirx.PrimFunc([*self.arguments, *self.caches, self.call, *more], whole)
        # Without `tirx.noalias`: TVM's code has types by which LLVM knows caches apart. Told twice, LLVM keeps more
        # addresses in registers, and the loops of HVX kernels take a fifth more packets.
        return function.with_attr({"global_symbol": name, "calling_conv": NO_PACKED_API})


def _aligned(pointers: Sequence[Pointer], body: tirx.Stmt) -> tirx.Stmt:
    """Say of each pointer that it starts at a whole vector."""
    for pointer in reversed(pointers):
        body = tirx.AttrStmt(pointer, "storage_alignment", tirx.IntImm("int32", ALIGNMENT_BYTES), body)
    return body


def _named_engine(body: tirx.Stmt, signature: _Signature) -> tirx.Stmt:
    """`hexconv_copy(...)` to `NAME_copy(call, ...)`, and its like."""

    def named(call: Call) -> Call:
        if not call.op.same_as(_EXTERN) or not str(call.args[0].value).startswith("hexconv_"):
            return call
        function = f"{signature.name}_{str(call.args[0].value).removeprefix('hexconv_')}"
        return tirx.call_extern("int32", function, signature.call, *call.args[1:])

    return tvm_ffi.structural_map(body, (Call, named))


_EXTERN = tvm.ir.Op.get("tirx.call_extern")


@dataclass(frozen=True)
class _Task:
    """One parallel loop as a function of its index."""

    index: tirx.Var
    extent: int
    body: tirx.Stmt


def _outlined(body: tirx.Stmt, signature: _Signature) -> tuple[tirx.Stmt, list[_Task]]:
    """Parallel loops, which stand in the outermost sequence, as tasks and calls that start them."""
    steps = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
    views = [step for step in steps if isinstance(step, tirx.DeclBuffer)]
    tasks: list[_Task] = []
    for place, step in enumerate(steps):
        if isinstance(step, tirx.For) and step.kind == tirx.ForKind.PARALLEL:
            tasks.append(_Task(step.loop_var, int(step.extent), tirx.SeqStmt([*views, step.body])))
            _check_free(tasks[-1], signature)
            start = [signature.call, len(tasks) - 1, step.extent]
            steps[place] = tirx.Evaluate(tirx.call_extern("int32", f"{signature.name}_in_parallel", *start))
    return tirx.SeqStmt(steps), tasks


def _check_free(task: _Task, signature: _Signature) -> None:
    """A task knows its index, its parameters, and nothing else."""
    known = [task.index, *signature.arguments, *signature.caches, signature.call, *signature.buffers]
    for variable in tirx.analysis.undefined_vars(task.body, []):
        if not any(variable.same_as(one) for one in known):
            raise Unsupported(f"{signature.name}: a parallel loop uses {variable.name}, which is worked out before it")


def _calls(body: tirx.Stmt, function: str) -> bool:
    """Whether a statement calls an extern function."""
    found: list[Call] = []
    tvm_ffi.structural_walk(body, (Call, lambda call: found.append(call) if call.op.same_as(_EXTERN) else None))
    return any(str(call.args[0].value) == function for call in found)
