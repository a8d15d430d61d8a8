"""The two passes over a network.

1. Every chain runs alone, on ONNX Runtime's own input to it, so that it shows its own errors only.
2. The whole network runs: results of chains replace ONNX Runtime's, which computes the rest, so errors travel.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.apart import Ending, Limits, Task, do_all
from hexconv.errors import RunFailed
from hexconv.model.load import Shapes
from hexconv.spec import Target
from hexconv.verify.difference import Difference
from hexconv.verify.job import JOB
from hexconv.verify.members import Member
from hexconv.verify.moved import Moved
from hexconv.verify.parts import Whole
from hexconv.verify.runtime import Array, Session, Values
from hexconv.verify.taps import Tapped
from hexconv.verify.verdict import ChainVerdict, ConvVerdict

Done = Callable[[str, int, int], None]
LIMITS = Limits(seconds=86400.0, memory_bytes=16 << 30)
"""The limits of one chain's process; a run on the simulator has a time limit of its own."""


@dataclass(frozen=True)
class Asked:
    """How to verify.

    Attributes:
        target: the target that the chains run on.
        vtcm_bytes: the VTCM that the caches of a chain may take.
        workers: how many processes run at a time.
        given: a file with the model's inputs; without one they are drawn.
        shapes: the shapes of inputs whose sizes the model leaves open.
        seed: the seed of the inputs that are drawn.
        isa: the instruction set of the code for the simulator, by default the newest that the simulator runs.
        seconds: the time limit of one run on the simulator.
    """

    target: Target
    vtcm_bytes: int
    workers: int = 1
    given: Path | None = None
    shapes: Shapes = field(default_factory=dict)
    seed: int = 0
    isa: str | None = None
    seconds: float = 1800.0


@dataclass(frozen=True)
class Passes:
    """The two passes; each chain runs in a process apart.

    Attributes:
        folder: the folder with the cases and weights of the chains; their inputs and outputs are written there too.
        asked: how to verify.
        executor: the executor of the processes.
        done: is called after each chain with its name, how many chains are done, and how many there are over both
            passes.
    """

    folder: Path
    asked: Asked
    executor: Executor
    done: Done

    def alone(self, members: Sequence[Member], found: Tapped) -> tuple[ChainVerdict, ...]:
        """First pass: run every chain on ONNX Runtime's own input to it, and compute each of its convs with numpy."""
        for name, tensor in found.tensors.items():
            np.save(self._file(name), nhwc(tensor), allow_pickle=False)
        tasks = [self._task(member, self._file(member.source), self._convs(member)) for member in members]
        verdicts: dict[int, ChainVerdict] = {}
        for place, ending in do_all(JOB, LIMITS, tasks, self.executor):
            verdicts[place] = self._verdict(members[place], ending, found)
            self.done(members[place].name, len(verdicts), 2 * len(members))
        return tuple(verdicts[place] for place in range(len(members)))

    def together(
        self, whole: Whole, members: Sequence[Member], alone: Sequence[ChainVerdict], found: Tapped, inputs: Values
    ) -> tuple[tuple[ChainVerdict, ...], dict[str, Array]]:
        """Second pass: run every chain on what the network computes before it; also return the outputs of the model."""
        known, verdicts = dict(inputs), []
        for member, verdict in zip(members, alone, strict=True):
            if member.replaces and not verdict.reason:
                known |= computed(whole, [member.source], known)
                known[member.result] = self._in_network(member, known[member.source], found)
                travelled = Difference.of(known[member.result], found.tensors[member.result])
                verdict = replace(verdict, in_network=travelled)
            verdicts.append(verdict)
            self.done(member.name, len(members) + len(verdicts), 2 * len(members))
        return tuple(verdicts), {**known, **computed(whole, whole.outputs, known)}

    def _in_network(self, member: Member, image: Array, found: Tapped) -> Array:
        """Return a chain's result, NCHW; that of the first pass where the input is the same."""
        if not np.array_equal(image, found.tensors[member.source]):
            changed = self.folder / f"{member.name}.input.npy"
            np.save(changed, nhwc(image), allow_pickle=False)
            [(_, ending)] = do_all(JOB, LIMITS, [self._task(member, changed, [])], self.executor)
            if reason := _reason(ending):
                raise RunFailed(f"{member.name}: {reason}")
        return np.load(self._output(member), allow_pickle=False).transpose(0, 3, 1, 2)

    def _task(self, member: Member, image: Path, convs: Sequence[dict[str, str]]) -> Task:
        """Return the task that a process gets for one chain."""
        asked = {name: getattr(self.asked, name) for name in ("target", "vtcm_bytes", "seconds", "isa")}
        case, weights = (str(self.folder / f"{member.name}.{ending}") for ending in ("toml", "npz"))
        files = {"case": case, "weights": weights, "image": str(image), "output": str(self._output(member))}
        return {**asked, **files, "convs": list(convs)}

    def _convs(self, member: Member) -> list[dict[str, str]]:
        """Return the convs that can be compared, with ONNX Runtime's tensors."""
        return [
            {"node": unit.node.name, "source": str(self._file(unit.source)), "result": str(self._file(unit.result))}
            for unit in member.run.units[: member.comparable]
        ]

    def _verdict(self, member: Member, ending: Ending, found: Tapped) -> ChainVerdict:
        """Return the verdict on a chain, out of what its process answered in the first pass."""
        if reason := _reason(ending):
            return ChainVerdict(member.name, reason=reason)
        answer: dict[str, Any] = ending.answer
        apart = (
            Difference.of(np.load(self._output(member), allow_pickle=False), nhwc(found.tensors[member.result]))
            if member.replaces
            else None
        )
        return ChainVerdict(
            case=member.name,
            kernels=answer["kernels"],
            pieces=tuple(answer["pieces"]),
            packets=answer["packets"],
            against_numpy=Difference(**answer["against_numpy"]),
            against_runtime=apart,
            convs=tuple(_conv(conv) for conv in answer["convs"]),
        )

    def _file(self, tensor: str) -> Path:
        """Return the file of a tensor, named by a hash, since the tensor's name may not do as the name of a file."""
        return self.folder / f"{sha256(tensor.encode()).hexdigest()}.npy"

    def _output(self, member: Member) -> Path:
        return self.folder / f"{member.name}.output.npy"


def computed(whole: Whole, wanted: Sequence[str], known: Values) -> dict[str, Array]:
    """Let ONNX Runtime compute the wanted tensors out of the known ones; wanted ones that are known are left out."""
    missing = [name for name in wanted if name not in known]
    if not missing:
        return {}
    model, reads = whole.part(missing, known)
    return Session(model, whole.name).run(missing, {name: known[name] for name in reads})


def nhwc(tensor: Array) -> Array:
    """Turn a tensor from NCHW, the order of models, into NHWC."""
    return np.ascontiguousarray(tensor.transpose(0, 2, 3, 1))


def _conv(answer: dict[str, Any]) -> ConvVerdict:
    found = Moved(**answer["moved"]) if answer["moved"] else None
    apart = Difference(**answer["against_runtime"])
    return ConvVerdict(answer["node"], answer["dtype"], apart, answer["not_float32"], found)


def _reason(ending: Ending) -> str:
    """Why a process gave no result; empty where it gave one."""
    return ending.answer.get("reason", "") if ending.how == "answered" else f"{ending.how}: {ending.reason}"
