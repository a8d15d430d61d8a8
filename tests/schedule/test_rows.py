"""Stripes of single rows, and outputs row by row: exact, in caches that hold just the rows that are read."""

from dataclasses import replace

import pytest

from hexconv.analyze import cache_usage, needed_work, planned_work, work_usage
from hexconv.analyze.usage import miscounts
from hexconv.errors import InputError
from hexconv.lower import annotated_tir
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.chain import EdgeLayout
from tests.deep import one_in
from tests.lowered import lower_case

HOW = Requantize(multiplier=1 << 30, shift=-9, zero_point=120)
AROUND = Padding(top=1, left=1, bottom=1, right=1)
SIGNED = Conv2d(out_channels=40, kernel=(3, 3), padding=AROUND, requantize=HOW)
TAPS = replace(SIGNED, filter_zero_point=128)
"""The zero points lie in the middle: results are codes of all sizes, and not all the largest one."""
NARROW = replace(SIGNED, filter_l1=30000, requantize=replace(HOW, zero_point=0))
UNSIGNED = Chain(input=(1, 13, 10, 24), dtype="uint8", zero_point=128, conv=(TAPS, TAPS, TAPS))
CHAINS = {
    "three": UNSIGNED,
    "stride": replace(UNSIGNED, input=(2, 21, 9, 8), conv=(TAPS, replace(TAPS, stride=(2, 1)), TAPS)),
    "dilated": Chain(input=(1, 15, 9, 40), dtype="int8", conv=(SIGNED, replace(SIGNED, dilation=(2, 1)))),
    "alone": replace(UNSIGNED, input=(1, 12, 9, 16), conv=(TAPS,)),
    "int16": Chain(input=(1, 11, 9, 24), dtype="int16", conv=(NARROW, Conv2d(out_channels=36, filter_l1=30000))),
}
ROLLED = Plan(kernel="hvx", order="h_outer", halo="roll", filters="resident", buffering="double", storage="vtcm")
PLANS = {
    "1": replace(ROLLED, rows=1),
    "2-single": replace(ROLLED, rows=2, buffering="single"),
    "4-tiles": replace(ROLLED, rows=4, filters="per_tile"),
    "2-threads": replace(ROLLED, rows=2, threads=2),
    "2-recompute": replace(ROLLED, rows=2, halo="recompute"),
}
LAYOUTS: tuple[EdgeLayout, ...] = ("NHWC8h8w32c", "NHWC", "NHCW32c")


EACH = [(name, plan, LAYOUTS[(i + j) % 3]) for i, name in enumerate(CHAINS) for j, plan in enumerate(PLANS)]
"""Each chain under each plan, the layouts by turns."""


@pytest.mark.parametrize(("name", "plan", "layout"), one_in(2, EACH))
def test_sizes_bytes_and_products_are_those_that_are_predicted(name: str, plan: str, layout: EdgeLayout) -> None:
    case = Case(name, replace(CHAINS[name], output_layout=layout), PLANS[plan])
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "plan", "layout"),
    one_in(
        4,
        [
            ("three", "1", "NHWC"),
            ("three", "2-threads", "NHWC8h8w32c"),
            ("stride", "2-single", "NHCW32c"),
            ("dilated", "4-tiles", "NHWC"),
            ("alone", "1", "NHWC8h8w32c"),
            ("int16", "1", "NHWC"),
            ("int16", "2-recompute", "NHCW32c"),
        ],
    ),
)
def test_every_row_is_right(name: str, plan: str, layout: EdgeLayout) -> None:
    case = Case(name, replace(CHAINS[name], output_layout=layout), PLANS[plan])
    assert run_case(case, lower_case(case), Simulator(slots=False)).check.passed


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("name", ["three", "dilated", "alone"])
def test_rolled_rows_read_and_compute_nothing_twice(name: str, rows: int) -> None:
    chain = replace(CHAINS[name], output_layout="NHWC")
    done, needed = planned_work(chain, replace(ROLLED, rows=rows)), needed_work(chain)
    assert done.traffic_bytes["input"] == needed.traffic_bytes["input"]


@pytest.mark.parametrize("name", CHAINS)
def test_fewer_rows_take_less_memory(name: str) -> None:
    bytes_of = []
    for rows in (1, 2, 4):
        case = Case(name, replace(CHAINS[name], output_layout="NHWC"), replace(ROLLED, rows=rows))
        bytes_of.append(cache_usage(case, lower_case(case)).peak_bytes)
    assert bytes_of == sorted(bytes_of)
    assert bytes_of[0] < bytes_of[-1]


def test_a_stripe_has_one_height() -> None:
    with pytest.raises(InputError, match="both say how high a stripe is"):
        Plan(kernel="hvx", rows=2, h_split=2)


def test_rows_fill_blocks_where_the_output_has_them() -> None:
    with pytest.raises(InputError, match='1, 2, 4 or whole blocks of 8, or output_layout = "NHWC"'):
        Case("three", CHAINS["three"], replace(ROLLED, rows=3))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_output_of_one_pixel_has_a_listing(layout: EdgeLayout) -> None:
    """All loops of its copy but the one over channels are gone."""
    chain = Chain(input=(1, 1, 1, 17), conv=(Conv2d(out_channels=10),), output_layout=layout)
    case = Case("pixel", chain, Plan(kernel="plain"))
    assert "# write back output cache" in annotated_tir(case, lower_case(case), "")
