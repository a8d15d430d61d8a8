"""`hexconv verify` of a drawn network, with numpy's answers where code would run: what it says of right networks."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from hexconv.apart import Ending, Task
from hexconv.errors import HexconvError
from hexconv.run.measure import Run
from hexconv.spec import Case
from hexconv.verify import Asked, job, network, verify_network
from tests.quantisers.judge import Finding

REFUSED_BY_RUNTIME = "ONNX Runtime refuses"


def _in_numpy(_: Any, weights: dict[str, np.ndarray], image: np.ndarray, task: Task) -> tuple[np.ndarray, list[Run]]:
    return job.answer(Case.load(Path(task["case"]), task["target"]).chain, weights, image), []


def _here(_: str, __: Any, tasks: Sequence[Task], ___: Any) -> Iterator[tuple[int, Ending]]:
    yield from ((place, Ending("answered", job.do(task))) for place, task in enumerate(tasks))


def verify_findings(path: Path) -> list[Finding]:
    """What `verify` says against a network whose chains are right; empty if it doesn't differ."""
    asked = Asked(target="llvm", vtcm_bytes=1 << 22)
    try:
        with (
            patch.object(network, "do_all", _here),
            patch.object(job, "_run", _in_numpy),
            patch.object(job, "_pieces", lambda *_: ()),
        ):
            verdict = verify_network(path, asked)
    except HexconvError as refusal:
        return [] if REFUSED_BY_RUNTIME in str(refusal) else [Finding("verify", str(refusal))]
    convs = [conv for chain in verdict.chains for conv in chain.convs]
    apart = [f"{conv.node}: {one}" for conv in convs for one in conv.comparisons if not one.holds]
    missing = [f"{conv.node}: not compared: {reason}" for conv in convs for reason in conv.reasons]
    return [Finding("verify", told) for told in (*apart, *missing)]
