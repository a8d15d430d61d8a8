"""What every way of running a lowered module has in common: what goes in, what comes out.

A runner gets a module with one function `main` whose arguments are the inputs, then the outputs. Before the
kernel it fills outputs and workspaces with poison, around every buffer it puts a guard, and after the run it
looks at the guards. A run that gives no answer raises `RunFailed`; nothing that one run does reaches another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import tvm

from hexconv.run.copies import CopyCounts
from hexconv.run.simulator.events import Event
from hexconv.run.simulator.slots import Slots
from hexconv.run.simulator.threads import Threads

Array = np.ndarray[Any, np.dtype[Any]]
ShapeAndType = tuple[tuple[int, ...], str]


@dataclass(frozen=True)
class Counts:
    """What the kernel alone executed. A packet holds the 1 to 4 instructions that a thread issues at once."""

    packets: int
    instructions: int
    hvx_instructions: int


@dataclass(frozen=True)
class Measurement:
    """What one run showed.

    Attributes:
        outputs: in the order of the kernel's arguments.
        seconds: wall time.
        counts: on a simulator.
        vtcm_bytes: the most VTCM that was in use at a time, in whole granules, where there is VTCM.
        copies: what the copy engine did, where the kernel copies asynchronously.
        slots: what the kernel's packets take to issue, where that was asked for.
        events: what the kernel told as it went, where that was asked for.
        threads: what each thread did, on a simulator, of a kernel that has some.
    """

    outputs: tuple[Array, ...]
    seconds: float
    counts: Counts | None = None
    vtcm_bytes: int | None = None
    copies: CopyCounts | None = None
    slots: Slots | None = None
    events: tuple[Event, ...] = ()
    threads: Threads | None = None


class Runner(Protocol):
    """A place where a lowered module runs."""

    @property
    def target(self) -> str:
        """The word for this place on the command line: `llvm` or `hexagon`."""
        ...

    def run(self, module: tvm.IRModule, inputs: Sequence[Array], outputs: Sequence[ShapeAndType]) -> Measurement:
        """Run `main` once.

        Args:
            module: scheduled or lowered, with one function `main`.
            inputs: the first arguments, in order, in their packed layouts.
            outputs: shape and dtype of the other arguments, in order.

        Raises:
            RunFailed: trapped, overran its time or memory, broke a guard, or reported an error.
            ToolMissing: something this runner needs isn't on this machine.
        """
        ...
