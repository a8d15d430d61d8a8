"""Runs on this machine, through LLVM."""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from statistics import median
from typing import Any

import numpy as np
import tvm
from tvm.target import Target, codegen

from hexconv.errors import RunFailed
from hexconv.lower.engine import call_engine, needs_engine
from hexconv.lower.host import compile_for_host
from hexconv.lower.poison import poison_caches
from hexconv.lower.vtcm import place_in_vtcm
from hexconv.run.copies import ANY_MOMENT, Copies, CopyCounts, counts_of
from hexconv.run.host_engine import loaded, opened
from hexconv.run.poison import changed_bytes, poison
from hexconv.run.runner import Array, Measurement, ShapeAndType

GUARD_BYTES = 4096
ALIGNMENT_BYTES = 128
TIMED_CALLS, TIMED_SECONDS = 5, 1.0
TARGET = Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu()})


@dataclass(frozen=True)
class Host:
    """The `llvm` target: code for the CPU that hexconv runs on.

    Attributes:
        copies: when asynchronous copies are performed.
        calls: of a kernel, at most: the first is checked, and `seconds` are the median of all; a kernel that takes long
            is called less often.
    """

    copies: Copies = ANY_MOMENT
    calls: int = TIMED_CALLS

    @property
    def target(self) -> str:
        """The word for this runner on the command line."""
        return "llvm"

    def run(self, module: tvm.IRModule, inputs: Sequence[Array], outputs: Sequence[ShapeAndType]) -> Measurement:
        """Run `main`: caches and outputs start as poison, outputs lie between guards.

        Raises:
            RunFailed: the kernel wrote beside an output, or broke a promise of its asynchronous copies.
            ToolMissing: it copies asynchronously, and there is no zig to build the copy engine.
        """
        if needs_engine(module):
            loaded()  # before the kernel is: it finds the engine by name
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
        """Seconds of the call alone, and what the copy engine did, of as many calls as there is time for.

        All have the same arguments: what one leaves unwritten, or makes of what another wrote, is seen in the end.
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
    """The kernel of a module; that of the last one is kept for a run with other copies or other tensors.

    LLVM makes code of a function when it is asked for, not when it is compiled.
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
        """Room for one tensor."""
        size_bytes = prod(shape) * np.dtype(dtype).itemsize
        memory = np.empty(size_bytes + 2 * GUARD_BYTES + ALIGNMENT_BYTES, np.uint8)
        memory = memory[: len(memory) // 2 * 2]
        poison(memory)
        start = GUARD_BYTES + -(memory.ctypes.data + GUARD_BYTES) % ALIGNMENT_BYTES
        return cls(memory, start, memory[start : start + size_bytes].view(dtype).reshape(shape))

    def check(self, name: str) -> None:
        """Both guards still hold.

        Raises:
            RunFailed: which byte beside the array was written.
        """
        end = self.start + self.array.nbytes
        for first, last in ((0, self.start), (end, len(self.memory))):
            if changed := changed_bytes(self.memory, first, last):
                place = changed[0] - end if changed[0] >= end else changed[0] - self.start
                raise RunFailed(f"the kernel wrote outside of {name}, at byte {place} relative to its nearer end")
