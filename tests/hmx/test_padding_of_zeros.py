"""Columns of padding whose products are 0 are not stored, nor multiplied: exact, and as the closed form counts."""

from dataclasses import replace

import pytest

from hexconv.analyze.block_grid import engine_packets
from hexconv.analyze.planned import Planned
from hexconv.lower import lower_case
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, tensor_extents
from hexconv.spec.dtypes import INTEGER_RANGE, Dtype
from hexconv.spec.extents import unstored_columns
from hexconv.spec.knobs import Buffering, Filters
from hexconv.spec.phases import in_phases
from hexconv.sweep.random_chains import Draw, Seeded
from tests.deep import one_in
from tests.hmx.test_kernel import CHAIN, CONV, HOW, check, counted_as_predicted

DRAWN = 120
ZEROS = replace(CONV, requantize=replace(HOW, zero_point=0))
SAME = replace(CHAIN, input=(1, 24, 64, 64), zero_point=0, conv=(replace(ZEROS, out_channels=64),) * 2)
ROLLED = Plan(kernel="hmx", order="h_outer", halo="roll", filters="resident", storage="vtcm")


def drawn(number: int) -> Case:
    """Draw one to three convs whose tensors mostly have zeros of 0, with columns around whole tiles."""
    draw: Draw = Seeded(31, number)
    dtype: Dtype = draw.one_of("uint8", "int8")
    least, most = INTEGER_RANGE[dtype]
    width, convs = draw.number(1, 3) * 8 + draw.number(-2, 2), list[Conv2d]()
    columns = width
    for _ in range(draw.number(1, 3)):
        taps, apart = draw.number(1, 5), draw.one_of(1, 1, 2)
        apart = apart if (taps - 1) * apart < 8 else 1
        left, right = draw.number(0, (taps - 1) * apart + 1), draw.number(0, 4)
        left += max(0, (taps - 1) * apart + 1 - columns - left - right)
        columns += left + right - (taps - 1) * apart
        how = Requantize(
            multiplier=draw.number(1 << 30, (1 << 31) - 1),
            shift=-draw.number(6, 9),
            zero_point=draw.one_of(least, least, draw.number(least, most)),
            engine=draw.one_of("fast", "exact"),
        )
        rows = draw.number(1, 3)
        convs.append(
            Conv2d(
                out_channels=draw.number(1, 40),
                kernel=(rows, taps),
                dilation=(1, apart),
                padding=Padding(top=rows // 2, left=left, bottom=rows // 2, right=right),
                bias=draw.one_of(False, True),
                requantize=how,
            )
        )
    buffering: Buffering = draw.one_of("single", "double")
    filters: Filters = draw.one_of("per_tile", "resident")
    order, halo = draw.one_of(("k_outer", "recompute"), ("h_outer", "recompute"), ("h_outer", "roll"))
    size = draw.number(1, 2), draw.number(3, 20), width, draw.number(1, 40)
    zero = draw.one_of(least, least, draw.number(least, most))
    chain = Chain(input=size, dtype=dtype, filter_dtype="int8", zero_point=zero, conv=tuple(convs))
    plan = Plan(
        kernel="hmx",
        h_split=draw.number(1, max(each.row_blocks for each in tensor_extents(chain)[1:])),
        order=order,
        halo=halo,
        filters=filters,
        buffering=buffering,
        storage="vtcm",
    )
    return Case(f"zeros-{number}", chain, plan)


def left_out(case: Case) -> list[int | None]:
    """The columns of padding left of what is stored, of each conv."""
    chain = in_phases(case.chain, "hmx")
    return [unstored_columns(chain, index, tensor_extents(chain)[index + 1]) for index in range(len(chain.conv))]


def test_drawn_cases_have_padding_of_every_kind() -> None:
    found = [each for number in range(DRAWN) for each in left_out(drawn(number))]
    assert {each: found.count(each) > 2 for each in (None, 0, 1, 2, 3, 4)} == dict.fromkeys((None, 0, 1, 2, 3, 4), True)


@pytest.mark.parametrize("number", one_in(20, range(DRAWN)))
def test_drawn_cases_are_counted_as_predicted(number: int) -> None:
    case = drawn(number)
    if case.kernels[0].used == "hmx":
        assert counted_as_predicted(case, lower_case(case)) == []


@pytest.mark.simulator
@pytest.mark.parametrize("number", one_in(40, range(DRAWN)))
def test_drawn_cases_are_exact(number: int) -> None:
    """Numpy has the padding; packets of every kind, and every count of them, are those of the closed form."""
    case = drawn(number)
    if case.kernels[0].used == "hmx":
        check(case)


@pytest.mark.parametrize("zero_point", [0, 1])
def test_tiles_are_as_many_as_columns_have(zero_point: int) -> None:
    """64 columns are 8 tiles; 66 and 68 with padding would be 9."""
    chain = replace(SAME, zero_point=zero_point)
    assert [each.column_blocks for each in tensor_extents(in_phases(chain, "hmx"))] == [9 if zero_point else 8, 8, 8]
    assert [each.column_blocks for each in tensor_extents(chain)] == [9, 9, 8]  # every other kernel


@pytest.mark.simulator
def test_what_is_right_of_the_last_crouton_is_stored() -> None:
    """64 columns, none left over; a store on each side of a column for every tile."""
    case = Case("same", replace(SAME, input=(1, 9, 16, 16)), ROLLED)
    assert left_out(case) == [1, 1]
    check(case)


def test_of_a_crouton_beyond_the_last_tile_one_column_of_taps_adds() -> None:
    """Of 65 columns the last one adds to output 63, and only by the last column of the kernel."""
    conv = replace(ZEROS, out_channels=32, kernel=(1, 3), padding=Padding(left=1))
    case = Case("beyond", replace(SAME, input=(1, 8, 65, 32), conv=(conv,)), ROLLED)
    assert left_out(case) == [1]
    assert engine_packets(Planned.of(case).blocks).of_one.taps == 8 * 3 + 1
