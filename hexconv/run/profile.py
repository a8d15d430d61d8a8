"""Profile of a run in issue slots: what a thread did, both engines beside it, marks of each part of the nest.

    read input | conv 1 | conv 2 | write output | read input | ...     the thread
                 conv 1 | conv 2                                       the matrix engine, where it computes the convs
    ------- input -------->        ------- output -------->            copies, each from its start to its wait

The profile comes from a run with marks (`lower/marks.py`). Marks take slots themselves, so the slots of a run without
marks stand beside it. Slots are not time: the profile does not know how long a copy takes, only how many slots lie
between its start and the wait for it; nor how long the matrix engine multiplies, only the slots that the thread has for
the part of the nest whose packets it takes. These packets are no slots of the thread.

before:  for y in range(8):  # conv2d #1        after:  hexconv_part(1)
             ...                                        for y in range(8):
                                                            ...

A mark is a call, and takes some issue slots of the kernel; what happens inside of it isn't counted.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.errors import Unsupported
from hexconv.kernel.engine import TAP_MACS
from hexconv.lower.buffers import drop_annotations
from hexconv.lower.copies import part_of
from hexconv.lower.lowered import Lowered
from hexconv.lower.queues import part_of_queue, tensor_of
from hexconv.run.copy_engine import Copies
from hexconv.run.given import Given
from hexconv.run.measure import Run, run_case
from hexconv.run.simulator.needs import DEFAULT_SECONDS
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.slots import Event, Kind, Slots
from hexconv.run.simulator.structures import Arena
from hexconv.spec import Case
from hexconv.tir.parts import Does, Part, convolution

FUNCTION = "hexconv_part"


def with_marks(lowered: Lowered) -> tuple[tvm.IRModule, tuple[Part, ...]]:
    """Put a mark in front of every part; return the module and the parts by their numbers."""
    parts: list[Part] = []

    def marked(loop: tirx.For) -> tirx.Stmt:
        part = part_of(loop)
        if part is None:
            return loop
        if part not in parts:
            parts.append(part)
        call = tirx.call_extern("int32", FUNCTION, parts.index(part))
        return tirx.SeqStmt([tirx.Evaluate(call), loop])

    main = lowered.labelled["main"]
    body = tvm_ffi.structural_map(main.body, (tirx.For, marked))
    return drop_annotations(tvm.IRModule({"main": main.with_body(body)})), tuple(parts)


SET_UP = Part(Does.OTHER, "set up")
"""What a kernel does before the first part of its nest."""
WORDS = {
    Does.READ_INPUT: "read input",
    Does.READ_FILTER: "read filter{0.conv}",
    Does.CONV: "conv {0.conv}",
    Does.WRITE_OUTPUT: "write output",
    Does.OTHER: "{0.name}",
}
"""What each part is called."""


def words_of(part: Part) -> str:
    """Return a part in words: `set up`, `read input`, `read filter1`, `conv 1`, `write output`."""
    return WORDS[part.does].format(part)


@dataclass(frozen=True)
class Span:
    """One execution of one part of the nest.

    Attributes:
        part: the part; one block of a conv stands for the conv.
        start: the issue slots of the run before this part begins.
        end: the issue slots of the run when this part has ended.
    """

    part: Part
    start: int
    end: int

    @property
    def what(self) -> str:
        """The part in words."""
        return words_of(self.part)

    @property
    def slots(self) -> int:
        """The issue slots that the part took."""
        return self.end - self.start


@dataclass(frozen=True)
class Transfer:
    """Copies of one tensor that start in one part of the nest, and that one wait ends.

    Attributes:
        tensor: `input`, `filter1`, `output`.
        bytes: the bytes that the copies move.
        start: the slots of the run before the first copy starts.
        end: the slots of the run before the wait for the copies.
    """

    tensor: str
    bytes: int
    start: int
    end: int

    @property
    def bytes_per_slot(self) -> float:
        """The bytes that the engine must move in a slot, so that the thread never waits."""
        return self.bytes / max(self.end - self.start, 1)


@dataclass(frozen=True)
class Multiplied:
    """What the matrix engine multiplies in one execution of a part of the nest.

    Attributes:
        part: the part whose packets the engine takes.
        macs: its multiply-accumulates, needed or not.
        start: the slots of the run before its first packet.
        end: the slots of the run when the part has ended.
    """

    part: Part
    macs: int
    start: int
    end: int

    @property
    def macs_per_slot(self) -> float:
        """The multiply-accumulates that the engine must do in a slot, so that the thread never waits."""
        return self.macs / max(self.end - self.start, 1)


@dataclass(frozen=True)
class Room:
    """The bytes of VTCM in use from some slot on."""

    slot: int
    bytes: int


@dataclass(frozen=True)
class Profile:
    """A run, split into the parts that the thread, the matrix engine and the copy engine did.

    Attributes:
        case: the name of the case.
        run: the run of the case without marks.
        slots: the issue slots of that run.
        spans: what the thread did, part after part, without gaps.
        multiplied: what the matrix engine did, in order; nothing where HVX computes the convs.
        transfers: what the copy engine did, in the order of the starts.
        rooms: how much VTCM was in use.
        marked_slots: the issue slots of the run with marks, at which the last span ends.
    """

    case: str
    run: Run
    slots: Slots
    spans: tuple[Span, ...]
    multiplied: tuple[Multiplied, ...]
    transfers: tuple[Transfer, ...]
    rooms: tuple[Room, ...]
    marked_slots: int

    def slots_of(self, *does: Does) -> int:
        """Return the issue slots of all spans whose parts do one of these."""
        return sum(span.slots for span in self.spans if span.part.does in does)


def profile(
    case: Case, lowered: Lowered, copies: Copies, seconds: float = DEFAULT_SECONDS, given: Given | None = None
) -> Profile:
    """Run a case twice on the simulator, without marks and with them.

    Raises:
        Unsupported: the case has several threads, or more events than the harness keeps.
        RunFailed: a run gave no answer.
        Overran: a run needs more time or memory than it may have.
        ToolMissing: the simulator is not installed.
    """
    plan = case.settled
    if plan.threads > 1:
        raise Unsupported(f"--trace shows one thread, the plan has threads = {plan.threads}; trace it with threads = 1")
    simulator = Simulator(plan.arch, plan.vtcm_bytes, seconds, copies=copies)
    run = run_case(case, lowered, simulator, copies.seed, given=given)
    module, parts = with_marks(lowered)
    teller = replace(simulator, events=True)
    marked = run_case(case, replace(lowered, module=module), teller, copies.seed, given=given)
    assert run.slots
    assert marked.slots
    total, tensors = marked.slots.issue_slots, len(case.chain.conv)
    spans = tuple(_spans(marked.events, parts, tensors, total))
    return Profile(
        case=case.name,
        run=run,
        slots=run.slots,
        spans=tuple(span for span in spans if span.slots),
        multiplied=tuple(_multiplied(marked.events, spans)),
        transfers=tuple(_together(_transfers(marked.events, tensors, total), marked.events)),
        rooms=tuple(
            Room(event.slots, event.amount)
            for event in marked.events
            if event.kind == Kind.MEMORY and event.number == Arena.VTCM
        ),
        marked_slots=total,
    )


def packets_of_stages(case: Case, lowered: Lowered, simulator: Simulator) -> dict[str, int]:
    """Run a case with marks, and return the packets of each stage: `set up`, `read input`, `conv 1`, `write output`.

    Raises:
        Unsupported: more events than the harness keeps.
        RunFailed: the run gave no answer.
    """
    module, parts = with_marks(lowered)
    teller = replace(simulator, events=True, slots=False)
    marked = run_case(case, replace(lowered, module=module), teller)
    assert marked.counts
    found: dict[str, int] = defaultdict(int)
    for span in _spans(marked.events, parts, len(case.chain.conv), marked.counts.packets):
        found[span.what] += span.slots
    return dict(found)


def _spans(events: Sequence[Event], parts: Sequence[Part], convs: int, total: int) -> Iterator[Span]:
    """Return what the thread does between events: it works on a part of the nest, or starts copies."""
    part, start, begun = SET_UP, 0, set[int]()
    for event in events:
        now, again = part, False
        if event.kind == Kind.PART:
            now, again = _whole(parts[event.number]), event.number in begun
            begun.add(event.number)
        elif event.kind == Kind.START:
            now = part_of_queue(event.number, convs)
        if now != part or again:
            yield Span(part, start, event.slots)
            part, start, begun = now, event.slots, {event.number} if event.kind == Kind.PART else set[int]()
    yield Span(part, start, total)


def _whole(part: Part) -> Part:
    """Return the conv that a part is a block of, or the part itself."""
    return convolution(part.conv) if part.does == Does.CONV else part


def _multiplied(events: Sequence[Event], spans: Sequence[Span]) -> Iterator[Multiplied]:
    """Return what the matrix engine multiplies in each span: from its first packet to the end of the span."""
    issued = deque(event for event in events if event.kind == Kind.ENGINE and event.amount)
    for span in spans:
        taps, start = 0, span.end
        while issued and issued[0].slots <= span.end:
            event = issued.popleft()
            taps, start = taps + event.amount, min(start, event.slots)
        if taps:
            yield Multiplied(span.part, taps * TAP_MACS, start, span.end)


def _transfers(events: Sequence[Event], convs: int, total: int) -> Iterator[Transfer]:
    """Return every group of copies, from its start to the wait that ends it."""
    under_way: dict[int, list[Transfer]] = {}
    for event in events:
        groups = under_way.setdefault(event.number, [])
        if event.kind == Kind.START:
            groups.append(Transfer(tensor_of(event.number, convs), 0, event.slots, total))
        elif event.kind == Kind.COPY:
            groups[-1] = replace(groups[-1], bytes=groups[-1].bytes + event.amount)
        elif event.kind == Kind.WAIT:
            while len(groups) > event.amount:
                yield replace(groups.pop(0), end=event.slots)


def _together(groups: Iterator[Transfer], events: Sequence[Event]) -> Iterator[Transfer]:
    """Join the groups of a tensor that one wait ends, unless a part of the nest begins between their starts."""
    parts = [event.slots for event in events if event.kind == Kind.PART]
    found: dict[tuple[str, int, int], Transfer] = {}
    for group in groups:
        if not group.bytes:
            continue
        key = (group.tensor, group.end, sum(slot <= group.start for slot in parts))
        first = found.setdefault(key, replace(group, bytes=0))
        found[key] = replace(first, bytes=first.bytes + group.bytes)
    yield from sorted(found.values(), key=lambda each: (each.start, each.tensor))


Entry = dict[str, Any]

THREAD, ENGINE, MATRIX = 1, 2, 3
"""The process numbers of the trace's groups of lines: the thread, the copy engine and the matrix engine."""
UNIT = "1 us here is 1 issue slot, not a time"


def perfetto_json(profile: Profile) -> str:
    """Return a profile as a trace for https://ui.perfetto.dev, in the JSON of Chrome's viewer, one event a line.

    The format knows only time, so an issue slot is written as a microsecond; names, categories and `otherData` say
    that it is not one. https://perfetto.dev/docs/getting-started/other-formats has the format.
    """
    events = ",\n".join(json.dumps(entry) for entry in _entries(profile))
    about = {
        "unit": UNIT,
        "case": profile.case,
        "issue_slots": profile.marked_slots,
        "issue_slots_without_marks": profile.slots.issue_slots,
    }
    return f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(about)}, "traceEvents": [\n{events}\n]}}\n'


def _entries(profile: Profile) -> Iterator[Entry]:
    yield _entry_named("process_name", THREAD, 0, f"{profile.case}: thread 0 ({UNIT})")
    yield _entry_named("process_name", ENGINE, 0, f"{profile.case}: copy engine ({UNIT})")
    yield _entry_named("thread_name", THREAD, 0, "kernel")
    for span in profile.spans:
        yield _entry_of_slots(THREAD, 0, span.what, span.start, span.end, {"issue_slots": span.slots})
    lines: list[tuple[str, int]] = []
    for transfer in profile.transfers:
        line = _entry_line(lines, transfer)
        told = {"bytes": transfer.bytes, "bytes_per_slot": round(transfer.bytes_per_slot, 2)}
        yield _entry_of_slots(
            ENGINE, line, f"{transfer.tensor}, {transfer.bytes} bytes", transfer.start, transfer.end, told
        )
    for line, (tensor, _) in enumerate(lines):
        yield _entry_named("thread_name", ENGINE, line, f"copies of {tensor}")
    if profile.multiplied:
        yield _entry_named("process_name", MATRIX, 0, f"{profile.case}: matrix engine ({UNIT})")
        yield _entry_named("thread_name", MATRIX, 0, "multiplies")
    for each in profile.multiplied:
        told = {"macs": each.macs, "macs_per_slot": round(each.macs_per_slot, 2)}
        yield _entry_of_slots(MATRIX, 0, f"{words_of(each.part)}, {each.macs} MACs", each.start, each.end, told)
    for room in profile.rooms:
        counter = {"ph": "C", "pid": THREAD, "name": "VTCM in use, bytes", "ts": room.slot}
        yield {**counter, "args": {"bytes": room.bytes}}


def _entry_line(lines: list[tuple[str, int]], transfer: Transfer) -> int:
    """Return the first line of its tensor that is free again, or a new one: slices of a line may not overlap."""
    for number, (tensor, end) in enumerate(lines):
        if tensor == transfer.tensor and end <= transfer.start:
            lines[number] = (tensor, transfer.end)
            return number
    lines.append((transfer.tensor, transfer.end))
    return len(lines) - 1


def _entry_named(what: str, process: int, line: int, name: str) -> Entry:
    return {"ph": "M", "pid": process, "tid": line, "name": what, "args": {"name": name}}


def _entry_of_slots(process: int, line: int, name: str, start: int, end: int, told: Entry) -> Entry:
    category = "issue slots"
    place = {"pid": process, "tid": line, "ts": start, "dur": end - start}
    return {"ph": "X", "cat": category, "name": name, **place, "args": told}
