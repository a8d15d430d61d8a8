"""Convs by packets of the matrix engine: exact, in caches and with packets as the closed form predicts; refusals."""

import re
from dataclasses import replace
from importlib import resources
from itertools import pairwise, product
from math import prod
from pathlib import Path

import numpy as np
import pytest
from tvm import tirx

from hexconv.analyze import misfit, vtcm_fit
from hexconv.analyze.block_grid import crosses_lines, engine_packets
from hexconv.analyze.planned import Planned
from hexconv.analyze.usage import beaten, cache_usage, miscounts, other_sizes, work_usage
from hexconv.build.built_chain import built_chain, platform_files
from hexconv.build.called_library import simulated_chain
from hexconv.errors import InputError, RunFailed, Unsupported
from hexconv.kernel.engine import (
    EXPONENTS,
    LINE_BYTES,
    WHOLE_SCALE,
    clear_of_lines,
    engine_diagonal,
    kernel_copies,
    placed_clear_of_lines,
    table_word,
    tap_packets,
)
from hexconv.kernel.engine_words import LEAVES, packets
from hexconv.kernel.form import without_groups
from hexconv.lower import Lowered, lower_case
from hexconv.run.host import count
from hexconv.run.measure import run_case, runner_of
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import random_tensors
from hexconv.search import Question, best_plan
from hexconv.search.grid import figures_of
from hexconv.search.machine import rates
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, choose_kernels, settled, tensor_extents
from hexconv.spec.choices import Target
from hexconv.spec.dtypes import INTEGER_RANGE, Dtype
from hexconv.spec.kernels import Kernel
from hexconv.spec.knobs import Filters, Halo
from hexconv.spec.phases import in_phases
from hexconv.sweep.random_case import drawn_case, random_case
from hexconv.sweep.random_chains import OF_ENGINE, ROUNDINGS, Seeded
from hexconv.tir.trees import all_of
from tests.deep import one_in
from tests.hmx.definition import stored

HOW = Requantize(multiplier=1518500250, shift=-8, zero_point=120)
FAST = replace(HOW, engine="fast", clamp=(120, 255), rounding="even")
CUT = replace(FAST, multiplier="per_channel", clamp=(90, 200))
CONV = Conv2d(
    out_channels=40, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1), bias=True, requantize=HOW
)
CHAIN = Chain(input=(1, 18, 11, 40), dtype="uint8", filter_dtype="int8", zero_point=113, conv=(CONV, CONV))
PLANS = {
    "documented": Plan(kernel="hmx", k_split=2, h_split=2),
    "rings, overlapped": Plan(
        kernel="hmx", k_split=1, order="h_outer", halo="roll", filters="resident", buffering="double"
    ),
}
CONVERTED = replace(CHAIN, conv=(replace(CONV, requantize=FAST), replace(CONV, requantize=CUT)))
LOOKED_UP = [
    replace(CONV, kernel=(1, 1), padding=Padding(), requantize=how, activation="table", table_zero_point=7)
    for how in (HOW, FAST)
]
SEED, CASES = 7, 24
SIMULATOR = pytest.mark.simulator
RAN_BY: tuple[tuple[Kernel, Target], ...] = (("plain", "llvm"), ("hmx", "hexagon"))


def counted_as_predicted(case: Case, lowered: Lowered) -> list[str]:
    """Hold sizes of caches, bytes and multiply-accumulates against the closed form and against what is needed."""
    work = work_usage(case, count(lowered))
    return [*other_sizes(cache_usage(case, lowered)), *miscounts(work), *beaten(work)]


def check(case: Case) -> None:
    """Run a case on the simulator, and hold everything that is predicted of it against what is counted."""
    lowered = lower_case(case)
    assert counted_as_predicted(case, lowered) == []
    run = run_case(case, lowered, runner_of(case, "hexagon", slots=False))
    assert run.check.passed, case.to_toml()
    assert run.check.max_abs_error == 0
    assert run.engine
    assert run.engine.packets == engine_packets(Planned.of(case).blocks).of_one
    assert run.vtcm_bytes == vtcm_fit(case.chain, case.settled).demand_bytes


@pytest.mark.simulator
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_two_convs_of_ragged_sizes_are_exact(plan: Plan) -> None:
    """40 channels, 18 by 11 pixels, padding: every kind of fringe of a tile."""
    check(Case("ragged", CHAIN, plan))


OF_CHANNELS = {
    rounding: Requantize(multiplier="per_channel", shift="per_channel", zero_point=120, rounding=rounding)
    for rounding in ROUNDINGS
}


@pytest.mark.simulator
@pytest.mark.parametrize("how", OF_CHANNELS.values(), ids=OF_CHANNELS)
def test_each_channel_has_a_scale_of_its_own(how: Requantize) -> None:
    """Multipliers, shifts, and what rounds half to even: each meets the sums of its channel, in 40 of 64 lanes."""
    conv = replace(CONV, kernel=(1, 1), padding=Padding(), requantize=how)
    check(Case("channels", replace(CHAIN, input=(1, 9, 11, 8), conv=(conv,)), PLANS["documented"]))


def signed(conv: Conv2d) -> Conv2d:
    """Return a conv whose results have a sign, each code 128 less."""
    how = conv.requantize
    assert how
    clamp = how.clamp and (how.clamp[0] - 128, how.clamp[1] - 128)
    return replace(conv, requantize=replace(how, zero_point=how.zero_point - 128, clamp=clamp))


SIGNED = replace(CHAIN, dtype="int8", zero_point=-15)


@pytest.mark.simulator
@pytest.mark.parametrize("is_signed", [False, True])
def test_results_are_looked_up(is_signed: bool) -> None:
    """Behind HVX's narrowing, and behind a convert."""
    chain = replace(SIGNED, conv=tuple(map(signed, LOOKED_UP))) if is_signed else replace(CHAIN, conv=tuple(LOOKED_UP))
    check(Case("tables", chain, PLANS["documented"]))


@pytest.mark.simulator
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("hows", [(HOW, HOW), pytest.param((FAST, CUT), marks=pytest.mark.deep)])
def test_int8_goes_through_the_engine_by_its_first_bit(hows: tuple[Requantize, Requantize], plan: Plan) -> None:
    """Flipped on the way in, by a copy of HVX, and between convs; the output has its sign again, as has its fringe."""
    convs = tuple(signed(replace(CONV, requantize=how)) for how in hows)
    check(Case("signed", replace(SIGNED, conv=convs), plan))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_first_bit_of_int8_is_flipped_in_vectors(plan: Plan) -> None:
    """A loop over single bytes takes four packets a byte."""
    convs = tuple(signed(replace(CONV, requantize=HOW)) for _ in range(2))
    lowered = lower_case(Case("signed", replace(SIGNED, input=(1, 24, 24, 64), conv=convs), plan))
    flips = list(all_of(lowered.module, tirx.BitwiseXor))
    assert not [each for each in flips if each.ty.dtype == "int8"]


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("dtype", "zeros", "kernels"),
    [("int8", (5, -128), [2, 3]), pytest.param("uint8", (0, 131), [3, 2], marks=pytest.mark.deep)],
)
def test_what_a_zero_point_takes_off_stands_in_further_kernels(
    dtype: Dtype, zeros: tuple[int, int], kernels: list[int]
) -> None:
    """One more, or two where one byte can't hold it; in groups, too."""
    first, second = (replace(CONV, filter_zero_point=zero) for zero in zeros)
    chain = replace(CHAIN, filter_dtype=dtype, conv=(first, replace(second, groups=5)))
    assert [kernel_copies(chain, index) for index in range(2)] == kernels
    check(Case("zero points", chain, PLANS["documented"]))


@pytest.mark.simulator
@pytest.mark.parametrize("dilation", [(2, 1), (2, 2), pytest.param((3, 2), marks=pytest.mark.deep), (1, 3)])
def test_dilated_taps_are_exact(dilation: tuple[int, int]) -> None:
    """One packet for all taps, for a row, or for each tap."""
    conv = replace(CONV, kernel=(3, 3), dilation=dilation)
    check(Case("dilated", replace(CHAIN, input=(1, 19, 11, 40), conv=(conv,)), PLANS["rings, overlapped"]))


STEM = replace(CONV, out_channels=10, kernel=(7, 7), stride=(2, 2), padding=Padding(top=3, left=3, bottom=3, right=3))
DOWN = replace(CONV, out_channels=10, stride=(2, 2))
STRIDED = {
    "stem": ((1, 35, 7, 3), (STEM, replace(DOWN, kernel=(1, 1), padding=Padding()))),
    "behind others": ((1, 13, 19, 10), (replace(DOWN, stride=(1, 1)), replace(DOWN, requantize=CUT))),
    "narrow": ((1, 16, 7, 18), (replace(CONV, kernel=(2, 2), stride=(2, 1), padding=Padding(), requantize=FAST),)),
    "dilated": ((2, 19, 38, 10), (replace(DOWN, dilation=(3, 2)), replace(DOWN, kernel=(2, 2), stride=(1, 3)))),
}


SHALLOW = replace(CONV, requantize=FAST)
GROUPED = {
    "separable": ((1, 10, 12, 40), (replace(DOWN, out_channels=40, groups=40), replace(DOWN, kernel=(1, 1)))),
    "in blocks": ((1, 10, 12, 20), (replace(CONV, out_channels=72), replace(SHALLOW, groups=3, out_channels=48))),
    "wide": ((1, 9, 9, 96), (replace(CONV, groups=2, out_channels=96),)),
}


def drawn_groups(number: int) -> Case:
    """Draw a conv in groups whose blocks of outputs read fewer blocks of inputs than there are."""
    draw = Seeded(SEED, number)
    while True:
        inputs, outputs, groups = draw.size(24), draw.size(24), draw.number(2, 80)
        if not 32 < inputs * groups <= 160 or outputs * groups > 160:
            continue
        conv = replace(CONV, kernel=(1, 2), padding=Padding(), out_channels=outputs * groups, groups=groups)
        chain = replace(CHAIN, input=(1, 3, 5, inputs * groups), conv=(conv,))
        diagonal = engine_diagonal(chain, 0)
        is_filled_up = without_groups(chain) != chain  # on HVX
        if diagonal and diagonal.width < diagonal.planes and is_filled_up == bool(number % 2):
            return Case(f"groups-{number}", chain, Plan(kernel="hmx"))


@pytest.mark.simulator
@pytest.mark.parametrize("number", one_in(3, range(24)))
def test_drawn_groups_multiply_the_blocks_that_they_read(number: int) -> None:
    """Whether HVX would keep the groups or fill them up with zeros."""
    check(drawn_groups(number))


@pytest.mark.simulator
@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.deep] * (each == "wide")) for each in GROUPED])
def test_groups_multiply_blocks_around_the_diagonal(name: str) -> None:
    """Depthwise with a stride, groups of 24 inputs that blocks of 32 cut, and two of 48."""
    size, convs = GROUPED[name]
    case = Case(name, replace(CHAIN, input=size, conv=convs), replace(PLANS["rings, overlapped"], k_split=1))
    check(case)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "plan"),
    one_in(3, product(("narrow", "stem", "dilated", "behind others"), PLANS)),
)
def test_strides_are_exact_in_phase_images(name: str, plan: str) -> None:
    """Chains as networks have them: tensors in 4x4 and in 2x2 images, of which a 1x1 kernel reads one."""
    size, convs = STRIDED[name]
    check(Case(name, replace(CHAIN, input=size, conv=convs), replace(PLANS[plan], k_split=1, h_split=1)))


FEWER_READ = {
    "of a kernel smaller than its stride": ((1, 32, 41, 8), (replace(DOWN, kernel=(1, 5), stride=(3, 3)),)),
    "of a conv in between": (
        (2, 40, 30, 3),
        (replace(CONV, kernel=(4, 3)), replace(DOWN, kernel=(5, 2), stride=(2, 3), dilation=(1, 3))),
    ),
    "of one column": (
        (1, 40, 4, 8),
        (replace(DOWN, kernel=(5, 1), stride=(3, 2)), replace(DOWN, kernel=(5, 1), stride=(2, 2))),
    ),
}


@pytest.mark.parametrize("halo", ["recompute", "roll"])
@pytest.mark.parametrize("name", FEWER_READ)
def test_phases_that_nothing_reads_are_not_copied(name: str, halo: Halo) -> None:
    """Nor computed, nor stored: phases of rows and of columns apart, each up to the last one that is read."""
    size, convs = FEWER_READ[name]
    free = tuple(replace(conv, padding=Padding()) for conv in convs)
    case = Case(name, replace(CHAIN, input=size, conv=free), Plan(kernel="hmx", order="h_outer", halo=halo))
    assert counted_as_predicted(case, lower_case(case)) == []
    tensors = tensor_extents(in_phases(case.chain, "hmx"))
    assert any(len(tensor.images) < prod(tensor.phases) for tensor in tensors)


def test_a_conv_whose_results_lie_behind_what_is_read_goes_to_hvx() -> None:
    """The last conv reads rows 0 to 18 of 21, and only row 20 is made of the row that the first conv has."""
    first, second = replace(CONV, kernel=(4, 1), dilation=(2, 1), padding=Padding()), replace(CONV, kernel=(4, 1))
    last = replace(CONV, kernel=(2, 1), stride=(3, 1), dilation=(2, 1), padding=Padding(top=8))
    convs = (first, replace(second, padding=Padding(top=23)), last)
    choices = choose_kernels(replace(CHAIN, input=(1, 7, 4, 4), conv=convs), Plan(kernel="hmx"), "hexagon")
    assert {choice.used for choice in choices} == {"hvx"}
    assert any("chain.conv[1] reads padding alone" in choice.why for choice in choices)


@pytest.mark.parametrize("stride", [(2, 1), (1, 2)])
def test_a_conv_of_which_nothing_is_read_goes_to_hvx(stride: tuple[int, int]) -> None:
    """Its one pixel lies in a phase image that no tap reads: all outputs of the next conv come of padding."""
    one = replace(CONV, kernel=(1, 1), padding=Padding())
    convs = (one, replace(one, stride=stride, padding=Padding(top=stride[0] - 1, left=stride[1] - 1)))
    choices = choose_kernels(replace(CHAIN, input=(1, 1, 1, 40), conv=convs), Plan(kernel="hmx"), "hexagon")
    assert {choice.used for choice in choices} == {"hvx"}
    assert any("convs that read an element; chain.conv[1] reads padding alone" in choice.why for choice in choices)


def test_phases_between_those_that_are_read_are_made_of_what_is_stored() -> None:
    """Of phases 0, 1, 2 the second conv reads 0 and 2; the first makes 1 too, and reads phase 5 for it."""
    first = replace(CONV, kernel=(2, 1), stride=(2, 1), dilation=(3, 1), padding=Padding())
    second = replace(CONV, kernel=(2, 1), stride=(3, 1), dilation=(2, 1), padding=Padding())
    case = Case("between", replace(CHAIN, input=(1, 60, 5, 40), conv=(first, second)), Plan(kernel="hmx"))
    assert counted_as_predicted(case, lower_case(case)) == []
    assert tensor_extents(in_phases(case.chain, "hmx"))[0].last_phase == (5, 0)


def narrow(number: int) -> Chain:
    """Draw a conv of one or two columns before one with strides, which pads them."""
    draw = Seeded(SEED, number)
    across, apart = draw.number(2, 4), draw.number(1, 2)
    first = replace(CONV, kernel=(draw.number(1, 3), across), dilation=(1, apart), padding=Padding())
    padding = Padding(**{side: draw.number(0, 2) for side in ("top", "left", "bottom", "right")})
    columns = draw.number(1, 2)
    kernel, stride = (draw.number(1, 2), draw.number(1, columns)), draw.one_of((2, 1), (3, 1), (1, 2), (2, 2))
    size = (draw.number(8, 24), columns + (across - 1) * apart)
    convs = (first, replace(CONV, kernel=kernel, stride=stride, padding=padding))
    return replace(CHAIN, input=(1, *size, 3), conv=convs)


@pytest.mark.parametrize("number", range(16))
def test_images_of_few_columns_are_read_whole(number: int) -> None:
    case = Case(f"narrow-{number}", narrow(number), Plan(kernel="hmx"))
    assert case.kernels[0].used != "hmx" or counted_as_predicted(case, lower_case(case)) == []


@pytest.mark.simulator
def test_images_of_one_column_are_exact() -> None:
    first = replace(CONV, kernel=(5, 4), dilation=(1, 2), padding=Padding())
    second = replace(CONV, kernel=(2, 1), stride=(3, 1), padding=Padding(top=2, left=1, bottom=1, right=1))
    check(Case("column", replace(CHAIN, input=(1, 22, 7, 3), conv=(first, second)), Plan(kernel="hmx")))


@pytest.mark.parametrize("number", one_in(8, range(64)))
def test_drawn_cases_are_counted_as_predicted(number: int) -> None:
    """Bytes and multiply-accumulates of every stride, phase and plan; nothing runs."""
    case = random_case(SEED, number, "hmx")
    assert case.kernels[0].used != "hmx" or counted_as_predicted(case, lower_case(case)) == []


@pytest.mark.simulator
def test_its_converts_are_those_of_the_formula() -> None:
    """A relu, which a convert has, and a clamp per channel, which it hasn't; `check` wants numpy's formula exactly."""
    check(Case("converted", CONVERTED, PLANS["rings, overlapped"]))


@pytest.mark.simulator
@pytest.mark.deep
@pytest.mark.parametrize("number", range(CASES))
def test_drawn_cases_are_exact(number: int) -> None:
    """Kernels up to 8x8, few and many channels, batches, all roundings, every plan of the nest."""
    case = drawn_case(Seeded(SEED, number), OF_ENGINE, f"hmx-{number}")
    if case.kernels[0].used != "hmx":
        assert case.kernels[0].why.startswith("hmx serves")
        return
    fit = vtcm_fit(case.chain, case.settled)
    assert fit.crosses_lines == bool(crosses_lines(Planned.of(case).blocks).any())
    if fit.fits:
        check(case)
        return
    if fit.gap_bytes > 0:
        with pytest.raises(RunFailed):
            check(case)
        return
    # A plan is refused where a pair of croutons could lie on both sides; those tiles may hold no output.
    failed = ""
    try:
        check(case)
    except RunFailed as error:
        failed = str(error)
    assert not failed or "on both sides of a line" in failed


WORDS = Conv2d(out_channels=8, requantize=replace(HOW, zero_point=0))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (
            Chain(input=(1, 8, 8, 8), dtype="int16", filter_dtype="int8", conv=(WORDS,)),
            "hmx serves uint8 and int8 chains, this one is int16",
        ),
        (
            replace(CHAIN, conv=(replace(CONV, stride=(3, 1)),) * 2),
            "strides whose product is 8 at most; from chain.conv",
        ),
        (replace(CHAIN, conv=(CONV, replace(CONV, requantize=None))), "hmx serves convs that are requantised"),
    ],
    ids=["dtype", "stride", "sums"],
)
def test_what_it_does_not_serve_goes_to_hvx_and_says_why(changed: Chain, why: str) -> None:
    choices = choose_kernels(changed, Plan(kernel="hmx"), "hexagon")
    assert {choice.used for choice in choices} == {"hvx"}
    assert any(why in choice.why for choice in choices)
    assert all(choice.why.startswith("hmx serves") for choice in choices)


def test_hvx_refuses_converts_and_plain_computes_them() -> None:
    conv = Conv2d(out_channels=3, requantize=replace(FAST, clamp=None, zero_point=-9))
    chain = Chain(input=(1, 9, 9, 5), dtype="int8", conv=(conv,))
    (choice,) = choose_kernels(chain, Plan(kernel="hvx"), "hexagon")
    assert choice.used == "plain"
    assert "hvx requantises exactly; chain.conv[0] asks for the convert of the matrix engine" in choice.why
    case = Case("plain", chain, Plan(kernel="plain"))
    run = run_case(case, lower_case(case), runner_of(case, "llvm"))
    assert run.check.passed
    assert run.from_exact
    assert run.from_exact.most <= 1
    per_channel = replace(FAST, clamp=None, zero_point=-9, multiplier="per_channel")
    channels = replace(chain, conv=(replace(chain.conv[0], requantize=per_channel),))
    with pytest.raises(Unsupported, match="for one multiplier, not for one a channel"):
        lower_case(Case("channels", channels, Plan(kernel="plain")))


@SIMULATOR
@pytest.mark.parametrize(
    ("kernel", "target", "number"), one_in(5, [(*ran, number) for ran in RAN_BY for number in range(10)])
)
def test_converts_of_any_scale_are_numpys(kernel: Kernel, target: Target, number: int) -> None:
    """Multipliers are drawn by their logarithms: at one end all sums saturate, at the other none leaves a code."""
    draw = Seeded(SEED, number)
    dtype: Dtype = draw.one_of("uint8", "int8")
    convs = [
        Conv2d(
            out_channels=draw.number(1, 9),
            kernel=(draw.number(1, 3), draw.number(1, 3)),
            requantize=Requantize(
                multiplier=draw.size(2**31 - 1),
                shift=draw.number(-12, 12),
                zero_point=draw.number(*INTEGER_RANGE[dtype]),
                rounding=draw.one_of(*ROUNDINGS),
                engine="fast",
            ),
        )
        for _ in range(2)
    ]
    chain = Chain(input=(1, 9, 9, 5), dtype=dtype, filter_dtype="int8", conv=tuple(convs))
    case = Case(f"drawn-{number}", chain, Plan(kernel=kernel))
    assert {choice.used for choice in case.kernels} == {kernel}
    assert run_case(case, lower_case(case), runner_of(case, target)).check.passed


def test_nobody_gets_it_unasked() -> None:
    """It never ran on hardware."""
    assert {choice.used for choice in choose_kernels(CHAIN, None, "hexagon")} == {"hvx"}


@pytest.mark.simulator
def test_the_best_plan_is_placed_and_runs() -> None:
    """The grid's packets of the engine are those that the run counts; the least time has no more than others."""
    question = Question(1 << 20, "time", Plan(kernel="hmx"), "hexagon")
    found = best_plan(CHAIN, question)
    assert found.best
    case = Case("best", CHAIN, found.best.plan)
    check(case)
    assert found.best.footprint_bytes == vtcm_fit(CHAIN, case.settled).demand_bytes
    documented = figures_of(CHAIN, settled(CHAIN, PLANS["documented"]), rates("v68"))
    assert found.best.latency_packets <= documented.latency_packets


def test_no_plan_has_operands_on_both_sides_of_a_line() -> None:
    """A slab of 136 KiB and the one below it don't fit into a line; one conv of 1x1 reads no crouton below."""
    conv = Conv2d(out_channels=32, kernel=(3, 3), requantize=HOW)
    chain = Chain(input=(1, 34, 136, 128), dtype="uint8", filter_dtype="int8", conv=(conv,))
    plan = Plan(kernel="hmx", order="h_outer", storage="vtcm")
    assert crosses_lines(Planned(chain, plan).blocks).all()
    assert not crosses_lines(Planned(replace(chain, conv=(replace(conv, kernel=(1, 3)),)), plan).blocks).any()
    found = best_plan(chain, Question(8 << 20, "time", Plan(kernel="hmx"), "hexagon"))
    assert found.best is None
    assert "lie on both sides of a line of 262144: lower stripes" in str(misfit(Case("wide", chain, plan)))


def test_taps_go_one_by_one_where_a_line_ends_inside_of_a_packet() -> None:
    """The law, packet by packet: a cache larger than a line begins with one, its kernels one behind the other."""
    random, seen = np.random.default_rng(3), set[tuple[bool, bool]]()
    for _ in range(200):
        (rows, columns), (down, right) = random.integers(1, 6, 2).tolist(), random.integers(1, 4, 2).tolist()
        stride = (1, int(random.integers(1, 3)))
        dilation = (down if (rows - 1) * down < 8 else 1, right if (columns - 1) * right < 8 else 1)
        shape = {"kernel": (rows, columns), "dilation": dilation, "stride": stride, "padding": Padding()}
        inputs, outputs = (random.integers(1, 17, 2) * 32).tolist()
        conv = replace(CONV, out_channels=outputs, **shape)
        chain = replace(CHAIN, input=(1, conv.reach[0], conv.reach[1], inputs), conv=(conv,))
        plan = Plan(kernel="hmx", filters="resident", storage="vtcm")
        size, images = prod(chain.filter_shapes[0]), stride
        begins = [kernel * 1024 for kernel in range(0, size // 1024, rows * columns)]
        spans = [(at + each.first * 1024, each.taps) for at in begins for each in tap_packets(conv, images)]
        cuts = [taps for at, taps in spans if at // LINE_BYTES < (at + taps * 1024 - 1) // LINE_BYTES]
        more = sum(taps - 1 for taps in cuts) if size > LINE_BYTES else 0
        assert engine_packets(Planned(chain, plan).blocks).of_one.multiplies == len(spans) + more
        assert not crosses_lines(Planned(chain, plan).blocks).any()
        if size > LINE_BYTES:
            seen.add((more > 0, LINE_BYTES % (rows * columns * 1024) > 0))
    assert seen == {(False, False), (False, True), (True, True)}


@pytest.mark.simulator
@pytest.mark.parametrize("kernel", [(3, 2), (3, 3)])
@pytest.mark.parametrize("filters", ["resident", "per_tile"])
def test_kernels_lie_across_a_line(kernel: tuple[int, int], filters: Filters) -> None:
    """Packets of 2 taps of 3x2 end with the first line; of 9 taps a line ends inside of some, whose taps go by one."""
    dilation = (3, 1) if kernel == (3, 2) else (1, 1)
    conv = replace(CONV, out_channels=224, kernel=kernel, dilation=dilation, padding=Padding(), requantize=FAST)
    chain = replace(CHAIN, input=(1, 9, 17, 256), conv=(conv,))
    case = Case("across", chain, Plan(kernel="hmx", filters=filters, k_split=6, storage="vtcm"))
    kernels, (packets,) = 7 * 8, {len(tap_packets(conv))}
    check(case)
    assert (engine_packets(Planned.of(case).blocks).of_one.multiplies > 3 * kernels * packets) == (kernel == (3, 3))


def test_two_slots_of_weights_that_lines_cut_differently_are_refused() -> None:
    conv = replace(CONV, out_channels=64, kernel=(3, 3), requantize=FAST)
    chain = replace(CHAIN, input=(1, 9, 9, 512), conv=(conv,))
    plan = Plan(kernel="hmx", buffering="double", storage="vtcm")
    assert crosses_lines(Planned(chain, plan).blocks).any()
    assert not crosses_lines(Planned(chain, replace(plan, filters="resident")).blocks).any()


def test_caches_outside_of_vtcm_are_refused() -> None:
    with pytest.raises(InputError, match=r'^plan.storage: got "filters" with kernel = "hmx"'):
        Plan(kernel="hmx", storage="filters")
    with pytest.raises(InputError, match=r'^plan.arch: got "v66" with kernel = "hmx"; expected "v68" or later'):
        Plan(kernel="hmx", arch="v66")


def test_bytes_of_sums_come_out_of_the_tables() -> None:
    """A store by table p gives byte p of a sum and of what the table adds."""
    random = np.random.default_rng(1)
    offsets = random.integers(-(2**20), 2**20, 64).astype(np.int32)
    for place, channel in ((0, 3), (1, 63), (2, 32), (3, 17)):
        low, high = table_word(EXPONENTS[place], WHOLE_SCALE), int(offsets[channel]) & 0xFFFFFFFF
        for total in random.integers(-(2**28), 2**28, 50).tolist():
            expected = (total + int(offsets[channel])) >> 8 * place & 255
            assert stored(np.array(total), high << 32 | low, saturates=False) == expected


def test_buffers_keep_clear_of_lines() -> None:
    """Each that fits into a line lies in one: the law, by another way to place them."""
    random = np.random.default_rng(2)
    for _ in range(300):
        rooms = (random.integers(1, 300, random.integers(1, 7)) * 2048).tolist()
        ends = dict[int, int]()
        for room in sorted(rooms, reverse=True):
            used = 1 + max(ends, default=-1)
            line = next((at for at in range(used) if ends.get(at, 0) + room <= LINE_BYTES), used)
            if room <= LINE_BYTES:
                ends[line] = ends.get(line, 0) + room
                continue
            whole, rest = divmod(room, LINE_BYTES)
            ends |= dict.fromkeys(range(used, used + whole), LINE_BYTES) | ({used + whole: rest} if rest else {})
        assert clear_of_lines(rooms) == max(at * LINE_BYTES + end for at, end in ends.items())


def test_a_library_has_the_words_that_the_table_reads() -> None:
    """Each packet that the lowered chain calls, once; caches lie where the fit counts them."""
    wide = replace(CONVERTED, input=(1, 18, 21, 40))  # with croutons that have one beside them, and some that have none
    case = replace(Case("engine", wide, PLANS["rings, overlapped"]), target="hexagon")
    made = built_chain(case, random_tensors(case.chain), "engine", "hexagon", "v73")
    assert made.built.vtcm_bytes == vtcm_fit(case.chain, case.settled).demand_bytes
    code = made.files["engine.o"]
    words = np.frombuffer(code[: len(code) // 4 * 4], "<u4").tolist()
    store = "{ mxmem(r0,r1):%s:cm:sat.ub = acc }"
    assert sorted(packets(words)) == sorted(
        [
            "{ mxclracc }",
            "{ bias = mxmem2(r0) }",
            "{ activation.ub(r0,r2):cm; weight.b(r3,r4) }",
            "{ activation.ub(r0,r2):single:cm; weight.b(r3,r4) }",
            store % "before",
            store % "after:retain",
        ]
    )


def test_a_library_runs_on_the_model(tmp_path: Path) -> None:
    """What is shipped is linked once more: functions that go to the model take the place of its words."""
    chain = replace(CHAIN, input=(1, 9, 10, 40), output_layout="NHWC")
    case = Case("library", chain, replace(PLANS["rings, overlapped"], storage="vtcm"))
    simulator = Simulator(slots=False)
    tensors = random_tensors(chain, SEED)
    made = built_chain(case, tensors, "library", "hexagon", simulator.isa or find_qemu().isa)
    for name, content in {**made.files, **platform_files()}.items():
        (tmp_path / name).write_bytes(content)
    ran = simulated_chain(tmp_path, made.built, tensors.image, simulator)
    assert ran.engine
    assert ran.engine.packets == engine_packets(Planned.of(case).blocks).of_one
    assert ran.outputs[0].tobytes() == made.files["library.output.bin"]


def test_functions_of_packets_are_those_of_the_model() -> None:
    """The harness declares a function for each, and the words read back as what its name says."""
    text = (resources.files("hexconv.run.simulator") / "harness" / "engine.h").read_text()
    named = set(re.findall(r"each\((\w+),", text)) | set(re.findall(r"int32_t hexconv_hmx_(\w+)\(", text))
    assert named - {"name"} == set(LEAVES)
    for name, leaf in LEAVES.items():
        *others, text = packets(leaf.words)
        assert len(others) == (7 if name.startswith("store_bytes") else 0)
        if name.startswith("store_bytes"):
            # Every store but the last keeps the sums for the next byte.
            kept = text.replace(":after:cm", ":after:retain:cm").replace(":before:cm", ":before:retain:cm")
            assert others == ["{ bias = mxmem2(r2) }", kept] * 3 + ["{ bias = mxmem2(r2) }"]
        if name.startswith("store"):
            said = [word for word in ("before", "after", "retain", "sat") if word in name]
            assert [word for word in ("before", "after", "retain", "sat") if f":{word}" in text] == said
        if name.startswith("multiply"):
            modes = name.split("_")[1:] or ["all", "all"]
            rows, columns = ("" if mode == "all" else f":{mode}" for mode in modes)
            assert text == f"{{ activation.ub(r0,r2){rows}:cm; weight.b(r3,r4){columns} }}"


def test_places_are_those_that_are_counted() -> None:
    random = np.random.default_rng(5)
    for _ in range(300):
        rooms = (random.integers(1, 300, random.integers(1, 7)) * 2048).tolist()
        ends = [place + room for place, room in zip(placed_clear_of_lines(rooms), rooms, strict=True)]
        assert max(ends) == clear_of_lines(rooms)
        spans = sorted(zip(placed_clear_of_lines(rooms), ends, strict=True))
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
        assert all(
            room > LINE_BYTES or begin // LINE_BYTES == (end - 1) // LINE_BYTES
            for (begin, end), room in zip(spans, [e - b for b, e in spans], strict=True)
        )
