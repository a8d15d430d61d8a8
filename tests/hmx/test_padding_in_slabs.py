"""Padding above intermediates in whole slabs: no slab for the sake of a row of padding, exact, and as predicted."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from hexconv.analyze import needed_macs
from hexconv.analyze.block_grid import engine_packets
from hexconv.analyze.planned import Planned
from hexconv.kernel.engine import EnginePackets, TileRow
from hexconv.lower import lower_case
from hexconv.search import Question, best_plan
from hexconv.search.grid import evaluate, figures_of
from hexconv.search.machine import rates
from hexconv.search.space import Space
from hexconv.spec import Case, Chain, Conv2d, Extents, Padding, Plan, Requantize, tensor_extents
from hexconv.spec.dtypes import INTEGER_RANGE, Dtype
from hexconv.spec.knobs import Buffering, Filters
from hexconv.spec.phases import in_phases
from hexconv.sweep.random_chains import Draw, Seeded
from tests.deep import one_in
from tests.hmx.test_kernel import CHAIN, CONV, HOW, PLANS, check, counted_as_predicted

DRAWN = 160
ZEROS = Path(__file__).parents[2] / "schedules" / "hmx" / "engine-zeros-3x3.toml"


def drawn(number: int) -> Case:
    """Draw two or three convs with padding above them, of rows around whole slabs, planned with padding in slabs."""
    draw: Draw = Seeded(32, number)
    dtype: Dtype = draw.one_of("uint8", "int8")
    least, most = INTEGER_RANGE[dtype]
    rows, convs = draw.one_of(draw.number(1, 5) * 8, draw.number(1, 5) * 8, draw.number(3, 40)), list[Conv2d]()
    size = draw.number(1, 2), rows, draw.number(1, 17), draw.number(1, 40)
    zero = draw.one_of(least, least, draw.number(least, most))
    for _ in range(draw.number(2, 3)):
        taps, apart = draw.one_of(3, 3, 5, draw.number(1, 5)), draw.one_of(1, 1, 2, 3)
        apart = apart if (taps - 1) * apart < 8 else 1
        reach = (taps - 1) * apart + 1
        stride = draw.one_of(1, 1, 1, 2)
        top = draw.one_of(reach // 2, reach // 2, draw.number(0, reach))
        bottom = draw.one_of(max(reach - stride - top, 0), draw.number(0, reach))
        top += max(0, reach - rows - top - bottom)
        rows = (rows + top + bottom - reach) // stride + 1
        how = Requantize(
            multiplier=draw.number(1 << 30, (1 << 31) - 1),
            shift=-draw.number(6, 9),
            zero_point=draw.one_of(least, least, draw.number(least, most)),
            engine=draw.one_of("fast", "exact"),
        )
        conv = Conv2d(
            out_channels=draw.number(1, 40),
            kernel=(taps, draw.one_of(1, 3)),
            stride=(stride, 1),
            dilation=(apart, 1),
            padding=Padding(top=top, left=1, bottom=bottom, right=1),
            bias=draw.one_of(False, True),
            requantize=how,
        )
        convs.append(conv)
    chain = Chain(input=size, dtype=dtype, filter_dtype="int8", zero_point=zero, conv=tuple(convs))
    buffering: Buffering = draw.one_of("single", "double")
    filters: Filters = draw.one_of("per_tile", "resident")
    order, halo = draw.one_of(
        ("k_outer", "recompute"),
        ("h_outer", "recompute"),
        ("h_outer", "roll"),
        ("h_outer", "roll"),
        ("k_outer", "roll"),
    )
    outputs = tensor_extents(chain)[1:]
    plan = Plan(
        kernel="hmx",
        k_split=draw.number(1, max(each.channel_blocks for each in outputs)),
        h_split=draw.number(1, max(each.row_blocks for each in outputs)),
        order=order,
        halo=halo,
        filters=filters,
        buffering=buffering,
        padding_rows="slabs",
        storage="vtcm",
        vtcm_bytes=8 << 20,
    )
    return Case(f"slabs-{number}", chain, plan)


def served(numbers: range = range(DRAWN)) -> Iterator[Case]:
    """The drawn cases that the engine computes."""
    return (case for case in map(drawn, numbers) if case.kernels[0].used == "hmx")


def as_read(case: Case) -> Case:
    """The same case with as many rows of padding as are read."""
    return replace(case, plan=replace(case.plan, padding_rows="read"))


def tensors(case: Case) -> tuple[Extents, ...]:
    """What is stored of every tensor of a case."""
    return tensor_extents(in_phases(case.chain, "hmx", case.plan.padding_rows))


def packets(case: Case) -> EnginePackets:
    """The packets of a case, by the closed form."""
    return engine_packets(Planned.of(case).blocks).of_one


def features(case: Case) -> Iterator[str]:
    """What of padding in slabs a case covers."""
    for conv, source in zip(case.chain.conv, tensors(case), strict=False):
        if source.lead:
            yield from (f"lead {source.lead}", f"phases {source.phases[0]}", f"kernel {conv.kernel[0]}")
            yield from (case.chain.dtype, case.plan.order, case.plan.halo, f"dilation {conv.dilation[0]}")
            yield f"{sum(each.lead > 0 for each in tensors(case))} tensors"


def test_drawn_cases_are_of_every_kind() -> None:
    seen = Counter(each for case in served() for each in set(features(case)))
    expected = {
        *(f"lead {lead}" for lead in (4, 5, 6, 7, 12, 14)),
        *("phases 1", "phases 2", *(f"kernel {taps}" for taps in range(2, 6)), "1 tensors", "2 tensors"),
        *("uint8", "int8", "k_outer", "h_outer", "roll", "recompute", "dilation 1", "dilation 2", "dilation 3"),
    }
    assert {what: seen[what] for what in expected if seen[what] < 2} == {}
    assert sum(1 for case in served() if not any(each.lead for each in tensors(case))) > 5


@pytest.mark.parametrize("number", one_in(24, range(DRAWN)))
def test_drawn_cases_are_counted_as_predicted(number: int) -> None:
    for case in served(range(number, number + 1)):
        assert counted_as_predicted(case, lower_case(case)) == []


@pytest.mark.simulator
@pytest.mark.parametrize("number", one_in(40, range(DRAWN)))
def test_drawn_cases_are_exact(number: int) -> None:
    """Numpy has the padding; packets of every kind, and every count of them, are those of the closed form."""
    for case in served(range(number, number + 1)):
        check(case)


IN_TWO_SLABS = {
    "all": Conv2d(out_channels=9, kernel=(5, 3)),
    "dilate": Conv2d(out_channels=9, kernel=(5, 2), dilation=(1, 2)),
    "single": Conv2d(out_channels=9, kernel=(5, 3), stride=(1, 2)),
}
"""Second convs with two rows of taps up to the last row of a slab, by the mode of columns."""


def in_two_slabs(columns: str) -> Case:
    """A case with one of these."""
    second = replace(IN_TWO_SLABS[columns], padding=Padding(top=2, left=1, bottom=2, right=1), requantize=HOW)
    chain = replace(CHAIN, input=(1, 16, 11, 40), conv=(replace(CONV, out_channels=33), second))
    return Case(f"above-{columns}", chain, replace(PLANS["rings, overlapped"], padding_rows="slabs"))


@pytest.mark.simulator
@pytest.mark.parametrize("columns", IN_TWO_SLABS)
def test_taps_up_to_the_last_row_of_a_slab_go_together(columns: str) -> None:
    """Two of a kernel of 5 rows, and its other three in the slab below."""
    case = in_two_slabs(columns)
    (row,) = TileRow.rows_of(in_phases(case.chain, "hmx", "slabs"), 1, *tensors(case)[1:])
    assert f"multiply_above_{columns}" in {each.name for each in row.packets()}
    check(case)


@pytest.mark.parametrize("number", range(DRAWN))
def test_logical_rows_of_intermediates_take_as_few_slabs_as_at_any_place(number: int) -> None:
    """Counted row by row; rows are moved down by whole rows of their images, the fewest that do."""
    case = drawn(number)
    first, *intermediates, last = tensors(case)
    assert first.lead == last.lead == 0
    for moved in intermediates:
        taken = [slabs_taken(moved, rows * moved.phases[0] - moved.lead) for rows in range(8)]
        assert taken.index(min(taken)) * moved.phases[0] == moved.lead


def slabs_taken(tensor: Extents, down: int) -> int:
    """How many slabs have logical rows of the phases of a tensor that are stored, if it is moved down by some rows."""
    first, end = (row + down for row in tensor.valid_rows)
    of_phases = (row for row in range(first, end) if row % tensor.phases[0] <= tensor.last_phase[0])
    return len({row // tensor.slab_rows for row in of_phases})


def test_stripes_that_roll_multiply_fewer_taps() -> None:
    """Each slab is made once, and each that is left out had a row of tiles."""
    rolled = [case for case in served() if case.plan.halo == "roll"]
    moved = [case for case in rolled if any(each.lead for each in tensors(case))]
    assert len(moved) > 20
    for case in rolled:
        taps, of_read = packets(case).taps, packets(as_read(case)).taps
        assert taps < of_read if case in moved else taps == of_read


def test_all_taps_of_the_documents_case_are_useful() -> None:
    """Slabs are 8 and 8; the second conv reads row 7 of the slab above, and two rows of its own."""
    case = Case.load(ZEROS, "hexagon")
    found, read = packets(case), packets(as_read(case))
    units = 8 * 8 * 16
    assert (found.multiplies, found.taps, found.stores) == (units + 2 * units, 2 * units * 9, 4 * 2 * 2 * 8 * 8 * 4)
    assert needed_macs(case.chain) == found.macs
    assert needed_macs(case.chain) / read.macs == 16 / 17


def test_the_search_takes_slabs_where_they_fit_and_what_is_read_elsewhere() -> None:
    """A ring holds a slab more; no answer costs more than without the choice."""
    chain, plan = Case.load(ZEROS, "hexagon").chain, Plan(kernel="hmx", storage="vtcm")
    found, grid = dict[int, Plan](), evaluate(chain, Space.of(chain, plan), rates("v68"))
    is_read = grid.space.flags("padding_rows", "read") & np.ones(grid.space.shape, bool)
    for vtcm in (350, 400, 700, 1024):
        limited = replace(plan, vtcm_bytes=vtcm << 10)
        best = best_plan(chain, Question(vtcm << 10, objective="latency", plan=limited, equally_quick=0.0)).best
        assert best
        found[vtcm] = best.plan
        some = is_read.ravel() & (grid.footprint_bytes <= vtcm << 10)
        least = grid.latency_packets[some].min()
        assert (best.latency_packets < least) if best.plan.padding_rows == "slabs" else best.latency_packets == least
    assert {found[vtcm].padding_rows for vtcm in found} == {"read", "slabs"}
    assert found[1024].padding_rows == "slabs"


def test_a_plan_costs_as_much_alone_as_among_those_that_store_other_rows() -> None:
    for case in islice((case for case in served() if any(each.lead for each in tensors(case))), 6):
        space = Space.of(case.chain, Plan(kernel="hmx", storage="vtcm"))
        grid = evaluate(case.chain, space, rates("v68"))
        for number in np.random.default_rng(1).integers(0, space.size, 12).tolist():
            alone = figures_of(case.chain, space.plan(number), rates("v68"))
            together = grid.figures(number)
            for figure in ("footprint_bytes", "traffic_bytes", "macs", "latency_packets"):
                assert getattr(together, figure) == getattr(alone, figure)
            assert grid.time_packets(8.0)[number] == alone.time_packets(8.0)


def test_a_search_passes_over_slabs_where_no_row_moves() -> None:
    valid = tuple(replace(conv, padding=Padding()) for conv in Case.load(ZEROS, "hexagon").chain.conv)
    chain = replace(Case.load(ZEROS, "hexagon").chain, conv=valid)
    assert {words.padding_rows for words in Space.of(chain, Plan(kernel="hmx")).words} == {"read"}
    assert {words.padding_rows for words in Space.of(chain, Plan(kernel="hvx")).words} == {"read"}
