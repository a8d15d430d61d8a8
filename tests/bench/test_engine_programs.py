"""The bench of random networks for the matrix engine: what is wrong is found, what is known is not called again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hexconv.errors import RunFailed
from hexconv.kernel.engine import EnginePackets
from reports import engine_programs
from reports.engine_programs import DrawnCall, Row, drawn_call, swept
from tests.network.drawn_for_engine import draw_for_engine, draw_way

SEED, BUILT = 51, 0
"""Of the draws; one that is built."""


@pytest.mark.deep
@pytest.mark.simulator
def test_programs_on_the_engine_are_numpys_whenever_copies_are_performed() -> None:
    called = [drawn_call(SEED, index) for index in range(24)]
    assert [each for each in called if each.status not in ("holds", "refused", "apart")] == []
    assert sum(each.status == "holds" for each in called) >= 10


@pytest.mark.simulator
def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another output, another packet of the engine, a call that fails."""
    tensors_of = engine_programs.tensors_of

    def off(*told: Any) -> dict[str, np.ndarray]:
        return {name: array + (name != "image") for name, array in tensors_of(*told).items()}

    monkeypatch.setattr(engine_programs, "tensors_of", off)
    monkeypatch.setattr(engine_programs, "_predicted", lambda _: EnginePackets(multiplies=1))
    found = drawn_call(SEED, BUILT)
    assert found.status == "wrong"
    assert "elements of" in found.said
    assert "closed form EnginePackets(multiplies=1" in found.said

    def fails(*_: Any) -> Any:
        raise RunFailed("it never ends")

    monkeypatch.setattr(engine_programs, "simulated_network", fails)
    assert "it never ends" in drawn_call(SEED, BUILT).said
    monkeypatch.setattr(engine_programs, "plan", fails)
    assert drawn_call(SEED, BUILT).status == "failed"


def test_known_draws_are_not_called_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def called(_: int, index: int) -> DrawnCall:
        asked.append(index)
        return DrawnCall(index, "holds", chains=2, engine_chains=1)

    monkeypatch.setattr(engine_programs, "drawn_call", called)
    first = swept(SEED, range(3), tmp_path)
    assert swept(SEED, range(5), tmp_path)[:3] == first
    assert asked == list(range(5))


@pytest.mark.parametrize("status", ["wrong", "failed"])
def test_a_network_that_is_not_as_predicted_is_wrong(status: str) -> None:
    draws = [
        DrawnCall(0, "holds", 3, 2, 7, threads=4, engine="fast", elements=9),
        DrawnCall(1, status, 3, 2, 7),
        DrawnCall(2, "refused", said="no plan fits"),
        DrawnCall(3, "apart", 1),
    ]
    assert Row.of(SEED, draws) == Row(SEED, 4, 1, 1, 1, 3, 2, 7, 9, 1, 1, 1)


def drawn(indices: Sequence[int]) -> set[tuple[int, str, str]]:
    ways = [draw_way(SEED, index).wanted for index in indices]
    return {(way.threads, way.engine, way.objective) for way in ways}


def test_ways_and_operators_are_drawn() -> None:
    ways = drawn(range(120))
    assert {threads for threads, _, _ in ways} == {1, 2, 3, 4}
    assert {engine for _, engine, _ in ways} == {"exact", "fast"}
    nodes = [node for index in range(40) for node in draw_for_engine(SEED, index).model.graph.node]
    assert {"Add", "Concat", "MaxPool", "Gemm", "Conv"} <= {node.op_type for node in nodes}
    told = [attribute for node in nodes if node.op_type == "Conv" for attribute in node.attribute]
    assert {2} <= {attribute.ints[0] for attribute in told if attribute.name == "strides"}
    assert any(attribute.i > 2 for attribute in told if attribute.name == "group")
