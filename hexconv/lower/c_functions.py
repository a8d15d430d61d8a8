"""Functions that C calls: lowered modules that take pointers and need nothing of TVM's runtime, compiled to an object.

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
behind an offset that hangs on an index, and would load byte by byte. What loops around a parallel loop count stands in
memory that all calls share, `numbers`, while it runs.

Functions for Hexagon whose loops take more packets than their instructions need are compiled in three ways, and the one
whose innermost loops take fewest packets is taken. Their caches are parameters, so that LLVM begins with other live
ranges than where a kernel allocates its caches itself. Which registers it then gives to a loop is a matter of luck, and
with it how many of the loop's instructions share a packet.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.target import Target

from hexconv.errors import Unsupported
from hexconv.kernel.engine_words import LOCK, PREFIX, UNLOCK
from hexconv.lower import queues
from hexconv.lower.assembly import instruction, without_debug
from hexconv.lower.buffers import is_register
from hexconv.lower.fewer_stalls import least_packets
from hexconv.lower.hexagon_target import WAYS, hexagon_target, isas, with_options_of
from hexconv.lower.host_code import host_target
from hexconv.lower.object_file import as_it_is, has_vectors, object_file, possible, with_target
from hexconv.lower.queues import FUNCTIONS, ROWS, call_engine
from hexconv.lower.shared_caches import without_views
from hexconv.lower.stages import propagate_constants, without_idle_passes
from hexconv.lower.vtcm import buffer_bytes
from hexconv.spec.capacities import MOST_QUEUES, SCOPE
from hexconv.spec.places import ALIGNMENT_BYTES
from hexconv.tir.trees import all_of, around, as_one, steps_of

NO_PACKED_API = 2
"""TVM's number of a calling convention whose functions its pass `MakePackedAPI` leaves alone."""

Pointer = tirx.Var


@dataclass(frozen=True)
class Signature:
    """The parameters that all functions of a chain have."""

    name: str
    buffers: tuple[tirx.Var, ...]
    arguments: tuple[Pointer, ...]
    caches: tuple[Pointer, ...]
    call: Pointer

    def function(self, name: str, body: tirx.Stmt, more: Sequence[tirx.Var] = ()) -> tirx.PrimFunc:
        """Build a function of these parameters and `more`."""
        views = [
            tirx.DeclBuffer(buffer, data=pointer) for buffer, pointer in zip(self.buffers, self.arguments, strict=True)
        ]
        whole = _aligned((*self.arguments, *self.caches), tirx.SeqStmt([*views, body]))
        function = tirx.PrimFunc([*self.arguments, *self.caches, self.call, *more], whole)
        # No `tirx.noalias`: by the types in TVM's code LLVM already knows caches apart. Told twice, LLVM keeps more
        # addresses in registers, and the loops of HVX kernels take a fifth more packets.
        return function.with_attr({"global_symbol": name, "calling_conv": NO_PACKED_API})


def _aligned(pointers: Sequence[Pointer], body: tirx.Stmt) -> tirx.Stmt:
    """Say of each pointer that it starts at a whole vector."""
    for pointer in reversed(pointers):
        body = tirx.AttrStmt(pointer, "storage_alignment", tirx.IntImm("int32", ALIGNMENT_BYTES), body)
    return body


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
        sizes: the dtype and the number of elements of each argument.
        memories: the caches, in the order of the parameters behind them.
        tasks: the number of iterations of each parallel loop.
        copies: whether the functions ask for asynchronous copies.
        queues: how many queues their copies take, numbered from 0 on.
        packets: the packets of the matrix engine that they call, by the names of `hexconv.kernel.engine_words`.
        locks: whether they take the matrix engine for each row of tiles, since several threads issue to it.
    """

    module: tvm.IRModule
    name: str
    arguments: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...]
    memories: tuple[Memory, ...]
    tasks: tuple[int, ...]
    copies: bool
    queues: int
    packets: tuple[str, ...] = ()
    locks: bool = False


def callable_module(module: tvm.IRModule, name: str) -> Callable:
    """Make `main` of a lowered module callable from C.

    Args:
        module: flat buffers, no blocks (`Lowered.module`).
        name: a C identifier.

    Raises:
        Unsupported: a parallel loop uses what is computed before it but for numbers, or copies take too many queues.
    """
    main = call_engine(without_views(module))["main"]
    arguments = [tirx.Var(buffer.name, buffer.data.ty) for buffer in main.params]
    caches = _Caches()
    most = _queues(main.body, name)
    body = _with_numbers(_without_allocations(main.body, caches), caches)
    call = tirx.Var("call", tvm.ir.PointerType(tvm.ir.PrimType("int32")))
    signature = Signature(name, tuple(main.params), tuple(arguments), tuple(caches.pointers), call)
    body, tasks = _outlined(_named_engine(body, signature), signature)
    functions = {f"{name}_kernel": signature.function(f"{name}_kernel", body)}
    for number, task in enumerate(tasks):
        functions[f"{name}_task{number}"] = signature.function(f"{name}_task{number}", task.body, [task.index])
    return Callable(
        module=tvm.IRModule({name: with_options_of(main, function) for name, function in functions.items()}),
        name=name,
        arguments=tuple(buffer.name for buffer in main.params),
        sizes=tuple((str(buffer.dtype), prod(map(int, buffer.shape))) for buffer in main.params),
        memories=tuple(caches.memories),
        tasks=tuple(task.extent for task in tasks),
        copies=any(str(call.args[0].value) in (ROWS, FUNCTIONS[queues.COPY]) for call in _calls_of_engine(main.body)),
        queues=most,
        packets=_of_matrix_engine(main.body),
        locks=any(_is_lock(call) for call in all_of(main.body, Call)),
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
        if str(call.args[0].value).startswith(PREFIX):
            return tirx.call_extern("int32", function, *call.args[1:])
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
    """Whether a call is to one of the functions of an engine."""
    return call.op.same_as(_EXTERN) and str(call.args[0].value).startswith("hexconv_")


def _is_lock(call: Call) -> bool:
    """Whether a call takes the matrix engine, or leaves it."""
    return _is_of_engine(call) and str(call.args[0].value) in (LOCK, UNLOCK)


def _of_matrix_engine(body: tirx.Stmt) -> tuple[str, ...]:
    """Return the names of the matrix engine's packets that code calls."""
    called = (str(call.args[0].value) for call in all_of(body, Call) if _is_of_engine(call))
    return tuple(sorted({name.removeprefix(PREFIX) for name in called if name.startswith(PREFIX)}))


@dataclass(frozen=True)
class _Task:
    """A parallel loop as a function of its index."""

    index: tirx.Var
    extent: int
    body: tirx.Stmt


NUMBERS = "numbers"
"""The memory of what loops around a parallel loop count."""


def _with_numbers(body: tirx.Stmt, caches: _Caches) -> tirx.Stmt:
    """Declare the memory of numbers that parallel loops use, where any does."""
    loops = [loop for loop in all_of(body, tirx.For) if loop.kind == tirx.ForKind.PARALLEL]
    most = max((len(_numbers_of(loop)) for loop in loops), default=0)
    if not most:
        return body
    numbers = tirx.decl_buffer([most], "int32", NUMBERS)
    return tirx.SeqStmt([tirx.DeclBuffer(numbers, data=caches.add(numbers, 1)), *steps_of(body)])


def _numbers_of(loop: tirx.For) -> list[tirx.Var]:
    """Return the numbers that a parallel loop uses, and that are counted or bound around it."""
    free = tirx.analysis.undefined_vars(loop.body, [loop.loop_var])
    return [variable for variable in free if variable.ty == loop.loop_var.ty]


def _outlined(body: tirx.Stmt, signature: Signature) -> tuple[tirx.Stmt, list[_Task]]:
    """Turn parallel loops into tasks and calls that start them."""
    tasks: list[_Task] = []

    def visit(statement: tirx.Stmt, views: Sequence[tirx.DeclBuffer]) -> tirx.Stmt:
        if isinstance(statement, tirx.SeqStmt):
            return as_one([visit(step, [*views, *_views(statement)]) for step in statement.seq])
        if isinstance(statement, tirx.IfThenElse):
            other = statement.else_case and visit(statement.else_case, views)
            return tirx.IfThenElse(statement.condition, visit(statement.then_case, views), other)
        if not isinstance(statement, tirx.For):
            return statement
        if statement.kind != tirx.ForKind.PARALLEL:
            return around(statement, visit(statement.body, views))
        kept, read = _handed(statement, views)
        tasks.append(_Task(statement.loop_var, int(statement.extent), tirx.SeqStmt([*views, *read, statement.body])))
        _check_free(tasks[-1], signature)
        start = [signature.call, len(tasks) - 1, statement.extent]
        called = tirx.Evaluate(tirx.call_extern("int32", f"{signature.name}_in_parallel", *start))
        return as_one([*kept, called])

    return visit(body, ()), tasks


def _views(sequence: tirx.SeqStmt) -> list[tirx.DeclBuffer]:
    return [step for step in sequence.seq if isinstance(step, tirx.DeclBuffer)]


def _handed(loop: tirx.For, views: Sequence[tirx.DeclBuffer]) -> tuple[list[tirx.Stmt], list[tirx.Stmt]]:
    """Return statements that keep the numbers of a parallel loop, and those that read them in its function."""
    kept, read = list[tirx.Stmt](), list[tirx.Stmt]()
    for place, number in enumerate(_numbers_of(loop)):
        memory = next(view.buffer for view in views if view.buffer.name == NUMBERS)
        kept.append(tirx.BufferStore(memory, number, [place]))
        read.append(tirx.Bind(number, tirx.BufferLoad(memory, [place])))
    return kept, read


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
    calls = (call for call in all_of(body, Call) if _is_of_engine(call))
    return [call for call in calls if not (str(call.args[0].value).startswith(PREFIX) or _is_lock(call))]


ENTRY = "tirx.is_entry_func"
"""An attribute that TVM's pipeline gives to a module's only function: LLVM would then get TVM's own entry beside it."""

UNKNOWN_TRIPS = 8
"""What a loop counts for whose trips are in a register."""
MOST_CHAINS = 64
"""How many chains keep what TVM's passes made of them, for the next instruction set."""


def compiled(functions: Callable, target: str, isa: str) -> bytes:
    """Compile functions by TVM's own passes and LLVM.

    Args:
        functions: the result of `callable_module`.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, if the target is Hexagon.
    """
    if target != "hexagon":
        return as_it_is(_library(functions, target, host_target()))
    return object_file(*best_way(functions, isa))[0]


def best_way(functions: Callable, isa: str) -> tuple[tvm.runtime.Module, str, str, Target]:
    """Compile functions in as many ways as it takes: what `object_file` takes of the one with the fewest packets."""
    ways = [hexagon_target(isa, functions.module, more) for more in WAYS]
    libraries = [_library(functions, "hexagon", ways[0])]
    texts = [without_debug(libraries[0].inspect_source("asm"))]
    packets = [_packets(texts[0])]
    if packets[0] > NEAR * needed_in_loops(texts[0]):
        libraries += [with_target(libraries[0], way) for way in ways[1:]]
        texts += [without_debug(library.inspect_source("asm")) for library in libraries[1:]]
        packets += map(_packets, texts[1:])
    best = packets.index(min(packets))
    return libraries[best], texts[best], isa, ways[best]


NEAR = 1.1
"""Other ways are tried where loops take more packets than this many times what their instructions need at least."""


def _packets(text: str) -> int:
    """Count the packets in loops of assembly as it will be assembled: removing stalls adds none."""
    return packets_in_loops(possible(text) if has_vectors(text) else text)


@dataclass(frozen=True)
class _Loop:
    """An innermost hardware loop: its trips, and the packets and instructions of one trip."""

    trips: int
    packets: int
    instructions: tuple[str, ...]


def packets_in_loops(text: str) -> int:
    r"""Count the packets that one entry of each innermost hardware loop of some assembly takes.

    >>> loop = [".LBB0_1:", "{", "r0 = add(r0,#1)", "}", "{", "r1 = r0", "} :endloop0", "{", "jumpr r31", "}"]
    >>> packets_in_loops("\n".join(["loop0(.LBB0_1,#9)", "}", *loop]))
    18
    >>> packets_in_loops("\n".join(["loop0(.LBB0_1,r7)", "}", *loop])) == 2 * UNKNOWN_TRIPS
    True
    """
    return sum(loop.trips * loop.packets for loop in _innermost(text))


def needed_in_loops(text: str) -> int:
    r"""Count the packets that the instructions in these loops need at least, in whatever order they stand.

    >>> words = ["{", *["r0 = add(r0,#1)"] * 2, "}", "{", *["v0 = vmem(r0++#1)"] * 3, "} :endloop0"]
    >>> needed_in_loops("\n".join(["loop0(.LBB0_1,#9)", "}", ".LBB0_1:", *words]))
    18
    """
    return sum(loop.trips * least_packets(map(instruction, loop.instructions)) for loop in _innermost(text))


def _innermost(text: str) -> Iterator[_Loop]:
    """Yield the innermost hardware loops of assembly, whose trips may be a guess."""
    trips = {begin: int(count) if count.isdigit() else UNKNOWN_TRIPS for begin, count in _LOOP.findall(text)}
    now, packets, instructions = 0, 0, list[str]()
    for line in text.splitlines():
        label = line.partition(":")[0]
        if label in trips:
            now, packets, instructions = trips[label], 0, []
        elif _END.match(line):
            packets += 1
            if ":endloop0" in line:
                yield _Loop(now, packets, tuple(instructions))
                now = 0
        elif now and (bare := line.strip()) not in ("", "{") and not bare.startswith((".", "//")):
            instructions.append(line)


_LOOP, _END = re.compile(r"loop0\(#*([.\w$]+),\s*#*(\w+)\)"), re.compile(r"\s*}")


def _library(functions: Callable, target: str, machine: Target) -> tvm.runtime.Module:
    """Let LLVM compile functions for a machine."""
    passed = _passed(functions, target).functions
    bound = {name: function.with_attr("target", machine) for name, function in passed.items()}
    return tvm.get_global_func("target.build.llvm")(tvm.IRModule(bound), machine)


@lru_cache(maxsize=MOST_CHAINS)
def _passed(functions: Callable, target: str) -> tvm.IRModule:
    """Run TVM's own passes, which see no instruction set, and none of LLVM's options."""
    pipeline, finish, _device = tirx.get_tir_pipeline("default")
    machine = hexagon_target(isas()[0]) if target == "hexagon" else host_target()
    bound = tirx.transform.BindTarget(machine.with_host(machine))(propagate_constants(functions.module))
    with without_idle_passes(is_tidy=not functions.packets):
        finished = finish()(pipeline(bound))
    return tvm.IRModule({name: function.without_attr(ENTRY) for name, function in finished.functions.items()})
