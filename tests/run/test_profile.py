"""A run over its slots: parts that leave no gap, copies that move the traffic, and what a trace says of them."""

import json
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hexconv.analyze.planned import Planned, copies_in_flight
from hexconv.cli.app import exit_code
from hexconv.errors import RunFailed, Unsupported
from hexconv.lower import lower_case
from hexconv.report.plots.slot_plots import timeline_plot
from hexconv.run.copy_engine import Copies
from hexconv.run.profile import UNIT, Profile, perfetto_json, profile
from hexconv.run.simulator.slots import Kind, Slots, events_of, stalls_by_stretch, without_vectors
from hexconv.run.simulator.structures import EVENTS, MAX_EVENTS
from hexconv.run.simulator.trace import Blocks, Reader
from hexconv.spec import Case
from hexconv.tir.parts import Does
from tests.deep import DEEP
from tests.run.simulator.test_slots import BLOCK, NOTHING, PAUSE, RESUME, trace

SCHEDULES = Path(__file__).parents[2] / "schedules"
RINGS = SCHEDULES / "hvx" / "double-rings.toml"


@lru_cache
def rings() -> tuple[Case, Profile]:
    case = Case.load(RINGS)
    return case, profile(case, lower_case(case), Copies("early", 0))


@DEEP
@pytest.mark.simulator
def test_spans_fill_the_run_and_nothing_of_it_is_told_twice() -> None:
    case, found = rings()
    assert found.run.check.passed
    assert found.spans[0].start == 0
    assert found.spans[-1].end == found.marked_slots
    assert all(one.end == other.start for one, other in pairwise(found.spans))
    assert {span.what for span in found.spans} >= {"read input", "conv 1", "conv 2", "write output"}
    tiles = [span for span in found.spans if span.what.startswith("conv")]
    # Two tiles of channels in each of three stripes, and those of conv 1 in the stripe that runs in.
    assert len(tiles) == len(case.chain.conv) * 2 * 3 + 2
    assert found.slots == found.run.slots


@pytest.mark.simulator
def test_transfers_move_what_the_closed_form_moves_and_no_more_at_once() -> None:
    case, found = rings()
    planned = Planned.of(case)
    moved, most = planned.work.traffic_bytes, copies_in_flight(planned)
    for tensor, bytes_of in moved.items():
        mine = [each for each in found.transfers if each.tensor == tensor]
        assert sum(each.bytes for each in mine) == bytes_of
        assert all(each.start <= each.end <= found.marked_slots for each in mine)
        under_way = [sum(one.start <= each.start < one.end for one in mine) for each in mine]
        assert max(under_way) <= most[tensor]


SMALL = """[chain]
input = [1, 12, 16, 64]
dtype = "uint8"
conv = [
    { out_channels = 64, kernel = [3, 3], padding = 1, requantize = { multiplier = 131072, shift = -4 } },
    { out_channels = 32, requantize = { multiplier = 131072, shift = -4 } },
]
[plan]
kernel = "hmx"
storage = "vtcm"
order = "h_outer"
halo = "roll"
buffering = "double"
"""
"""Two convs on the matrix engine, in rings and beside copies."""


@pytest.mark.simulator
def test_the_matrix_engine_multiplies_what_its_packets_say_within_convs() -> None:
    case = Case.parse(SMALL, "small")
    found = profile(case, lower_case(case), Copies("random", 3))
    assert found.run.check.passed
    assert found.run.engine
    assert sum(each.macs for each in found.multiplied) == found.run.engine.packets.macs
    convs = [span for span in found.spans if span.part.does == Does.CONV]
    for each in found.multiplied:
        (span,) = [span for span in convs if span.end == each.end]
        assert span.part == each.part
        assert span.start <= each.start < each.end
    assert {each.part.conv for each in found.multiplied} == {1, 2}
    drawn = timeline_plot(found)
    assert f"{max(round(each.macs_per_slot) for each in found.multiplied):,} MACs a slot at most" in drawn.words
    assert any(row[0] == "matrix engine, conv 2" for row in drawn.numbers.rows)
    assert '"name": "multiplies"' in perfetto_json(found)


@pytest.mark.simulator
def test_vtcm_in_use_ends_at_none_and_is_never_more_than_the_run_says() -> None:
    _, found = rings()
    assert max(room.bytes for room in found.rooms) == found.run.vtcm_bytes
    assert found.rooms[-1].bytes == 0


@pytest.mark.simulator
def test_the_hottest_packets_are_the_ones_that_multiply() -> None:
    _, found = rings()
    first, *others = found.slots.hottest
    assert all(first.slots >= other.slots for other in others)
    assert any(text.startswith("v") and "vrmpy" in text for packet in first.packets for text in packet)
    assert len(first.stalls) == len(first.packets)
    assert first.slots >= first.times * len(first.packets)


@pytest.mark.simulator
def test_a_trace_says_slots_and_its_slices_never_overlap_on_a_line(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    assert exit_code(["run", str(RINGS), "--target", "hexagon", "--copies", "early", "--trace", str(file)]) == 0
    found, (_, known) = json.loads(file.read_text()), rings()
    assert found["otherData"]["unit"] == UNIT
    assert found["otherData"]["issue_slots"] == known.marked_slots
    names = [entry for entry in found["traceEvents"] if entry["name"] == "process_name"]
    assert all("issue slot" in entry["args"]["name"] for entry in names)
    lines: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for entry in found["traceEvents"]:
        if entry["ph"] == "X":
            lines.setdefault((entry["pid"], entry["tid"]), []).append((entry["ts"], entry["ts"] + entry["dur"]))
    assert len(lines) > 4
    for slices in lines.values():
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(slices)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trace", "t.json"], "--target hexagon"),
        (["--trace", "t.txt", "--target", "hexagon"], "json"),
        (["--trace", "t.json", "--target", "hexagon", "--seeds", "2"], "take one seed"),
        ([str(RINGS), "--trace", "t.json", "--target", "hexagon"], "take one case"),
    ],
)
def test_a_trace_of_what_has_none_is_refused_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["run", str(SCHEDULES / "split-1x1.toml"), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def read(*ran: str) -> Blocks:
    reader = Reader(Blocks(by_stretch=[]))
    reader.read(trace(*NOTHING, *ran))
    return reader.blocks


def test_stalls_are_those_of_the_stretch_in_which_they_are() -> None:
    blocks = read(RESUME, BLOCK, PAUSE, BLOCK, RESUME, PAUSE, RESUME, BLOCK, BLOCK, PAUSE)
    assert stalls_by_stretch(blocks, "v68") == [0, 1, 0, 2]


def structure(*packets: int) -> np.void:
    found = np.zeros(1, EVENTS)[0]
    found["count"] = len(packets)
    for place, count in enumerate(packets):
        found["event"][place] = (count, Kind.PART, 0, 0)
    return found


def test_an_event_stands_behind_the_packets_and_the_stalls_before_it() -> None:
    blocks = read(RESUME, BLOCK, PAUSE, RESUME, BLOCK, BLOCK, PAUSE)
    (event,) = events_of(structure(3), blocks, "v68", Slots(9, {"load to multiply": 3}, 6, 0))
    assert event.slots == 3 + 1


def test_a_trace_that_misses_a_stretch_is_refused() -> None:
    blocks = read(RESUME, BLOCK, PAUSE)
    with pytest.raises(RunFailed, match="2 with 1"):
        events_of(structure(3), blocks, "v68", Slots(3, {"load to multiply": 1}, 2, 0))


def test_more_events_than_are_kept_are_refused_with_the_number() -> None:
    found = structure()
    found["count"] = MAX_EVENTS + 1
    with pytest.raises(Unsupported, match=str(MAX_EVENTS + 1)):
        events_of(found, None, "v68", without_vectors(1))
