"""What the packets of a nest are spent on: laws that tie its counts to those of multiplications and of copies."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hexconv.analyze.nest_packets import nest_parts
from hexconv.analyze.rows import planned_rows
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize
from hexconv.sweep.plans import drawn_plan
from hexconv.sweep.scope import Scope
from tests.strategies import Shrinking

HOW = Requantize(multiplier=0x5A7B3C1D, shift=-7)


@st.composite
def nests(draw: st.DrawFn) -> tuple[Chain, Plan]:
    """Chains of dense convs without zero points, and plans of theirs."""
    numbers = Shrinking(draw)
    kernels = st.sampled_from(((1, 1), (3, 3), (1, 3), (5, 1)))
    convs = [
        Conv2d(
            out_channels=numbers.size(160),
            kernel=draw(kernels),
            padding=Padding(top=numbers.number(0, 1), left=numbers.number(0, 1)),
            requantize=HOW,
        )
        for _ in range(numbers.number(1, 3))
    ]
    size = (1, numbers.number(13, 40), numbers.number(13, 40), numbers.size(160))
    chain = Chain(input=size, dtype="uint8", conv=tuple(convs))
    plan = drawn_plan(
        numbers, chain, "hvx", Scope(dtypes=("uint8",), storages=("global",), turned=("filters", "buffering"))
    )
    return chain, replace(plan, order="h_outer")


@settings(max_examples=60, deadline=None)
@given(nests())
def test_inner_loops_have_room_for_every_multiplication(nest: tuple[Chain, Plan]) -> None:
    """Two a packet where tiles are whole; a tile of few pixels loads more than it multiplies."""
    chain, plan = nest
    planned, parts = planned_rows(chain, plan), nest_parts(chain, plan)
    rows = [planned.logical_rows(index + 1) for index in range(len(chain.conv))]
    again = sum(planned.begun_again(index) * rows[index] for index in range(len(chain.conv)))
    multiplied = sum(planned.instructions(index) for index in range(len(chain.conv))) - again
    packets = sum(parts[f"multiply{blocks}"] for blocks in range(1, 5))
    assert packets >= multiplied / 2
    widths = [shape[2] for shape in chain.shapes[1:]]
    if all(width % 8 == 0 for width in widths):
        assert packets == multiplied / 2


@settings(max_examples=60, deadline=None)
@given(nests())
def test_who_copies_is_a_matter_of_buffering_alone(nest: tuple[Chain, Plan]) -> None:
    chain, plan = nest
    single, double = (nest_parts(chain, replace(plan, buffering=how)) for how in ("single", "double"))
    moved, engine = ("line", "vector", "unit", "filter", "output"), ("start", "group")
    assert all(double[name] == 0 for name in moved)
    assert all(single[name] == 0 for name in engine)
    assert single["filter"] * 128 == sum(
        planned_rows(chain, plan).filter_stagings(index) * size for index, size in enumerate(_filter_bytes(chain, plan))
    )
    others = set(single) | set(double)
    assert all(single[name] == double[name] for name in others if name not in (*moved, *engine))


def _filter_bytes(chain: Chain, plan: Plan) -> list[int]:
    shapes = [layout.physical_shape for layout in planned_rows(chain, plan).forms.filters]
    sizes = []
    for shape in shapes:
        size = 1
        for extent in shape:
            size *= extent
        sizes.append(size)
    return sizes


@pytest.mark.parametrize(("pixels", "blocks"), [(16, 4), (20, 4), (18, 2)])
def test_a_row_of_pixels_is_cut_into_tiles(pixels: int, blocks: int) -> None:
    """Of 4 pixels where there are 4 blocks, of 8 where there are 2; what is left is one tile more."""
    conv = Conv2d(out_channels=32 * blocks, requantize=HOW)
    chain = Chain(input=(1, 8, pixels, 32), dtype="uint8", conv=(conv,))
    parts = nest_parts(chain, Plan(kernel="hvx", k_split=blocks, order="h_outer"))
    width = 4 if blocks == 4 else 8
    assert parts["tile"] == 8 * -(-pixels // width)
    assert parts["sum"] == 8 * pixels * blocks


@pytest.mark.parametrize(("k_split", "runs"), [(1, 1), (2, 1), (4, 1), (6, 3), (7, 4), (8, 1)])
def test_blocks_that_do_not_lie_side_by_side_are_runs_of_their_own(k_split: int, runs: int) -> None:
    """Of 8 blocks: 6 come as twice 3 and 2, 7 as 4 and 3 and 1, and no two of them lie side by side throughout."""
    conv = Conv2d(out_channels=256, requantize=HOW)
    chain = Chain(input=(1, 8, 8, 64), dtype="uint8", conv=(conv,))
    parts = nest_parts(chain, Plan(kernel="hvx", k_split=k_split, order="h_outer"))
    blocks = next(blocks for blocks in (4, 3, 2, 1) if parts[f"multiply{blocks}"])
    trips = parts[f"multiply{blocks}"] / (blocks * (8 if blocks <= 2 else 4))
    assert parts[f"apart{blocks}"] == trips * (runs - 1)
