"""Functions for C: compiled in some ways, of which the one with fewest packets in its innermost loops is taken."""

from pathlib import Path
from typing import Any

import pytest

import hexconv.lower.c_functions as compiled
from hexconv.lower import lower_case
from hexconv.lower.c_functions import callable_module
from hexconv.lower.hexagon_target import WAYS
from hexconv.spec import Case

CASE = Path(__file__).parents[2] / "schedules" / "hvx" / "depthwise-blocks.toml"


def test_the_shortest_of_all_ways_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its text, so that it alone is assembled; what is assembled has as many packets as the text promised."""
    packets: list[int] = []
    assembled: list[str] = []

    def counted(text: str) -> int:
        packets.append(packets_of(text))
        return packets[-1]

    def kept(*given: Any) -> tuple[bytes, str]:
        code, text = object_file(*given)
        assembled.append(text)
        return code, text

    packets_of, object_file = compiled._packets, compiled.object_file
    monkeypatch.setattr(compiled, "_packets", counted)
    monkeypatch.setattr(compiled, "object_file", kept)
    compiled.compiled(callable_module(lower_case(Case.load(CASE, "hexagon")).module, "x"), "hexagon", "v67")
    assert len(set(packets)) > 1
    assert len(packets) == len(WAYS)
    assert [compiled.packets_in_loops(text) for text in assembled] == [min(packets)]


def test_only_innermost_loops_are_counted() -> None:
    inner = ["\tloop0(.LBB0_2,#4)", "\t}", ".LBB0_2:", "\t{", "\t}", "\t{", "\t} :endloop0"]
    outer = ["\tloop1(.LBB0_1,#9)", "\t}", ".LBB0_1:", "\t{", "\t}", *inner, "\t{", "\t} :endloop1"]
    assert compiled.packets_in_loops("\n".join(outer)) == 4 * 2
