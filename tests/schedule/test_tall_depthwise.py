"""Depthwise convs on tall stripes, whose tiles go down the image: drawn ones, alone or between others, agree."""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hexconv.errors import HexconvError
from hexconv.kernel.depthwise import goes_down
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.chain import EDGE_LAYOUTS
from tests.draws import JUDGED
from tests.schedule.integer_chains import BYTES, ORDERS_AND_HALOS
from tests.schedule.judged import check_on_hvx

UP = Requantize(multiplier=1 << 30, shift=-8, rounding="up")
ENDINGS = (
    Requantize(multiplier=1518025757, shift=-8),
    Requantize(multiplier=1 << 30, shift=-7, zero_point=3, rounding="even"),
    Requantize(multiplier="per_channel", shift=-8),
    Requantize(multiplier=1339778560, shift=-9, rounding="even", fraction_bits=11),
    Requantize(multiplier="per_channel", shift="per_channel", rounding="even"),
    UP,
    None,
)
KERNELS = ((3, 3), (3, 3), (2, 3), (1, 3), (1, 4), (2, 2), (3, 2), (4, 2))
SIDE = st.integers(0, 3)


@st.composite
def depthwise_convs(draw: st.DrawFn) -> Conv2d:
    """A depthwise conv whose words may be turned, with any ending."""
    channels, how = draw(st.sampled_from([8, 16, 24, 32, 40, 48, 56, 72])), draw(st.sampled_from(ENDINGS))
    return Conv2d(
        out_channels=channels,
        groups=channels,
        kernel=draw(st.sampled_from(KERNELS)),
        stride=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        dilation=(draw(st.integers(1, 2)), 1),
        padding=Padding(top=draw(SIDE), left=draw(SIDE), bottom=draw(SIDE), right=draw(SIDE)),
        requantize=how,
        bias=True,
        bias_limit=1000,
        activation=draw(st.sampled_from(["none", "table"])) if how else "none",
    )


@st.composite
def tall_plans(draw: st.DrawFn) -> Plan:
    """A plan of stripes of 12 rows or more, with any other knobs."""
    order, halo = draw(st.sampled_from(ORDERS_AND_HALOS))
    plan = Plan(
        kernel="hvx",
        k_split=draw(st.integers(1, 2)),
        order=order,
        halo=halo,
        filters=draw(st.sampled_from(["resident", "per_tile"])),
        buffering=draw(st.sampled_from(["single", "double"])),
        storage=draw(st.sampled_from(["vtcm", "global"])),
        threads=draw(st.integers(1, 2)),
    )
    stripe = draw(st.sampled_from([{"h_split": 2}, {"h_split": 4}, {"rows": 12}, {"rows": 13}, {"rows": 16}]))
    return replace(plan, **stripe)


@st.composite
def tall_cases(draw: st.DrawFn) -> Case:
    """A chain with one depthwise conv whose tiles go down, alone or between others."""
    conv, plan = draw(depthwise_convs()), draw(tall_plans())
    before, after = draw(st.booleans()), conv.requantize is not None and draw(st.booleans())
    convs = [Conv2d(out_channels=conv.out_channels, requantize=UP)] * before + [conv]
    convs += [Conv2d(out_channels=40, requantize=UP)] * after
    dtype, filter_dtype = draw(st.sampled_from(BYTES))
    read = draw(st.sampled_from([4, 40])) if before else conv.out_channels
    try:
        chain = Chain(
            input=(1, draw(st.integers(20, 45)), draw(st.integers(5, 20)), read),
            dtype=dtype,
            filter_dtype=filter_dtype,
            input_layout=draw(st.sampled_from(EDGE_LAYOUTS)),
            output_layout=draw(st.sampled_from(EDGE_LAYOUTS)),
            conv=tuple(convs),
        )
        case = Case("tall", chain, plan, target="hexagon")
    except HexconvError:
        assume(False)
    assume(goes_down(chain, case.plan, int(before)))
    return case


def more_than_half_a_block() -> Case:
    """24 channels: two tiles can't share vectors of 32."""
    conv = Conv2d(out_channels=24, groups=24, kernel=(3, 3), stride=(2, 2), requantize=UP)
    chain = Chain(input=(1, 70, 18, 24), dtype="uint8", filter_dtype="int8", conv=(conv,))
    return Case("half", chain, Plan(kernel="hvx", h_split=4, order="h_outer"), target="hexagon")


@pytest.mark.simulator
@JUDGED
@given(tall_cases())
@example(more_than_half_a_block())
def test_drawn_tall_depthwise_convs_agree_in_every_respect(case: Case) -> None:
    check_on_hvx(case)
