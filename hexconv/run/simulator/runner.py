"""Run Hexagon code in QEMU: compile, link, lay out the image, run, judge state and guards, read the results.

The harness puts them into a section of their own (`UNCOUNTED` in `counters.h`). They move copies byte by byte and check
poison, which runs many times more blocks than the kernel itself, so QEMU is told to leave this section out.
"""

import os
import signal
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from hexconv.errors import Overran, RunFailed
from hexconv.kernel.engine_words import trapping_functions
from hexconv.lower.hexagon_object import HexagonObject, compile_for_hexagon, noting
from hexconv.run.copy_engine import ANY_MOMENT, Copies, Fault, counts_of
from hexconv.run.matrix_engine import engine_counts
from hexconv.run.measurement import Array, Counts, Measurement, ShapeAndType
from hexconv.run.poison import changed_bytes
from hexconv.run.simulator.image import Image, Layout, laid_out, opened
from hexconv.run.simulator.needs import ADDRESSABLE_BYTES, DEFAULT_MEMORY_BYTES, DEFAULT_SECONDS, available_memory_bytes
from hexconv.run.simulator.qemu import Ending, find_qemu, run
from hexconv.run.simulator.slots import Slots, events_of, slots_of, threads_of, without_vectors
from hexconv.run.simulator.structures import MAX_SIZES, Arena, Finding, State
from hexconv.run.simulator.toolchain import program
from hexconv.run.simulator.trace import TICK_MICROSECONDS, Blocks, traced
from hexconv.spec.capacities import DEFAULT_ARCH, capacity_bytes

SECTION = b"hexconv_uncounted\0"
LAST_ADDRESS = 0xFFFFFFFF
_HEADERS, _SIZES = 0x20, 0x2E
"""Where a 32-bit ELF header holds the section headers' offset, their size, their number, and the header of names."""


def traced_addresses(program: Path) -> str:
    """Return all addresses outside of the section, for QEMU's `-dfilter`: `0x0..0x20fff,0x21400..0xffffffff`."""
    first = 0
    ranges: list[str] = []
    for start, size in sorted(_uncounted(program.read_bytes())):
        ranges.append(f"{first:#x}..{start - 1:#x}")
        first = start + size
    return ",".join([*ranges, f"{first:#x}..{LAST_ADDRESS:#x}"])


def _uncounted(elf: bytes) -> Iterator[tuple[int, int]]:
    """Yield the address and the size of every such section; nothing where the program has none."""
    (headers,) = struct.unpack_from("<I", elf, _HEADERS)
    size, count, of_names = struct.unpack_from("<HHH", elf, _SIZES)
    sections = [struct.unpack_from("<6I", elf, headers + number * size) for number in range(count)]
    names = sections[of_names][4]
    for name, _kind, _flags, address, _offset, length in sections:
        if elf.startswith(SECTION, names + name) and length:
            yield address, length


_MEMORY = {Arena.HEAP: "heap", Arena.VTCM: "VTCM"}


_HOSTS = (
    "magic",
    "header_bytes",
    "image_bytes",
    "parent",
    "has_engine_words",
    "stack",
    "arenas",
    "argument_count",
    "arguments",
)
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


MIB = 1 << 20


@dataclass(frozen=True)
class Simulator:
    """The `hexagon` target: `qemu-hexagon` with the harness of this package.

    Attributes:
        arch: the architecture whose VTCM capacity holds, `v68`.
        vtcm_bytes: the VTCM capacity, where it isn't what TVM's target tag of the architecture says.
        seconds: the time limit of a run.
        memory_bytes: the memory a run may have.
        tick_microseconds: how often the 32-bit counters are sampled; they must not move by 2^31 meanwhile.
        counter_start: what the counters hold before the kernel.
        copies: when asynchronous copies are performed.
        slots: whether issue slots are counted, from QEMU's trace of the run.
        vtcm_loads: whether the scalar loads from VTCM are counted among these slots, in a second run.
        isa: the instruction set of the code, by default the newest that the installed simulator runs. Issue slots are
            counted by the rules of the one that is asked for, else by those of `arch`.
        events: whether to keep the kernel's calls of the harness as events; the calls take issue slots too.
        engine_words: whether packets of the matrix engine are its own words, as on a device. Each traps, and the model
            performs it; else kernels call the model.
    """

    arch: str = DEFAULT_ARCH
    vtcm_bytes: int | None = None
    seconds: float = DEFAULT_SECONDS
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    tick_microseconds: int = 250_000
    counter_start: int = 0
    copies: Copies = ANY_MOMENT
    slots: bool = True
    vtcm_loads: bool = True
    isa: str | None = None
    events: bool = False
    engine_words: bool = False

    @property
    def target(self) -> str:
        """The name of this runner on the command line."""
        return "hexagon"

    def run(self, module: tvm.IRModule, inputs: Sequence[Array], outputs: Sequence[ShapeAndType]) -> Measurement:
        """Run `main` of a scheduled or lowered module once.

        Raises:
            RunFailed: the kernel or the simulator failed, or broke a guard.
            Overran: it needs more time or memory than it may have.
            ToolMissing: there is no simulator, none that runs this instruction set or lets words trap, or no zig.
            Unsupported: the size of a workspace is unknown, or there are too many arguments.
        """
        return self.run_object(self.compiled(module), inputs, outputs)

    def compiled(self, module: tvm.IRModule) -> HexagonObject:
        """Compile a module as `run` does; the last kernel is kept.

        Raises:
            ToolMissing: there is no simulator, or none that runs this instruction set.
            Unsupported: the size of a workspace is unknown.
        """
        return _compiled(module, find_qemu().isa_for(self.isa))

    def run_object(
        self, kernel: HexagonObject, inputs: Sequence[Array], outputs: Sequence[ShapeAndType]
    ) -> Measurement:
        """Run a compiled kernel once."""
        executable = self._program(kernel)
        tensors = [(array.shape, str(array.dtype)) for array in inputs] + list(outputs)
        capacity = capacity_bytes(self.arch, self.vtcm_bytes) if kernel.vtcm_bytes else 0
        layout = laid_out(kernel, tensors, capacity)
        self._check_memory(layout.size_bytes)
        with opened(layout) as image:
            measured = self._measure(image, kernel, executable, inputs, outputs)
        if not measured.slots or self.events or not self.vtcm_loads:
            return measured
        loads = self._vtcm_scalar_loads(kernel, inputs, measured.outputs, layout) if kernel.vtcm_bytes else 0
        return replace(measured, slots=replace(measured.slots, vtcm_scalar_loads=loads))

    def _program(self, kernel: HexagonObject) -> Path:
        """Link a kernel: the harness has functions that call the model, which those with words take the place of."""
        if not self.engine_words:
            return program(kernel)
        find_qemu().check_words()
        return program(kernel, trapping_functions())

    def _vtcm_scalar_loads(
        self, kernel: HexagonObject, inputs: Sequence[Array], results: Sequence[Array], layout: Layout
    ) -> int | None:
        """Count scalar loads from VTCM in a second run, of code that reports its addresses; None if that fails."""
        noted = noting(kernel) if kernel.has_vectors else None
        if noted is None:
            return None
        shapes = [(array.shape, str(array.dtype)) for array in results]
        with opened(layout) as image:
            again = replace(self, slots=False)._measure(image, noted, self._program(noted), inputs, shapes)
            loads = int(image.header["vtcm_scalar_loads"])
        if any(not np.array_equal(one, other) for one, other in zip(again.outputs, results, strict=True)):
            raise RunFailed("the kernel had another result when its loads were counted; leave it out with --no-slots")
        return loads

    def _check_memory(self, needed_bytes: int) -> None:
        available_bytes = available_memory_bytes() or ADDRESSABLE_BYTES
        allowed_bytes = min(self.memory_bytes, ADDRESSABLE_BYTES, available_bytes)
        if needed_bytes > allowed_bytes:
            raise Overran(
                f"the run needs {needed_bytes / MIB:.1f} MiB for tensors and caches and may have "
                f"{allowed_bytes / MIB:.1f} MiB, {(needed_bytes - allowed_bytes) / MIB:.1f} MiB less; "
                "use a smaller case or plan"
            )

    def _measure(
        self,
        image: Image,
        kernel: HexagonObject,
        executable: Path,
        inputs: Sequence[Array],
        outputs: Sequence[ShapeAndType],
    ) -> Measurement:
        header = image.header
        header["parent"] = os.getpid()
        trace = self.slots and kernel.has_vectors
        tick = max(TICK_MICROSECONDS, self.tick_microseconds) if trace else self.tick_microseconds
        header["tick_microseconds"], header["counter_start"] = tick, self.counter_start
        arguments = [image.tensor(index, array.shape, str(array.dtype)) for index, array in enumerate(inputs)]
        for argument, array in zip(arguments, inputs, strict=True):
            argument[...] = array
        self.copies.ask(header["copies"])
        header["threads"]["seed"] = self.copies.seed % 2**32
        header["events"]["wanted"] = self.events
        header["has_engine_words"] = self.engine_words
        asked, started = header.copy(), time.perf_counter()
        ending, blocks = self._ended(executable, image, trace)
        seconds = time.perf_counter() - started
        check(image, asked, ending, [*_numbered("input", inputs), *_numbered("output", outputs)])
        _check_unchanged(inputs, arguments)
        results = [image.tensor(len(inputs) + index, *output).copy() for index, output in enumerate(outputs)]
        counts = Counts(*(int(header[name]) for name in ("packets", "instructions", "hvx_instructions")))
        slots = self._slots(blocks, counts) if self.slots else None
        engine = engine_counts(header["engine"], int(header["arenas"][Arena.VTCM]["capacity_bytes"]))
        return Measurement(
            outputs=tuple(results),
            seconds=seconds,
            counts=counts,
            vtcm_bytes=engine.placed_bytes if engine else int(header["peak_bytes"][Arena.VTCM]),
            copies=counts_of(header["copies"]),
            slots=slots,
            threads=threads_of(header["threads"], blocks, self.isa or self.arch),
            engine=engine,
            events=events_of(header["events"], blocks, self.arch, slots) if self.events else (),
        )

    def _ended(self, executable: Path, image: Image, trace: bool) -> tuple[Ending, Blocks | None]:
        """Run a program to its end, and trace it where a trace was asked for."""
        qemu = str(find_qemu().path)
        if not trace:
            return run([qemu, str(executable)], self.seconds, image.file), None
        with traced(traced_addresses(executable), self.events) as tracing:
            command = [qemu, *tracing.options, str(executable)]
            ending = run(command, self.seconds, image.file, keep=(tracing.pipe,))
        return ending, tracing.blocks

    def _slots(self, blocks: Blocks | None, counts: Counts) -> Slots:
        return slots_of(blocks, self.isa or self.arch, counts.packets) if blocks else without_vectors(counts.packets)


@lru_cache(maxsize=1)
def _compiled(module: tvm.IRModule, isa: str) -> HexagonObject:
    """Return the kernel of a module. The last kernel is kept, for further runs with other copies or other tensors."""
    return compile_for_hexagon(module, isa)


def _numbered(name: str, tensors: Sequence[object]) -> list[str]:
    """Return names of arguments for messages: `name 0`, `name 1`, ..."""
    return [f"{name} {index}" for index in range(len(tensors))]


def _check_unchanged(inputs: Sequence[Array], arguments: Sequence[Array]) -> None:
    """Check that the kernel changed no byte of an input."""
    for index, (before, after) in enumerate(zip(inputs, arguments, strict=True)):
        if not np.array_equal(np.ascontiguousarray(before).view(np.uint8), after.view(np.uint8)):
            raise RunFailed(f"the kernel wrote to input {index}, which it may only read")
