"""Builds Halide's kernel of a chain, links it to this project's harness, runs it on the simulator, and checks it."""

from pathlib import Path
from types import ModuleType

import numpy as np

from hexconv.compute import reference
from hexconv.errors import RunFailed
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.run.measurement import Array
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.slots import Slots
from hexconv.run.simulator.toolchain import join_foreign
from hexconv.run.tensors import random_tensors
from hexconv.spec import Chain
from hexconv.written import scratch
from reports.halide import depthwise_3x3, first_layer, strided, two_convs
from reports.halide.shared import SCHEDULES, AnySchedule, Depthwise, FirstLayer, Schedule, Strided

NAME = "halide_chain"
PIPELINES: dict[type, ModuleType] = {
    Schedule: two_convs,
    Depthwise: depthwise_3x3,
    Strided: strided,
    FirstLayer: first_layer,
}
"""The pipeline that each kind of schedule is of: it checks and builds a chain, and packs what the kernel takes."""
VARYING = (Depthwise, Strided)
"""The schedules of which LLVM pipelines the loops in one of several ways, by chance."""
BUILDS = 8
"""How many builds of such a schedule are measured unless something else is said."""


def varies(schedule: AnySchedule) -> bool:
    """Tell whether the kernel of a schedule differs from build to build."""
    return isinstance(schedule, VARYING)


def check(chain: Chain, schedule: AnySchedule) -> None:
    """Refuse a chain that the pipeline of a schedule doesn't serve.

    Raises:
        Unsupported: it isn't served.
    """
    PIPELINES[type(schedule)].check(chain)


def measured(chain: Chain, schedule: AnySchedule, seed: int = 0, builds: int = 0) -> Slots:
    """Packets and stalls of Halide's kernel for a chain, counted as ours are; packing of filters isn't counted.

    Every kernel that comes out of some builds is run, and the one of the fewest packets counts. By default there is one
    build, or `BUILDS` where they differ.

    Raises:
        RunFailed: a result isn't numpy's to the last bit, or a run failed.
        ToolMissing: no Halide, no zig, no simulator.
        Unsupported: the schedules don't serve the chain.
    """
    tensors = random_tensors(chain, seed)
    inputs = PIPELINES[type(schedule)].inputs(chain, tensors)
    expected = reference(chain, tensors.image, tensors.filters, tensors.biases)[0]
    count = builds or (BUILDS if varies(schedule) else 1)
    kernels = {kernel.elf: kernel for kernel in (_kernel(chain, schedule) for _ in range(count))}
    found = [_slots(chain, kernel, inputs, expected) for kernel in kernels.values()]
    return min(found, key=lambda slots: slots.packets)


def _slots(chain: Chain, kernel: HexagonObject, inputs: list[Array], expected: Array) -> Slots:
    measurement = Simulator().run_object(kernel, inputs, [(expected.shape, "uint8")])
    wrong = np.count_nonzero(measurement.outputs[0] != expected)
    if wrong:
        raise RunFailed(f"Halide's kernel of {chain.slug} differs from numpy in {wrong} of {expected.size} elements")
    assert measurement.slots
    return measurement.slots


def _kernel(chain: Chain, schedule: AnySchedule) -> HexagonObject:
    """Halide's object behind the entry that the harness calls; its intermediates lie in a heap of its own."""
    isa = find_qemu().isa
    with scratch() as folder:
        pipeline = folder / "pipeline.o"
        PIPELINES[type(schedule)].build(chain, schedule, NAME, pipeline)
        entry = Path(__file__).with_name("entry.c")
        elf = join_foreign(pipeline, entry, isa, f"-DPIPELINE={NAME}")
    return HexagonObject(isa, elf, (), ())


__all__ = ["SCHEDULES", "AnySchedule", "Schedule", "check", "measured", "varies"]
