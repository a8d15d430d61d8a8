"""Run a built network in a process apart: its outputs as it is shipped, and what each of its steps wrote.

The same sources and objects are linked twice. As shipped they give the outputs, and on the simulator the packets of a
call. With `checking/hexconv_check.h` in front of `network.c` they also keep what each step wrote, so that every step
can be compared on what it read, and take from outside what hexconv has no operator for.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from hexconv.apart import Ending, Limits, Task
from hexconv.build.called_library import aligned_bytes
from hexconv.errors import HexconvError, RunFailed
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.network.called_network import (
    LoadedNetwork,
    linked_library,
    network_object,
    ready,
    simulated_network,
)
from hexconv.network.program_steps import Program
from hexconv.network.texts import MANIFEST, WEIGHTS, BuiltNetwork
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Array
from hexconv.written import scratch

JOB = "hexconv.network.program_run:do"
LIMITS = Limits(seconds=86400.0, memory_bytes=16 << 30)
"""The limits of the process; a run on the simulator has a time limit of its own."""
KEPT_BYTES = 128 << 20
"""What steps wrote is kept in as many runs as this allows: a simulated program addresses 3 GiB at most."""
COUNTED = 9
"""As in `hexconv_check.h`."""
NOTHING = (1, 0)
"""No step."""
CHECKS = resources.files("hexconv.network") / "checking"


@dataclass(frozen=True)
class Ran:
    """What a run of a network gave.

    Attributes:
        outputs: its outputs in the model's shapes, in the model's order.
        packets: the packets of a call on the simulator, of all threads together; None on this machine.
        written: by the number of a step, from 1 on, the bytes that it wrote; empty where none were kept.
        step_packets: [steps, 9]: for each step the packets outside of threads and of each thread; None on this machine.
    """

    outputs: tuple[Array, ...]
    packets: int | None = None
    written: Mapping[int, Array] | None = None
    step_packets: Array | None = None

    @property
    def critical_packets(self) -> int | None:
        """The packets of the slowest thread, step by step; None on this machine."""
        if self.step_packets is None:
            return None
        return int((self.step_packets[:, 0] + self.step_packets[:, 1:].max(1)).sum())


def windows_of(sizes_bytes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Split steps into runs that keep what they write: yield the first and the last number of each run.

    >>> list(windows_of([KEPT_BYTES, 1, 2]))
    [(1, 1), (2, 3)]
    """
    first, taken = 1, 0
    for number, size in enumerate(sizes_bytes, 1):
        if taken and taken + size > KEPT_BYTES:
            yield first, number - 1
            first, taken = number, 0
        taken += size
    yield first, len(sizes_bytes)


def do(task: Task) -> dict[str, Any]:
    """Run a network; what it gave is written to the file `made`.

    Args:
        task: `folder`, where the network was built; `given`, an `.npz` file with `input0`, .. and `given0`, ..;
            `made`, the file to write; `keeps`, whether to keep what steps write; `seconds`, the limit of a run.
    """
    try:
        folder = Path(task["folder"])
        built = TypeAdapter(BuiltNetwork).validate_json((folder / MANIFEST).read_text())
        with np.load(task["given"], allow_pickle=False) as arrays:
            images = [arrays[f"input{at}"] for at in range(sum(port.way == "input" for port in built.ports))]
            given = [arrays[name].reshape(-1).view(np.uint8) for name in arrays.files if name.startswith("given")]
        run = _simulated if built.target == "hexagon" else _here
        answer = run(folder, built, images, np.concatenate([*given, np.zeros(1, np.uint8)]), task)
        np.savez(task["made"], allow_pickle=False, **answer)
        return {}
    except HexconvError as refusal:
        return {"reason": str(refusal)}


def _windows(built: BuiltNetwork, keeps: bool, is_given: bool) -> list[tuple[int, int]]:
    """The runs in which steps are kept; one that keeps nothing where something has to be given all the same."""
    if keeps:
        return list(windows_of([step.writes_bytes for step in built.steps]))
    return [NOTHING] if is_given else []


def _parts(kept: Array, built: BuiltNetwork, window: tuple[int, int]) -> dict[str, Array]:
    """Take apart what the steps of a window wrote, by their numbers."""
    numbers = range(window[0], window[1] + 1)
    ends = np.cumsum([built.steps[number - 1].writes_bytes for number in numbers])
    return {f"step{number}": part for number, part in zip(numbers, np.split(kept, ends), strict=False)}


def _kept_bytes(built: BuiltNetwork, window: tuple[int, int]) -> int:
    return max(1, sum(step.writes_bytes for step in built.steps[window[0] - 1 : window[1]]))


def _simulated(folder: Path, built: BuiltNetwork, images: list[Array], given: Array, task: Task) -> dict[str, Any]:
    simulator = Simulator(seconds=task["seconds"], slots=False, isa=built.isa)
    made: dict[str, Any] = {}
    if len(given) == 1:  # what is shipped calls nothing that has to be given
        run = simulated_network(folder, built, _kernel(folder), images, simulator)
        made = {f"output{at}": output for at, output in enumerate(run.outputs)}
        made["packets"] = run.counts.packets if run.counts else 0
    weights = np.fromfile(folder / WEIGHTS, np.uint8)
    outputs = [(port.shape, port.dtype) for port in built.ports if port.way == "output"]
    for window in _windows(built, task["keeps"], len(given) > 1):
        extra = [((_kept_bytes(built, window),), "uint8"), ((len(built.steps), COUNTED), "int64")]
        kernel = _kernel(folder, window)
        run = simulator.run_object(kernel, [*images, weights, given], [*outputs, *extra])
        *_, kept, packets = run.outputs
        made |= _parts(kept, built, window)
        made["step_packets"] = np.diff(packets, axis=0, prepend=np.zeros((1, COUNTED), np.int64))
        for at, output in enumerate(run.outputs[: len(outputs)]):
            if not np.array_equal(made.setdefault(f"output{at}", output), output, equal_nan=output.dtype.kind == "f"):
                raise RunFailed("the network gives other outputs where its steps are kept")
    return made


@lru_cache(maxsize=2)
def _kernel(folder: Path, window: tuple[int, int] | None = None) -> HexagonObject:
    """Link the network as it is shipped, or so that it keeps what some steps write."""
    built = TypeAdapter(BuiltNetwork).validate_json((folder / MANIFEST).read_text())
    if window is None:
        return network_object(folder, built)
    inputs = sum(port.way == "input" for port in built.ports)
    names = {"GIVEN": inputs + 1, "KEPT": len(built.ports) + 2, "FIRST": window[0], "LAST": window[1]}
    defined = [f"-D{name}={value}" for name, value in names.items()]
    with resources.as_file(CHECKS) as place:
        flags = _checked_flags(folder, place, built)
        return network_object(folder, built, "-DCHECKED", "-DSIMULATED", *defined, *flags)


def _checked_flags(folder: Path, place: Path, built: BuiltNetwork) -> tuple[str, ...]:
    free = "".join(f"{{{step},{start},{end}}}," for step, start, end in free_vtcm(built))
    return f"-DFREE={free}", f"-I{folder}", "-include", str(place / "hexconv_check.h"), str(place / "hexconv_check.c")


def free_vtcm(built: BuiltNetwork) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches of VTCM in which no tensor stays behind a step: its number, the first byte, the end."""
    for step in range(1, len(built.steps) + 1):
        at, staying = 0, [each for each in built.residents if each.first <= step < each.last]
        for each in sorted(staying, key=lambda each: each.offset_bytes):
            if at < each.offset_bytes:
                yield step, at, each.offset_bytes
            at = each.offset_bytes + each.bytes
        if at < built.vtcm_bytes:
            yield step, at, built.vtcm_bytes


class _Check(ctypes.Structure):
    """C's `struct hexconv_check`."""

    _fields_ = [
        ("kept", ctypes.c_void_p),
        ("first", ctypes.c_int),
        ("last", ctypes.c_int),
        ("packets", ctypes.c_void_p),
        ("given", ctypes.c_void_p),
    ]


def _here(folder: Path, built: BuiltNetwork, images: list[Array], given: Array, task: Task) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if len(given) == 1:
        outputs = _loaded(folder, False)(*images)
        made = {f"output{at}": output for at, output in enumerate(outputs)}
    for window in _windows(built, task["keeps"], len(given) > 1):
        network = _loaded(folder, True)
        kept = aligned_bytes(_kept_bytes(built, window))
        check = _Check.in_dll(network._library, "hexconv_check")
        check.kept, check.given = kept.ctypes.data, given.ctypes.data
        check.first, check.last = window
        outputs = network(*images)
        made |= _parts(kept, built, window)
        for at, output in enumerate(outputs):
            if not np.array_equal(made.setdefault(f"output{at}", output), output, equal_nan=output.dtype.kind == "f"):
                raise RunFailed("the network gives other outputs where its steps are kept")
    return made


@lru_cache(maxsize=2)
def _loaded(folder: Path, checked: bool) -> LoadedNetwork:
    """Load the network as it is shipped, or so that it keeps what its steps write."""
    facts = TypeAdapter(dict[str, Any]).validate_json((folder / MANIFEST).read_text())
    if not checked:
        return ready(folder, facts, linked_library(folder))
    with resources.as_file(CHECKS) as place:
        built = TypeAdapter(BuiltNetwork).validate_python(facts)
        library = linked_library(folder, *_checked_flags(folder, place, built))
    return ready(folder, facts, library, library.hexconv_give)


def run_program(
    folder: Path,
    program: Program,
    images: Mapping[str, Array],
    given: Sequence[Array],
    doing: Any,
    keeps: bool = True,
    seconds: float = 1800.0,
) -> Ran | str:
    """Run a built network in a process apart; return what it gave, or why it gave nothing.

    Args:
        folder: the folder that it was built into.
        program: its steps.
        images: its inputs in the model's shapes, by name.
        given: what the steps have to write that hexconv has no operator for, logical NHWC, in order.
        doing: a function that does a job of this module in a process apart, and returns how it ended.
        keeps: whether to keep what each step writes.
        seconds: the limit of a run on the simulator.
    """
    with scratch() as place:
        arrays = {f"input{at}": images[port.name] for at, port in enumerate(program.inputs)}
        arrays |= {f"given{at:06d}": np.ascontiguousarray(array) for at, array in enumerate(given)}
        np.savez(place / "given.npz", allow_pickle=False, **arrays)
        task = {"folder": str(folder), "given": str(place / "given.npz"), "made": str(place / "made.npz")}
        ending: Ending = doing({**task, "keeps": keeps, "seconds": seconds})
        if ending.how != "answered":
            return f"{ending.how}: {ending.reason}"
        if reason := ending.answer.get("reason", ""):
            return reason
        with np.load(place / "made.npz", allow_pickle=False) as made:
            outputs = tuple(made[f"output{at}"] for at in range(len(program.outputs)))
            numbers = range(1, len(program.steps) + 1) if keeps else ()
            return Ran(
                outputs,
                int(made["packets"]) if "packets" in made else None,
                {number: made[f"step{number}"] for number in numbers},
                made.get("step_packets"),
            )
