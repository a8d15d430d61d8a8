"""Run on this machine, through LLVM; and count there the bytes that a lowered module moves, and its MACs."""

import ctypes
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from statistics import median
from typing import Any

import numpy as np
import tvm

from hexconv.errors import RunFailed
from hexconv.lower import Lowered
from hexconv.lower.counting import Counts as WorkCounts
from hexconv.lower.counting import counting_module
from hexconv.lower.counting import counts_of as work_counts
from hexconv.lower.host_code import compile_for_host, host_target
from hexconv.lower.queues import call_engine, needs_engine
from hexconv.lower.vtcm import place_in_vtcm
from hexconv.run.copy_engine import ANY_MOMENT, Copies, CopyCounts, counts_of
from hexconv.run.measurement import Array, Measurement, ShapeAndType
from hexconv.run.poison import changed_bytes, poison, poison_caches
from hexconv.run.simulator.structures import COPIES
from hexconv.run.simulator.toolchain import engine_library


@lru_cache
def loaded() -> ctypes.CDLL:
    """Load the library, so that kernels compiled from now on find its functions.

    Raises:
        ToolMissing: zig, which builds the library, is not installed.
    """
    return ctypes.CDLL(str(engine_library()), ctypes.RTLD_GLOBAL)


@contextmanager
def opened(copies: Copies) -> Iterator[Any]:
    """Open an engine for one run. After the run the structure holds what the engine found."""
    library, found = loaded(), np.zeros(1, COPIES)
    copies.ask(found[0])
    library.copies_open(ctypes.c_void_p(found.ctypes.data))
    yield found[0]
    library.copies_close()


GUARD_BYTES = 4096
ALIGNMENT_BYTES = 128
TIMED_CALLS, TIMED_SECONDS = 5, 1.0
TARGET = host_target()


@dataclass(frozen=True)
class Host:
    """The `llvm` target: code for the CPU that hexconv runs on.

    Attributes:
        copies: when asynchronous copies are performed.
        calls: the most calls of a kernel. The first call is checked, and `seconds` is the median of all calls; a slow
            kernel is called less often.
    """

    copies: Copies = ANY_MOMENT
    calls: int = TIMED_CALLS

    @property
    def target(self) -> str:
        """The name of this runner on the command line."""
        return "llvm"

    def run(self, module: tvm.IRModule, inputs: Sequence[Array], outputs: Sequence[ShapeAndType]) -> Measurement:
        """Run `main`. Caches and outputs hold poison at the start, and outputs lie between guards.

        Raises:
            RunFailed: the kernel wrote beside an output, or used an asynchronous copy wrongly.
            ToolMissing: the kernel copies asynchronously, and zig, which builds the copy engine, is not installed.
        """
        if needs_engine(module):
            loaded()  # The engine is loaded before the kernel, which finds it by name.
        kernel = _compiled(module)["main"]
        results = [Guarded.of(shape, dtype) for shape, dtype in outputs]
        arguments = [tvm.runtime.tensor(np.ascontiguousarray(array)) for array in inputs]
        arguments += [tvm.runtime.from_dlpack(result.array) for result in results]
        calls = list(self._calls(kernel, arguments, needs_engine(module)))
        for index, result in enumerate(results):
            result.check(f"output {index}")
        seconds = median(seconds for seconds, _ in calls)
        return Measurement(tuple(result.array for result in results), seconds, copies=calls[0][1])

    def _calls(self, kernel: Any, arguments: Sequence[Any], copies: bool) -> Iterator[tuple[float, CopyCounts | None]]:
        """Call the kernel as often as there is time for; return the seconds of each call, and what the copy engine did.

        All calls share their arguments: an element that a call does not write, or computes from what an earlier call
        wrote, shows in the final output.
        """
        until = time.perf_counter() + TIMED_SECONDS
        for _ in range(self.calls):
            with opened(self.copies) if copies else nullcontext() as found:
                started = time.perf_counter()
                kernel(*arguments)
                ended = time.perf_counter()
            yield ended - started, counts_of(found) if found is not None else None
            if ended > until:
                return


@lru_cache(maxsize=1)
def _compiled(module: tvm.IRModule) -> tvm.runtime.Executable:
    """Return the kernel of a module. The last kernel is kept, for further runs with other copies or other tensors.

    LLVM generates a function's code when the function is first looked up, not when the module is compiled.
    """
    return compile_for_host(place_in_vtcm(poison_caches(call_engine(module))), TARGET)


@dataclass(frozen=True)
class Guarded:
    """An array in the middle of memory that nothing may write; all of it starts as poison."""

    memory: Array
    start: int
    array: Array

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: str) -> "Guarded":
        """Allocate a poisoned array for one tensor, with a guard on both sides."""
        size_bytes = prod(shape) * np.dtype(dtype).itemsize
        memory = np.empty(size_bytes + 2 * GUARD_BYTES + ALIGNMENT_BYTES, np.uint8)
        memory = memory[: len(memory) // 2 * 2]
        poison(memory)
        start = GUARD_BYTES + -(memory.ctypes.data + GUARD_BYTES) % ALIGNMENT_BYTES
        return cls(memory, start, memory[start : start + size_bytes].view(dtype).reshape(shape))

    def check(self, name: str) -> None:
        """Check that nothing wrote to either guard.

        Raises:
            RunFailed: a byte beside the array was written; the text says which.
        """
        end = self.start + self.array.nbytes
        for first, last in ((0, self.start), (end, len(self.memory))):
            if changed := changed_bytes(self.memory, first, last):
                place = changed[0] - end if changed[0] >= end else changed[0] - self.start
                raise RunFailed(f"the kernel wrote outside of {name}, at byte {place} relative to its nearer end")


QUICKLY_BUILT = tvm.target.Target({**TARGET.export(), "opt-level": 1})
"""This machine, with code of optimisation level 1, which turns loops that only count into products. A higher level
takes twice the time to compile and gains nothing in a run."""


def count(lowered: Lowered) -> WorkCounts:
    """Run every loop of a lowered module, each statement replaced by a counter.

    The figures depend on shapes alone, so one run without data is exact for all.
    """
    module = counting_module(lowered)
    counters = tvm.runtime.tensor(np.zeros(module["main"].params[0].shape[0].value, np.int64))
    compile_for_host(module, QUICKLY_BUILT)["main"](counters)
    return work_counts(lowered, [int(runs) for runs in counters.numpy()])
