"""Inputs in blocks: chains read them as other chains wrote them, exactly, and nothing of what pads them."""

from dataclasses import replace

import pytest

from hexconv.analyze import work_usage
from hexconv.analyze.usage import miscounts
from hexconv.compute import reference
from hexconv.errors import InputError
from hexconv.kernel import output_layout
from hexconv.run.copy_engine import Copies
from hexconv.run.host import Host, count
from hexconv.run.measure import run_case
from hexconv.run.measurement import Array
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.chain import EDGE_LAYOUTS, EdgeLayout
from hexconv.sweep.judging import judge
from tests.deep import one_in
from tests.lowered import lower_case

HOW = Requantize(multiplier=1 << 30, shift=-9, zero_point=120)
CONV = Conv2d(
    out_channels=40,
    kernel=(3, 3),
    padding=Padding(top=2, left=1, bottom=1, right=1),
    filter_zero_point=128,
    requantize=HOW,
)
IMAGE = Chain(input=(2, 19, 21, 70), dtype="uint8", zero_point=128, conv=(CONV, CONV))
BLOCKS: tuple[EdgeLayout, ...] = ("NHWC8h8w32c", "NHCW32c")
CHAINS = {
    "padded": IMAGE,
    "three channels": replace(IMAGE, input=(1, 19, 21, 3), conv=(replace(CONV, stride=(2, 2)),)),
    "whole blocks": replace(IMAGE, input=(1, 16, 16, 64)),
    "depthwise": replace(IMAGE, input=(1, 9, 30, 70), conv=(replace(CONV, out_channels=70, groups=70), CONV)),
    "int16": replace(
        IMAGE,
        dtype="int16",
        zero_point=0,
        conv=(replace(CONV, filter_zero_point=0, filter_l1=30000, requantize=replace(HOW, zero_point=0)),),
    ),
    "one block of rows": replace(IMAGE, input=(1, 8, 9, 40), conv=(replace(CONV, padding=Padding(top=1)),)),
}
ROLLED = Plan(kernel="hvx", order="h_outer", halo="roll", filters="resident", buffering="double", storage="vtcm")
PLANS = {
    "single rows": replace(ROLLED, rows=1),
    "blocks of rows": replace(ROLLED, buffering="single"),
    "threads": replace(ROLLED, rows=2, halo="recompute", threads=3),
    "strips": replace(ROLLED, rows=2, w_split=1),
    "plain": Plan(kernel="plain", order="h_outer", buffering="double"),
    "one stripe": Plan(kernel="hvx", order="h_outer", filters="resident", threads=2),
}
RUN = [
    *((name, list(PLANS)[place % 4], BLOCKS[place % 2]) for place, name in enumerate(CHAINS)),
    ("one block of rows", "one stripe", BLOCKS[0]),
]
COUNTED = [(name, list(PLANS)[(place + 1) % 4], BLOCKS[place % 2]) for place, name in enumerate(CHAINS)]


def case_of(name: str, plan: str, layout: EdgeLayout) -> Case:
    """Return a chain whose input lies in a layout, under a plan."""
    return Case("case", replace(CHAINS[name], input_layout=layout, output_layout="NHWC"), PLANS[plan])


@pytest.mark.simulator
@pytest.mark.parametrize(("name", "plan", "layout"), one_in(4, RUN))
def test_blocks_are_read_right(name: str, plan: str, layout: EdgeLayout) -> None:
    """The simulator's memory is filled with poison, and the padding of blocks with what would show in a result."""
    case = case_of(name, plan, layout)
    assert run_case(case, lower_case(case), Simulator(copies=Copies("late"), slots=False)).check.passed


@pytest.mark.simulator
def test_rows_that_run_in_lie_in_blocks_of_their_own() -> None:
    """The stripes that make output read rows 16 to 20, all in one block; those of the warm-up read the blocks above."""
    tall = replace(CONV, out_channels=8, kernel=(5, 1), dilation=(3, 1), padding=Padding())
    chain = Chain(
        input=(1, 21, 8, 2), dtype="uint8", input_layout="NHWC8h8w32c", conv=(tall, replace(tall, dilation=(1, 1)))
    )
    case = Case("case", chain, replace(ROLLED, rows=1, buffering="single"))
    assert run_case(case, lower_case(case), Simulator(slots=False)).check.passed


@pytest.mark.parametrize(("name", "plan", "layout"), COUNTED)
def test_bytes_and_products_are_those_of_pixels(name: str, plan: str, layout: EdgeLayout) -> None:
    found = [case_of(name, plan, each) for each in (layout, "NHWC")]
    blocks, pixels = (work_usage(case, count(lower_case(case))) for case in found)
    assert list(miscounts(blocks)) == []
    assert blocks == pixels


@pytest.mark.simulator
def test_a_row_is_one_copy_for_each_block() -> None:
    """18 rows of 30 pixels: of 70 channels, which are three blocks, and of four blocks of 8 columns."""
    conv = replace(CONV, out_channels=8, kernel=(1, 1), padding=Padding())
    chain = Chain(input=(1, 18, 30, 70), dtype="uint8", output_layout="NHWC", conv=(conv,))
    cases = [Case("case", replace(chain, input_layout=layout), PLANS["single rows"]) for layout in ("NHWC", *BLOCKS)]
    runs = [run_case(case, lower_case(case), Simulator(slots=False)).copies for case in cases]
    pixels, in_columns, in_rows = (run.pieces for run in runs if run)
    assert (in_rows - pixels, in_columns - pixels) == (18 * (3 - 1), 18 * (3 * 4 - 1))


@pytest.mark.simulator
def test_channels_that_steps_do_not_divide_are_copied_by_pixels() -> None:
    """4 rows of 192 channels in steps of 128, 64 side by side, beside one copy of the input and one of the filter."""
    chain = Chain(
        input=(1, 4, 28, 32), dtype="uint8", output_layout="NHWC", conv=(Conv2d(out_channels=192, requantize=HOW),)
    )
    plan = Plan(kernel="hvx", k_split=4, filters="resident", buffering="double", storage="vtcm")
    case = Case("case", chain, plan)
    run = run_case(case, lower_case(case), Simulator(slots=False))
    assert run.check.passed
    assert run.copies
    assert run.copies.pieces == 4 * 3 + 2


@pytest.mark.parametrize("layout", BLOCKS)
def test_the_plain_kernel_reads_blocks_too(layout: EdgeLayout) -> None:
    chain = replace(CHAINS["padded"], input=(1, 11, 13, 40), input_layout=layout)
    verdict = judge(Case("case", chain, PLANS["plain"]))
    assert (verdict.outcome, verdict.reasons) == ("agrees", ())


def result(chain: Chain, arguments: list[Array]) -> Array:
    """Return the output of a chain, in its layout, on this machine."""
    module = lower_case(Case("case", chain, PLANS["plain"], target="llvm")).module
    return Host(calls=1).run(module, arguments, [(output_shape(chain), "uint8")]).outputs[0]


@pytest.mark.parametrize("layout", one_in(2, EDGE_LAYOUTS))
def test_what_one_chain_writes_another_reads(layout: EdgeLayout) -> None:
    """The output of the first is the argument of the second, byte for byte."""
    first = replace(IMAGE, input=(2, 11, 13, 40), conv=(CONV,), output_layout=layout)
    second = replace(first, input=first.shapes[-1], zero_point=120, input_layout=layout)
    tensors, others = random_tensors(first), random_tensors(second, seed=1)
    between = result(first, packed_arguments(first, tensors))
    found = result(second, [between, *packed_arguments(second, others)[1:]])
    logical = reference(first, *tensors.logical).astype("uint8")
    wanted = reference(second, logical, *others.logical[1:]).astype("uint8")
    assert (output_layout(second).unpack(found) == wanted).all()


def test_a_layout_that_is_none_of_them_is_refused() -> None:
    text = '[chain]\ninput = [1, 8, 8, 4]\ninput_layout = "NCHW"\n[[chain.conv]]\nout_channels = 4\n'
    with pytest.raises(InputError, match="input_layout") as refusal:
        Case.parse(text, "case")
    assert all(layout in str(refusal.value) for layout in EDGE_LAYOUTS)
