"""Functions for C: compiled in some ways, of which the one with fewest packets in its innermost loops is taken."""

from pathlib import Path

import pytest

import hexconv.lower.c_functions as compiled
from hexconv.lower import lower_case
from hexconv.lower.c_functions import callable_module
from hexconv.lower.hexagon_target import WAYS
from hexconv.spec import Case

CASE = Path(__file__).parents[2] / "schedules" / "hvx" / "depthwise-blocks.toml"


def test_the_shortest_of_all_ways_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[bytes, str]] = []

    def kept(*given: object) -> tuple[bytes, str]:
        made.append(object_file(*given))
        return made[-1]

    object_file = compiled.object_file
    monkeypatch.setattr(compiled, "object_file", kept)
    code = compiled.compiled(callable_module(lower_case(Case.load(CASE, "hexagon")).module, "x"), "hexagon", "v67")
    packets = [compiled.packets_in_loops(text) for _, text in made]
    assert len(set(packets)) > 1
    assert len(packets) == len(WAYS)
    assert code == made[packets.index(min(packets))][0]


def test_only_innermost_loops_are_counted() -> None:
    inner = ["\tloop0(.LBB0_2,#4)", "\t}", ".LBB0_2:", "\t{", "\t}", "\t{", "\t} :endloop0"]
    outer = ["\tloop1(.LBB0_1,#9)", "\t}", ".LBB0_1:", "\t{", "\t}", *inner, "\t{", "\t} :endloop1"]
    assert compiled.packets_in_loops("\n".join(outer)) == 4 * 2
