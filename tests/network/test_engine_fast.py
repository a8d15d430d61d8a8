"""Networks by the convert of the matrix engine: equal to numpy's convert, step by step and whole; other than exact."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hexconv.errors import InputError
from hexconv.model import import_model
from hexconv.network import Wanted
from hexconv.network.built_network import tensors_of
from hexconv.network.planned_model import plan, question_of
from hexconv.report import network_verdict_lines
from hexconv.verify import Asked, verify_network
from tests.network.models import Network, saved

pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")

WANTED = Wanted(1 << 20, "hexagon", "v67", kernel="hmx", engine="fast")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A conv of few channels, one of many, and an Add between them."""
    net = Network()
    stem = net.conv8(net.start(), (64, 3, 1, 1))
    last = net.added(stem, net.conv8(stem, (64, 64, 3, 3), relu=False))
    return saved(net, [net.classified(last, 64)], tmp_path / "two.onnx")


def test_what_is_on_the_engine_is_converted_and_nothing_else(model: Path) -> None:
    planned = plan(import_model(model), WANTED.question)
    cases = [case for member in planned.members for case, _ in member.pieces]
    engines = {
        (case.plan.kernel, conv.requantize.engine) for case in cases for conv in case.chain.conv if conv.requantize
    }
    assert ("hmx", "fast") in engines
    assert engines <= {("hmx", "fast"), ("hvx", "exact")}
    exact = plan(import_model(model), replace(WANTED, engine="exact").question)
    program, other = planned.program, exact.program
    made, wanted = (tensors_of(model, each, WANTED) for each in (program, other))
    assert any(not np.array_equal(made[port.name], wanted[port.name]) for port in program.outputs)


@pytest.mark.simulator
def test_a_network_by_the_engines_convert_is_numpys(model: Path) -> None:
    verdict = verify_network(model, Asked(WANTED, workers=1, draws=1))
    runs = [step.run for step in verdict.steps if step.run]
    assert len(runs) == len(verdict.steps)
    assert [run for run in runs if not run.holds] == []
    assert verdict.answer == "holds"
    lines = [line for line in network_verdict_lines(verdict) if "with the engine's convert" in line]
    assert len(lines) == len(verdict.chains)
    assert verdict.many


def test_the_convert_without_the_engine_is_refused() -> None:
    with pytest.raises(InputError, match="--engine fast without --kernel hmx"):
        question_of(1 << 20, engine="fast")
