"""Write a profile as a trace for https://ui.perfetto.dev, in the JSON of Chrome's trace viewer.

The format knows only time, so an issue slot is written as a microsecond; names, categories and `otherData` say
that it is not one. https://perfetto.dev/docs/getting-started/other-formats has the format.
"""

import json
from collections.abc import Iterator
from typing import Any

from hexconv.run.profile import Profile, Transfer

Entry = dict[str, Any]

THREAD, ENGINE = 1, 2
"""The process numbers of the trace's two groups of lines: the thread and the copy engine."""
UNIT = "1 us here is 1 issue slot, not a time"


def perfetto_json(profile: Profile) -> str:
    """Return the trace as a JSON text, one event a line."""
    events = ",\n".join(json.dumps(entry) for entry in _entries(profile))
    about = {
        "unit": UNIT,
        "case": profile.case,
        "issue_slots": profile.marked_slots,
        "issue_slots_without_marks": profile.slots.issue_slots,
    }
    return f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(about)}, "traceEvents": [\n{events}\n]}}\n'


def _entries(profile: Profile) -> Iterator[Entry]:
    yield _named("process_name", THREAD, 0, f"{profile.case}: thread 0 ({UNIT})")
    yield _named("process_name", ENGINE, 0, f"{profile.case}: copy engine ({UNIT})")
    yield _named("thread_name", THREAD, 0, "kernel")
    for span in profile.spans:
        yield _slice(THREAD, 0, span.what, span.start, span.end, {"issue_slots": span.slots})
    lines: list[tuple[str, int]] = []
    for transfer in profile.transfers:
        line = _line(lines, transfer)
        told = {"bytes": transfer.bytes, "bytes_per_slot": round(transfer.bytes_per_slot, 2)}
        yield _slice(ENGINE, line, f"{transfer.tensor}, {transfer.bytes} bytes", transfer.start, transfer.end, told)
    for line, (tensor, _) in enumerate(lines):
        yield _named("thread_name", ENGINE, line, f"copies of {tensor}")
    for room in profile.rooms:
        counter = {"ph": "C", "pid": THREAD, "name": "VTCM in use, bytes", "ts": room.slot}
        yield {**counter, "args": {"bytes": room.bytes}}


def _line(lines: list[tuple[str, int]], transfer: Transfer) -> int:
    """Return the first line of its tensor that is free again, or a new one: slices of a line may not overlap."""
    for number, (tensor, end) in enumerate(lines):
        if tensor == transfer.tensor and end <= transfer.start:
            lines[number] = (tensor, transfer.end)
            return number
    lines.append((transfer.tensor, transfer.end))
    return len(lines) - 1


def _named(what: str, process: int, line: int, name: str) -> Entry:
    return {"ph": "M", "pid": process, "tid": line, "name": what, "args": {"name": name}}


def _slice(process: int, line: int, name: str, start: int, end: int, told: Entry) -> Entry:
    category = "issue slots"
    place = {"pid": process, "tid": line, "ts": start, "dur": end - start}
    return {"ph": "X", "cat": category, "name": name, **place, "args": told}
