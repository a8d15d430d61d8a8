"""Builds Halide's kernel of a chain, links it to this project's harness, runs it on the simulator, and checks it."""

import tempfile
from importlib import resources
from pathlib import Path

import numpy as np
from einops import rearrange

from hexconv.bench.halide.pipeline import BLOCK, WORD, build
from hexconv.bench.halide.schedule import Schedule
from hexconv.compute import reference
from hexconv.errors import RunFailed
from hexconv.lower.hexagon import HexagonObject
from hexconv.run.runner import Array
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.slots import Slots
from hexconv.run.simulator.toolchain import join_foreign
from hexconv.run.tensors import random_tensors
from hexconv.spec import Chain

NAME = "halide_chain"


def measured(chain: Chain, schedule: Schedule, seed: int = 0) -> Slots:
    """Packets and stalls of Halide's kernel for a chain, counted as ours are; packing of filters isn't counted.

    Raises:
        RunFailed: its result isn't numpy's to the last bit, or the run failed.
        ToolMissing: no Halide, no zig, no simulator.
        Unsupported: the schedules don't serve the chain.
    """
    tensors = random_tensors(chain, seed)
    inputs = [tensors.image[0], *map(packed, tensors.filters)]
    measurement = Simulator().run_object(_kernel(chain, schedule), inputs, [(chain.shapes[-1][1:], "uint8")])
    expected = reference(chain, tensors.image, tensors.filters, tensors.biases)[0]
    wrong = np.count_nonzero(measurement.outputs[0] != expected)
    if wrong:
        raise RunFailed(f"Halide's kernel of {chain.slug} differs from numpy in {wrong} of {expected.size} elements")
    assert measurement.slots
    return measurement.slots


def packed(filter: Array) -> Array:
    """Pack a filter from OIHW to [tap row][tap column][k/32][c/4][32 k][4 c]; int8 becomes uint8, 128 larger."""
    unsigned = (filter ^ np.int8(-128)).view(np.uint8) if filter.dtype == np.int8 else filter
    return np.ascontiguousarray(rearrange(unsigned, "(ko ki) (co ci) h w -> h w ko co ki ci", ki=BLOCK, ci=WORD))


def _kernel(chain: Chain, schedule: Schedule) -> HexagonObject:
    """Halide's object behind the entry that the harness calls; its intermediates lie in a heap of its own."""
    isa = find_qemu().isa
    with tempfile.TemporaryDirectory(prefix="hexconv-") as folder:
        pipeline = Path(folder) / "pipeline.o"
        build(chain, schedule, NAME, pipeline)
        source = resources.files("hexconv.bench.halide") / "entry.c"
        with resources.as_file(source) as entry:
            elf = join_foreign(pipeline, entry, isa, f"-DPIPELINE={NAME}")
    return HexagonObject(isa, elf, (), ())
