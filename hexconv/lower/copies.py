"""Find the copies between memory and caches in a lowered function, and the loops around each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tvm import tirx

from hexconv.lower import queues
from hexconv.lower.buffers import convs_of
from hexconv.schedule.stream import ReadAhead
from hexconv.tir.loops import PART
from hexconv.tir.parts import Does, Part, read_part
from hexconv.tir.trees import all_of

MOST = "hexconv.most"
"""Annotation of a loop whose number of trips differs from thread to thread: the largest number."""


@dataclass(frozen=True)
class Copy:
    """The part of a nest that fills one cache, or empties it.

    Attributes:
        queue: the queue of its tensor.
        conv: the number of the conv that computes from the cache, or into it.
        is_in: whether it fills the cache.
        cache: the buffer of the cache.
        loops: the loops around it, the outermost first, without the loop over threads.
        ring: how the read into a ring runs ahead; None where the cache is no ring.
        is_in_thread: whether it stands inside of the loop over threads, if there is one.
    """

    queue: int
    conv: int
    is_in: bool
    cache: tirx.Var
    loops: tuple[tirx.For, ...]
    ring: ReadAhead | None
    is_in_thread: bool = False

    @property
    def times(self) -> tirx.Expr:
        """How often the copy runs in a thread."""
        return prod((loop.extent for loop in self.loops), start=tirx.const(1, "int32"))

    @property
    def most_times(self) -> int:
        """How often the copy runs in the thread that runs it most often."""
        return prod(int(loop.annotations.get(MOST, loop.extent)) for loop in self.loops)

    @property
    def has_slots(self) -> bool:
        """Whether the cache gets a second slot, for double buffering."""
        return self.ring is None and self.most_times > 1


def copies_of(func: tirx.PrimFunc, rings: Mapping[str, ReadAhead]) -> dict[Part, Copy]:
    """Find all copies of a function (no blocks), by their parts.

    Args:
        func: a function in which the loops that begin parts are annotated.
        rings: the ring buffers by the name of the cache.
    """
    found: dict[Part, Copy] = {}
    convs = convs_of(func)

    def visit(statement: tirx.Stmt, loops: tuple[tirx.For, ...], is_in_thread: bool) -> None:
        part = part_of(statement)
        if part and part.copies:
            found[part] = replace(_copy(part, statement, loops, convs, rings), is_in_thread=is_in_thread)
        elif isinstance(statement, tirx.For):
            begins = is_over_bands(statement)
            visit(statement.body, () if begins else (*loops, statement), is_in_thread or begins)
        else:
            for inner in inside(statement):
                visit(inner, loops, is_in_thread)

    visit(func.body, (), False)
    return found


def is_over_bands(statement: tirx.Stmt) -> bool:
    """Whether a statement is the loop over bands, of which each thread has one."""
    return isinstance(statement, tirx.For) and statement.kind == tirx.ForKind.PARALLEL


def part_of(statement: tirx.Stmt) -> Part | None:
    """Return the part of the chain that a statement begins with, guarded or not."""
    while isinstance(statement, tirx.IfThenElse) and statement.else_case is None:
        statement = statement.then_case
    begins = isinstance(statement, tirx.For) and PART in statement.annotations
    return read_part(str(statement.annotations[PART])) if begins else None


def inside(statement: tirx.Stmt) -> Sequence[tirx.Stmt]:
    """Return the statements that a sequence or a guard holds."""
    if isinstance(statement, tirx.SeqStmt):
        return list(statement.seq)
    if isinstance(statement, tirx.IfThenElse):
        return [case for case in (statement.then_case, statement.else_case) if case is not None]
    return []


def _copy(
    part: Part, statement: tirx.Stmt, loops: tuple[tirx.For, ...], convs: int, rings: Mapping[str, ReadAhead]
) -> Copy:
    """Return one part that copies."""
    is_in = part.does != Does.WRITE_OUTPUT
    store = all_of(statement, tirx.BufferStore)[0]
    cache = store.buffer if is_in else store.value.source
    queue = queues.queue_of_part(part, convs)
    return Copy(queue, min(max(queue, 1), convs), is_in, cache, loops, rings.get(cache.name))
