"""`python -m tests.network.engine_programs FIRST END`: drawn programs on the matrix engine's model, beside numpy.

Every chain that the engine serves is on it, whether that pays or not. Each program is built as `hexconv build` does it,
and its library is called on the adversarial platform: copies are performed at drawn moments between their start and the
wait for them, and what no one wrote is poison. Its outputs are held against those that numpy computes, to the element.
Programs are passed over of which no chain is on the engine, or that have a step that hexconv has no operator for.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from hexconv.errors import RunFailed
from hexconv.model import import_model
from hexconv.network import Wanted
from hexconv.network.built_network import compiled_network, tensors_of, write_compiled
from hexconv.network.called_network import network_object, simulated_network
from hexconv.network.planned_model import PlannedModel, plan
from hexconv.run.copy_engine import Copies
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Plan
from hexconv.written import scratch
from tests.network.drawn_programs import draw_program

SEED, SEEDS = 51, 3
WANTED = Wanted(1 << 20, "hexagon", "v67", "latency")
QUESTION = replace(WANTED.question, plan=Plan(kernel="hmx"))


@dataclass(frozen=True)
class DrawnCall:
    """What the calls of a drawn program gave.

    Attributes:
        index: which one it is.
        engine_chains: how many chains are on the engine.
        elements: how many elements the outputs of all calls have.
        differing: how many of them differ from numpy's.
        multiplies: how many packets of the engine multiplied.
        said: why a call gave nothing; empty where all did.
    """

    index: int
    engine_chains: int
    elements: int = 0
    differing: int = 0
    multiplies: int = 0
    said: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether an element differs, or a call gave nothing, or the engine did nothing."""
        return bool(self.differing or self.said or not self.multiplies)


def drawn_calls(indices: range) -> Iterator[DrawnCall]:
    """Build and call the drawn programs that have a chain on the engine."""
    for index in indices:
        drawn = draw_program(SEED, index)
        with scratch() as folder:
            path = folder / "program.onnx"
            onnx.save(drawn.model, path)
            planned = plan(import_model(path), QUESTION)
            chains = sum(call.case.settled.kernel == "hmx" for call in planned.open_program.calls)
            if chains and not planned.open_program.others:
                yield _called(DrawnCall(index, chains), path, planned, folder / "built")


def _called(drawn: DrawnCall, path: Path, planned: PlannedModel, folder: Path) -> DrawnCall:
    """Build a program, and call it once for each seed of the copies."""
    program, elements, differing, multiplies = planned.program, 0, 0, 0
    tensors = tensors_of(path, program, WANTED)
    built = write_compiled(path, compiled_network(path, program, WANTED, 1), tensors, folder, WANTED)
    kernel, images = network_object(folder, built), [tensors[port.name] for port in program.inputs]
    for seed in range(SEEDS):
        platform = Simulator(copies=Copies("random", SEEDS * drawn.index + seed), slots=False, isa=built.isa)
        try:
            run = simulated_network(folder, built, kernel, images, platform)
        except RunFailed as failure:
            return DrawnCall(drawn.index, drawn.engine_chains, said=str(failure))
        for port, made in zip(program.outputs, run.outputs, strict=True):
            wanted = tensors[port.name]
            elements += wanted.size
            differing += int(np.count_nonzero(~((made == wanted) | ((made != made) & (wanted != wanted)))))
        multiplies += run.engine.packets.multiplies if run.engine else 0
    return DrawnCall(drawn.index, drawn.engine_chains, elements, differing, multiplies)


def main(first: str, end: str) -> int:
    """Call the programs first .. end - 1, a line for each, then the sums; exit 1 if one is wrong."""
    called = []
    for each in drawn_calls(range(int(first), int(end))):
        called.append(each)
        print(each, flush=True)
    wrong = [each.index for each in called if each.is_wrong]
    chains, elements = (sum(getattr(each, name) for each in called) for name in ("engine_chains", "elements"))
    print(f"{len(called)} programs, {chains} chains on the engine, {elements} elements, {len(wrong)} wrong: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
