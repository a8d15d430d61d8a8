"""Judge a finished run by its state, its guards and its arguments; turn a fault into an error of one line."""

import signal
from itertools import pairwise
from typing import Any

from hexconv.errors import RunFailed
from hexconv.run.copies import Fault
from hexconv.run.poison import changed_bytes
from hexconv.run.simulator.image import Image
from hexconv.run.simulator.qemu import Ending
from hexconv.run.simulator.structures import MAX_SIZES, Arena, Finding, State

_MEMORY = {Arena.HEAP: "heap", Arena.VTCM: "VTCM"}


_HOSTS = ("magic", "header_bytes", "image_bytes", "parent", "stack", "arenas", "argument_count", "arguments")
"""The fields of the header that the harness only reads."""


def check(image: Image, asked: Any, ending: Ending, names: list[str]) -> None:
    """Check that a run returned and that every guard is whole.

    Args:
        image: the image after the run.
        asked: the header before the run.
        ending: how the simulator's process ended.
        names: the names of the arguments, for messages.

    Raises:
        RunFailed: the run failed; the text names the most telling cause.
    """
    _check_header(image.header, asked)
    _check_findings(image.header)
    _check_state(image, ending, names)
    _check_guards(image, names)


def _check_header(header: Any, asked: Any) -> None:
    """Check that the header is the one of the host and of the harness: a kernel can write over it too."""
    changed = [name for name in _HOSTS if header[name].tobytes() != asked[name].tobytes()]
    complaint, copies = header["complaint"], header["copies"]
    known = {
        "state": (header["state"], State),
        "complaint": (complaint["kind"], Finding),
        "arena": (complaint["arena"], Arena),
        "fault": (copies["fault"], Fault),
        "sizes": (copies["sizes"], range(MAX_SIZES + 1)),
        "threads": (header["threads"]["count"], [asked["threads"]["count"]]),
        "signal": (header["signal"], [0, *signal.Signals]),
    }
    changed += [name for name, (value, values) in known.items() if int(value) not in list(map(int, values))]
    if changed:
        raise RunFailed(f"the kernel wrote over the header of its memory image, far in front of input 0: {changed[0]}")


def _check_findings(header: Any) -> None:
    complaint = header["complaint"]
    capacity = header["arenas"][complaint["arena"]]["capacity_bytes"]
    arena = _MEMORY[Arena(int(complaint["arena"]))]
    workspace = f"workspace {complaint['serial']} of {complaint['bytes']} bytes in the {arena}"
    match Finding(int(complaint["kind"])):
        case Finding.WROTE_AFTER:
            raise RunFailed(f"the kernel wrote behind {workspace}, {complaint['distance']} bytes past its end")
        case Finding.WROTE_BEFORE:
            raise RunFailed(f"the kernel wrote in front of {workspace}, {complaint['distance']} bytes before its start")
        case Finding.EXHAUSTED:
            used = complaint["distance"]
            raise RunFailed(f"{workspace} does not fit: {used} of {capacity} bytes are in use; use smaller caches")
        case Finding.UNKNOWN_FREE:
            raise RunFailed(f"the kernel freed memory of the {arena} that it does not have")


def _check_state(image: Image, ending: Ending, names: list[str]) -> None:
    header = image.header
    match State(int(header["state"])):
        case State.RETURNED:
            return
        case State.FAILED:
            text = bytes(header["text"].tobytes()).split(b"\0")[0].decode(errors="replace")
            raise RunFailed(f"the kernel reported an error (status {header['status']}): {text or 'without a text'}")
        case State.TRAPPED:
            fault = signal.Signals(int(header["signal"])).name
            raise RunFailed(f"the kernel trapped: {fault} at {_place_of(image, names)}")
        case State.REFUSED:
            raise RunFailed("the simulator's counters can't be kept exact: use QEMU 7.2 or newer")
        case State.LOADED:
            raise RunFailed(f"the simulator ended before the kernel ran: {_how(ending)}")
        case State.RUNNING:
            raise RunFailed(f"the simulator ended inside the kernel: {_how(ending)}")


def _how(ending: Ending) -> str:
    said = f": {ending.message[:300]}" if ending.message else ""
    if ending.status >= 0:
        return f"exit status {ending.status}{said}"
    return f"killed by {signal.Signals(-ending.status).name}{said}"


def _place_of(image: Image, names: list[str]) -> str:
    """Describe a fault's address by the argument that it lies in or near."""
    header = image.header
    address = int(header["fault_address"])
    offset = address - int(header["base_address"])
    if not 0 <= offset < len(image.memory):
        return f"address {address:#x}, outside of all buffers"
    regions = [header["arguments"][index]["data"] for index in range(len(names))]
    name, region = min(zip(names, regions, strict=True), key=lambda pair: abs(int(pair[1]["offset"]) - offset))
    return f"byte {offset - int(region['offset'])} of {name}, which has {region['bytes']} bytes"


def _check_guards(image: Image, names: list[str]) -> None:
    """Check that everything but the header, the stack and the arguments is poison again."""
    header = image.header
    arguments = [(name, argument["data"]) for name, argument in zip(names, header["arguments"], strict=False)]
    arenas = [(f"the {_MEMORY[arena]}", plan["region"]) for arena, plan in zip(Arena, header["arenas"], strict=True)]
    regions = [("the stack", header["stack"]), *arguments, *arenas]
    for (name, region), (next_name, following) in pairwise(regions):
        _check_gap(image, name, int(region["offset"] + region["bytes"]), next_name, int(following["offset"]))
    for name, region in arenas:
        start = int(region["offset"])
        changed = changed_bytes(image.memory, start, start + int(region["bytes"]))
        if changed is not None:
            raise RunFailed(f"the kernel wrote outside of its workspaces: at byte {changed[0] - start} of {name}")


def _check_gap(image: Image, name: str, end: int, next_name: str, start: int) -> None:
    """Check the guard between two buffers; a broken guard is blamed on the nearer buffer."""
    changed = changed_bytes(image.memory, end, start)
    if changed is None:
        return
    behind, before = changed[0] - end, start - changed[1]
    if behind < before:
        raise RunFailed(f"the kernel wrote behind {name}, {behind} bytes past its end")
    raise RunFailed(f"the kernel wrote in front of {next_name}, {before} bytes before its start")
