"""Plan one chain, run it on its target, and compare it with numpy, in a process apart."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.analyze.needed import needed_macs
from hexconv.apart import Task
from hexconv.errors import HexconvError, Unsupported
from hexconv.lower import Lowered, lower_case
from hexconv.run.given import Given, given, weights_of
from hexconv.run.measure import Run, run_case, runner_of
from hexconv.run.measurement import Array
from hexconv.search import Question, plan_all
from hexconv.spec import Case
from hexconv.spec.kernel_choice import kernel_words
from hexconv.verify.verdict import Comparison, answer
from hexconv.written import scratch

JOB = "hexconv.verify.job:do"
MOST_FLOAT_MACS = 10**8
"""Scalar code makes about one in two packets; the simulator executes some 10**7 packets a second."""


@dataclass(frozen=True)
class Piece:
    """The part of a chain that runs as one case."""

    first: int
    case: Case
    lowered: Lowered


def do(task: Task) -> dict[str, Any]:
    """Run a chain, and compare its output with numpy's.

    Args:
        task: `case` and `weights`, two files; `image`, a file with the input, NHWC; `target`, `vtcm_bytes`, `seconds`
            and `isa` of the run.
    """
    try:
        case = Case.load(Path(task["case"]), task["target"])
        _check_floats(case, task["target"])
        weights = given(case.chain, Path(task["weights"]), None).weights or {}
        pieces = _pieces(case, task["target"], task["vtcm_bytes"])
        image = np.load(task["image"], allow_pickle=False)
        output, runs = _run(pieces, weights, image, task)
        packets = [run.counts.packets for run in runs if run.counts]
        # Every piece is held against numpy as it runs, floats within the tolerance of their sums.
        equal = all(run.check.passed for run in runs)
        apart = None if equal else Comparison.of("run", output, answer(case.chain, weights, image))
        return {
            "kernels": "; ".join(dict.fromkeys(kernel_words(piece.case.kernels) for piece in pieces)),
            "pieces": [piece.case.name for piece in pieces],
            "packets": sum(packets) if packets else None,
            "run": asdict(apart or Comparison("run", output.size)),
        }
    except HexconvError as refusal:
        return {"reason": str(refusal)}


def _check_floats(case: Case, target: str) -> None:
    """Refuse a chain of floats that would keep the simulator for hours, since Hexagon runs it in scalar code.

    Raises:
        Unsupported: it is one.
    """
    macs = needed_macs(case.chain)
    if target == "hexagon" and not case.chain.is_integer and macs > MOST_FLOAT_MACS:
        raise Unsupported(
            f"it is {case.chain.dtype}, scalar on Hexagon: it has {macs} multiply-accumulates, at most "
            f"{MOST_FLOAT_MACS} are simulated; --target llvm runs it"
        )


def _pieces(case: Case, target: Any, vtcm_bytes: int) -> tuple[Piece, ...]:
    """Plan and lower a chain as `hexconv best` does: cut into the pieces that run one after the other.

    Raises:
        Unsupported: no plan serves it, or none fits.
    """
    network = plan_all([case], Question(vtcm_bytes, target=target))
    if network.refused:
        raise Unsupported(network.refused[0].reason)
    (planned,) = network.planned
    if planned.cuts.best is None:
        raise Unsupported(f"no plan fits {vtcm_bytes} bytes of VTCM; hexconv best says what would")
    winners = planned.pieces(planned.cuts.best)
    firsts = [piece.first - 1 for piece in planned.cuts.best.pieces]
    return tuple(Piece(first, won.case, lower_case(won.case)) for first, won in zip(firsts, winners, strict=True))


def _run(pieces: tuple[Piece, ...], weights: Mapping[str, Array], image: Array, task: Task) -> tuple[Array, list[Run]]:
    """Run all pieces; return the output of the last, NHWC, and the runs of all."""
    runs: list[Run] = []
    for piece in pieces:
        runner = runner_of(piece.case, task["target"], task["seconds"], slots=False, isa=task["isa"])
        with scratch() as folder:
            kept = folder / "run.npz"
            own = Given(weights_of(weights, piece.first, len(piece.case.chain.conv)), image)
            runs.append(run_case(piece.case, piece.lowered, runner, save=kept, given=own))
            image = np.load(kept, allow_pickle=False)["output"]
    return image, runs
