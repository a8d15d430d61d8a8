"""Stripes of rows that stream where little of the image is left: reads, waits and bytes are as the closed form says.

The chains were drawn by the random sweep. In each, warm-up stripes read what others don't, or stripes read on after
the convs that use it have made all of their rows.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count as counting
from itertools import islice
from pathlib import Path

import pytest

from hexconv.analyze import cache_usage, work_usage
from hexconv.errors import InputError, Unsupported
from hexconv.lower import lower_case
from hexconv.lower.lowered import Lowered
from hexconv.run.copy_engine import Copies
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.extents import reads_input_rows
from hexconv.spec.knobs import KNOBS
from hexconv.sweep.random_case import drawn_case
from hexconv.sweep.random_chains import Scope, Seeded
from tests.deep import DEEP, one_in

PLAN = 'rows = {rows}\norder = "h_outer"\nhalo = "roll"\nfilters = "resident"\nbuffering = "double"\nkernel = "hvx"\n'
SCALE = 'requantize = {{ multiplier = 1073741824, shift = -9, zero_point = 0, rounding = "up" }}\n'
CHAINS = {
    "only warm-up stripes read the last rows": (
        1,
        "input = [1, 22, 63, 7]",
        (7, "kernel = [4, 3]\nstride = [3, 2]\ndilation = [3, 1]\npadding = [4, 1, 5, 1]"),
        (7, "kernel = [2, 5]\nstride = [2, 1]\ndilation = [2, 1]\npadding = [1, 2, 1, 2]"),
        (1, "kernel = [2, 5]\nstride = [1, 3]\ndilation = [2, 2]"),
        (6, "kernel = [2, 2]\nstride = [2, 2]\ndilation = [2, 3]\npadding = [1, 1, 1, 2]"),
    ),
    "a stride steps over rows, and stripes read on": (
        2,
        "input = [2, 1, 1, 25]",
        (129, "kernel = [1, 3]\nstride = [2, 2]\ndilation = [3, 2]\npadding = [0, 11, 0, 0]"),
        (33, "kernel = [4, 6]\nstride = [2, 3]\ndilation = [3, 2]\npadding = [7, 10, 5, 6]"),
        (5, "stride = [1, 2]\ndilation = [3, 2]"),
    ),
    "one row is read, and the padding below it is long": (
        1,
        "input = [2, 1, 5, 2]",
        (8, "stride = [1, 3]\npadding = [0, 0, 24, 0]"),
    ),
    "two rows, of which a stride reads one": (
        1,
        "input = [3, 2, 3, 143]",
        (172, "kernel = [1, 2]\nstride = [2, 2]\ndilation = [1, 3]\npadding = [1, 1, 1, 2]"),
        (15, "kernel = [6, 6]\nstride = [2, 2]\npadding = [2, 2, 3, 3]"),
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", one_in(8, CHAINS))
def test_reads_and_waits_are_as_the_closed_form_says(name: str, threads: int, tmp_path: Path) -> None:
    rows, image, *convs = CHAINS[name]
    made = "".join(f"[[chain.conv]]\nout_channels = {k}\n{how}\n{SCALE.format()}" for k, how in convs)
    path = tmp_path / "case.toml"
    plan = f"[plan]\n{PLAN.format(rows=rows)}threads = {threads}\n"
    path.write_text(f'[chain]\n{image}\ndtype = "uint8"\n{made}{plan}')
    case = Case.load(path)
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees
    assert run_case(case, lowered, Simulator(copies=Copies("late"), slots=False)).check.passed


def test_a_filter_that_is_never_read_keeps_its_memory_while_it_is_copied(tmp_path: Path) -> None:
    """What reads the first conv reads its padding alone; the copy of its filter is under way all the same."""
    tall = "kernel = [7, 6]\nstride = [2, 1]\ndilation = [3, 2]\npadding = [14, 2, 16, 0]"
    convs = (32, tall), (5, "stride = [12, 8]\ndilation = [1, 2]\npadding = [1, 1, 0, 0]")
    made = "".join(f"[[chain.conv]]\nout_channels = {k}\n{how}\n{SCALE.format()}" for k, how in convs)
    plan = '[plan]\nrows = 1\nfilters = "resident"\nbuffering = "double"\nkernel = "hvx"\n'
    path = tmp_path / "case.toml"
    path.write_text(f'[chain]\ninput = [1, 1, 30, 32]\ndtype = "uint8"\noutput_layout = "NHWC"\n{made}{plan}')
    case = Case.load(path)
    assert run_case(case, lower_case(case), Simulator(copies=Copies("late"), slots=False)).check.passed


TINY = Scope(
    dtypes=("uint8", "int8", "int16"),
    kernels=("hvx",),
    turned=tuple(name for name in KNOBS if name != "vtcm_bytes"),
    output=3,
    channels=33,
    convs=3,
    batch=2,
    macs=2_000_000,
)
DRAWN = 20
NOTHING_IS_READ = Chain(
    input=(2, 13, 1, 12),
    dtype="int8",
    zero_point=-114,
    conv=(
        Conv2d(
            out_channels=2,
            kernel=(7, 1),
            dilation=(1, 3),
            padding=Padding(right=8),
            filter_zero_point=-128,
            requantize=Requantize(multiplier=1073741825, shift=-21, zero_point=-128, clamp=(-78, 1)),
        ),
        Conv2d(
            out_channels=4,
            kernel=(5, 2),
            stride=(3, 2),
            dilation=(1, 2),
            filter_zero_point=-21,
            requantize=Requantize(multiplier=544952533, shift=-31, zero_point=-128, rounding="even"),
        ),
        Conv2d(
            out_channels=8,
            stride=(13, 14),
            padding=Padding(top=19, bottom=34),
            groups=4,
            filter_zero_point=48,
            requantize=Requantize(multiplier=1790081521, shift=-6, zero_point=1, rounding="up"),
        ),
    ),
)
"""A draw whose last conv steps over all rows of the convs before it."""


def streams(first: int) -> Iterator[tuple[Case, Lowered]]:
    """Yield drawn cases with outputs of at most 3x3 and with much padding, in stripes of rows on one thread or more."""
    for number in counting(first):
        draw = Seeded(77, number)
        try:
            case = drawn_case(draw, TINY, f"tiny-{number}")
            plan = replace(
                case.plan,
                rows=draw.number(1, 2),
                order="h_outer",
                halo=draw.one_of("roll", "roll", "recompute"),
                buffering=draw.one_of("double", "single"),
                threads=draw.one_of(1, 1, 2, 3, 4),
                arch="v68",
            )
            plan = replace(plan, order=draw.one_of("h_outer", "h_outer", "k_outer"))
            drawn = replace(case, plan=plan)
            yield drawn, lower_case(drawn)
        except (AssertionError, InputError, Unsupported):
            continue


def steps_over_rows(drawn: tuple[Case, Lowered]) -> bool:
    return any(conv.stride[0] > conv.reach[0] for conv in drawn[0].chain.conv)


@pytest.mark.parametrize("first", [0, *(pytest.param(part * 100, marks=DEEP) for part in (1, 2))])
def test_drawn_streams_of_tiny_images_do_what_the_closed_form_says(first: int) -> None:
    for case, lowered in islice(streams(first), DRAWN):
        assert cache_usage(case, lowered).agrees, case
        assert work_usage(case, count(lowered)).agrees, case


@DEEP
@pytest.mark.parametrize("first", [345, 660])
def test_drawn_strides_that_step_over_rows_wait_for_every_copy(first: int) -> None:
    """These draws hold the two classes that streams of tiny images seldom have: rings that only some stripes read."""
    for case, lowered in islice(filter(steps_over_rows, streams(first)), 6):
        assert work_usage(case, count(lowered)).agrees, case
        assert run_case(case, lowered, Simulator(copies=Copies("late"), slots=False)).check.passed, case


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_conv_that_makes_padding_alone_multiplies_nothing(threads: int) -> None:
    """Its steps have five rows, so that TVM can't show that none of them is logical."""
    plan = Plan(
        rows=1,
        order="h_outer",
        halo="roll",
        kernel="hvx",
        threads=threads,
        storage="vtcm",
        activations="splats",
        arch="v69",
    )
    unread = Case("padding", NOTHING_IS_READ, plan)
    usage = work_usage(unread, count(lower_case(unread)))
    assert usage.agrees
    assert [conv.macs for conv in usage.convs][:2] == [0, 0]


def padding_alone(number: int) -> Case:
    """Draw a conv that reads the padding above a small image alone: its rows are too few for one more output."""
    draw = Seeded(78, number)
    stride, made = draw.number(2, 4), draw.number(3, 6)
    kernel, image = draw.number(stride, stride + 2), draw.number(1, stride - 1)
    top = (made - 1) * stride + kernel + draw.number(0, stride - 1 - image)
    conv = Conv2d(
        out_channels=draw.number(1, 40),
        kernel=(kernel, 1),
        stride=(stride, 1),
        padding=Padding(top=top, left=draw.number(0, 1)),
        requantize=Requantize(multiplier=1 << 30, shift=-9, zero_point=7),
    )
    image_shape = (draw.number(1, 3), image, 1, draw.number(1, 9))
    chain = Chain(input=image_shape, dtype="uint8", zero_point=9, output_layout="NHWC", conv=(conv,))
    plan = Plan(kernel="hvx", rows=draw.number(1, 2), order="h_outer", halo="roll", buffering="double")
    return Case(f"padding-{number}", chain, plan)


@pytest.mark.parametrize("first", [0, pytest.param(8, marks=DEEP)])
def test_nothing_is_read_ahead_where_padding_is_all_that_is_read(first: int) -> None:
    for case in map(padding_alone, range(first, first + 8)):
        lowered = lower_case(case)
        assert not reads_input_rows(case.chain), case
        assert cache_usage(case, lowered).agrees, case
        assert work_usage(case, count(lowered)).agrees, case
        assert run_case(case, lowered, Simulator(copies=Copies("late"), slots=False)).check.passed, case
