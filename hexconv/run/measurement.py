"""The interface of every runner of a lowered module: what goes in, and what comes out.

A runner gets a module with one function `main` whose arguments are the inputs, then the outputs. Before the kernel
runs, it fills outputs and workspaces with poison and puts a guard around every buffer; after the run it checks the
guards. A run that gives no answer raises `RunFailed`; no run affects another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hexconv.run.copy_engine import CopyCounts
from hexconv.run.matrix_engine import EngineCounts
from hexconv.run.simulator.slots import Event, Slots, Threads

if TYPE_CHECKING:
    import tvm

Array = np.ndarray[Any, np.dtype[Any]]
ShapeAndType = tuple[tuple[int, ...], str]


@dataclass(frozen=True)
class Counts:
    """The counts of what the kernel executed, without the harness.

    Attributes:
        packets: the packets; a packet is 1 to 4 instructions that a thread issues at once.
        instructions: the instructions in these packets.
        hvx_instructions: the HVX instructions among them.
    """

    packets: int
    instructions: int
    hvx_instructions: int


@dataclass(frozen=True)
class Measurement:
    """What one run showed.

    Attributes:
        outputs: the output arrays, in the order of the kernel's arguments.
        seconds: the wall time.
        counts: what the kernel executed, on a simulator.
        vtcm_bytes: the most VTCM that was in use at a time, in whole granules, where there is VTCM.
        copies: what the copy engine did, where the kernel copies asynchronously.
        slots: the issue slots of the kernel, where they were asked for.
        events: the events that the kernel reported to the harness, where they were asked for.
        threads: what each thread did, on a simulator, where the kernel has threads.
        engine: what the matrix engine did, on a simulator, where the kernel has it.
    """

    outputs: tuple[Array, ...]
    seconds: float
    counts: Counts | None = None
    vtcm_bytes: int | None = None
    copies: CopyCounts | None = None
    slots: Slots | None = None
    events: tuple[Event, ...] = ()
    threads: Threads | None = None
    engine: EngineCounts | None = None


class Runner(Protocol):
    """A place where a lowered module runs."""

    @property
    def target(self) -> str:
        """The name of this runner on the command line: `llvm`, `hexagon` or `mlir`."""
        ...

    def run(self, module: "tvm.IRModule", inputs: Sequence[Array], outputs: Sequence[ShapeAndType]) -> Measurement:
        """Run `main` once.

        Args:
            module: a scheduled or lowered module, with one function `main`.
            inputs: the first arguments, in order, in their packed layouts.
            outputs: the shape and dtype of the other arguments, in order.

        Raises:
            RunFailed: the kernel trapped, overran its time or memory, broke a guard, or reported an error.
            ToolMissing: something that this runner needs isn't on this machine.
        """
        ...
