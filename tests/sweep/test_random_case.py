"""The draw is fair, complete and the same for everybody."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze.block_grid import engine_packets
from hexconv.analyze.planned import Planned
from hexconv.compute.computable import check_supported
from hexconv.kernel.engine import kernel_copies
from hexconv.lower import lower_case
from hexconv.run.fills import FILLS, fills_of_run, tensor_names
from hexconv.spec import Case, Conv2d, kernel_of, tensor_extents
from hexconv.spec.dtypes import FILTER_DTYPES, ZERO_POINTS
from hexconv.spec.knobs import Arch
from hexconv.spec.phases import in_phases
from hexconv.spec.places import MIXED
from hexconv.sweep.judging import RUNS
from hexconv.sweep.random_case import drawn_case, random_case
from hexconv.sweep.random_chains import EVERYTHING, QUICK_OF_ENGINE, Seeded, is_supported
from tests.deep import one_in
from tests.draws import LOWERED


@cache
def drawn(seed: int, index: int) -> Case:
    """A case as it is drawn, before the search answers some in place of it."""
    return drawn_case(Seeded(seed, index), EVERYTHING, f"random-{seed}-{index}")


@pytest.fixture(scope="module")
def drawn_cases() -> list[Case]:
    return [drawn(1, index) for index in range(900)]  # which another test draws, too


@LOWERED  # some are searched
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_a_case_has_a_generator_of_its_own(seed: int, index: int) -> None:
    case = random_case(seed, index)
    assert case == random_case(seed, index)
    assert case != random_case(seed, index + 1)
    assert case != random_case(seed + 1, index)
    assert Case.parse(case.to_toml(), case.name) == case


def features(case: Case) -> Iterator[str]:
    """What of the scope a case covers."""
    chain, plan, outputs = case.chain, case.plan, tensor_extents(case.chain)[1:]
    yield from (plan.order, plan.halo, plan.filters, f"{plan.kernel} kernel", f"{plan.threads} threads")
    if plan.storage != "global":
        yield from (f"VTCM of {plan.arch}", "VTCM of a plan" if plan.vtcm_bytes else "VTCM of an architecture")
    yield from (chain.dtype, plan.storage, f"{len(chain.conv)} convs", f"batch {chain.input[0]}")
    for axis, size in zip(("height", "width"), chain.input[1:3], strict=True):
        yield f"{axis} {'1' if size == 1 else 'in whole blocks' if size % 8 == 0 else 'with a rest'}"
    for shape in chain.shapes:
        yield f"channels {'1' if shape[3] == 1 else 'in whole blocks' if shape[3] % 32 == 0 else 'with a rest'}"
    for split, most in (
        (plan.k_split, [output.channel_blocks for output in outputs]),
        (plan.h_split, [output.row_blocks for output in outputs]),
    ):
        yield "split in one" if split == 1 else "split in many"
        yield from ("split that leaves a rest" for blocks in most if blocks % split and split < blocks)
    for index, conv in enumerate(chain.conv):
        yield from (f"kernel rows {conv.kernel[0]}", f"kernel columns {conv.kernel[1]}", f"bias {conv.bias}")
        yield from (f"stride {conv.stride}", f"dilation {conv.dilation}", f"activation {conv.activation}")
        sides = {conv.padding.top, conv.padding.left, conv.padding.bottom, conv.padding.right}
        yield f"padding of conv {index}: {'none' if sides == {0} else 'asymmetric' if len(sides) > 1 else 'even'}"
        inputs = chain.filter_shapes[index][1]
        yield "one group" if conv.groups == 1 else "depthwise" if inputs == 1 else "groups"
        if conv.groups > 1:
            yield f"groups of {'whole blocks' if inputs % 32 == 0 else 'other sizes'}"
        if chain.is_integer:
            yield f"{chain.dtype} with {chain.dtype_of_filters} filters"
            yield f"rounding {conv.requantize.rounding if conv.requantize else 'none'}"
            yield f"{chain.dtype_of_filters} filter zero point {'0' if conv.filter_zero_point == 0 else 'other'}"


def test_every_part_of_the_scope_is_drawn(drawn_cases: list[Case]) -> None:
    seen = Counter(feature for case in drawn_cases for feature in set(features(case)))
    pairs = [(rows, columns) for rows in (1, 2, 3) for columns in (1, 2, 3)]
    expected = {
        *("k_outer", "h_outer", "recompute", "roll", "per_tile", "resident", "plain kernel"),
        *("1 threads", "4 threads"),
        *(
            "float32",
            "float16",
            "int8",
            "uint8",
            "int16",
            "global",
            "vtcm",
            "split in many",
            "split that leaves a rest",
        ),
        *(f"{count} convs" for count in (1, 2, 3, 4)),
        *(f"batch {count}" for count in (1, 2, 3, 4)),
        *(
            f"{axis} {kind}"
            for axis in ("height", "width", "channels")
            for kind in ("1", "in whole blocks", "with a rest")
        ),
        *(f"kernel {axis} {size}" for axis in ("rows", "columns") for size in range(1, 8)),
        *(f"{name} {pair}" for name in ("stride", "dilation") for pair in pairs),
        *(f"padding of conv {index}: {kind}" for index in range(4) for kind in ("none", "asymmetric")),
        *("bias True", "bias False", "activation relu", "activation relu6", "activation none"),
        *("one group", "depthwise", "groups", "groups of whole blocks", "groups of other sizes"),
        *(f"{dtype} with {other} filters" for dtype, others in FILTER_DTYPES.items() for other in others),
        *("rounding away", "rounding up", "rounding none"),
        *(f"VTCM of {arch}" for arch in get_args(Arch)),
        *("VTCM of a plan", "VTCM of an architecture"),
        *("int8 filter zero point 0", "int8 filter zero point other", "uint8 filter zero point other"),
    }
    assert {feature: seen[feature] for feature in expected if seen[feature] < 5} == {}


def test_every_kind_of_tensor_gets_every_fill_often(drawn_cases: list[Case]) -> None:
    """The last run of a verdict mixes fills, for each case anew."""
    seen = Counter(
        (name.rstrip("1234"), fill)
        for case in drawn_cases
        for name, fill in zip(tensor_names(case.chain), fills_of_run(case.chain, RUNS - 1, 0), strict=True)
    )
    expected = set(product(("input", "filter", "bias"), FILLS))
    assert {pair: seen[pair] for pair in expected if seen[pair] < len(drawn_cases) / 10} == {}


def test_hardly_anything_is_refused(drawn_cases: list[Case]) -> None:
    assert sum(not is_supported(case.chain) for case in drawn_cases) < len(drawn_cases) / 100


def test_hvx_is_a_third_of_the_integer_cases_and_mostly_serves_them(drawn_cases: list[Case]) -> None:
    integers = [case for case in drawn_cases if case.chain.is_integer]
    asked = [case for case in integers if case.plan.kernel == "hvx"]
    assert 0.25 < len(asked) / len(integers) < 0.4
    assert sum(kernel_of(case.chain, case.plan) == "hvx" for case in asked) > 0.85 * len(asked)


def test_many_chains_have_convs_of_hvx_and_of_plain(drawn_cases: list[Case]) -> None:
    used = [{choice.used for choice in case.kernels} for case in drawn_cases if case.plan.kernel == "hvx"]
    assert sum(kernels == {"hvx", "plain"} for kernels in used) > 0.05 * len(used)


def extremes(case: Case) -> Iterator[str]:
    """The rare of a case, where sizes, steps and numbers are at their ends."""
    chain, plan, kernel = case.chain, case.plan, kernel_of(case.chain, case.plan)
    if chain.input[1:3] == (1, 1):
        yield f"{kernel}: image of one pixel"
    for conv, source, output in zip(chain.conv, chain.shapes, chain.shapes[1:], strict=False):
        yield from (f"{kernel}: {what}" for what in _steps(conv, source, output))
    above = sum(conv.padding.top for conv in chain.conv[1:])
    if above == 8 and chain.shapes[1][1] * chain.conv[0].stride[0] == 8:
        yield f"{kernel}: a block of padding above a part of one"
    if chain.is_integer:
        yield from (f"{kernel}: {what}" for what in _numbers(case))
    yield f"{kernel} in {plan.storage} of {plan.arch}" if plan.storage == "vtcm" else f"{kernel} in {plan.storage}"
    yield f"{kernel}: h_split {'one' if plan.h_split == 1 else 'many'}"


def _steps(conv: Conv2d, source: tuple[int, ...], output: tuple[int, ...]) -> Iterator[str]:
    """Padding and strides."""
    pad, (rows, columns) = conv.padding, conv.reach
    for side, reach in {"top": rows, "left": columns, "bottom": rows, "right": columns}.items():
        if reach < getattr(pad, side) <= 2 * reach:
            yield f"{side} padding beyond the reach"
    if pad.top > source[1] and pad.top > rows:
        yield "padding beyond the image"
    if output[1] > 8 and pad.top >= 7 * conv.stride[0] + rows:
        yield "a first stripe of padding"
    for stride, reach in zip(conv.stride, conv.reach, strict=True):
        if stride > reach:
            yield "a stride that skips"
        if stride > 8:
            yield "a stride that skips stripes"


def _numbers(case: Case) -> Iterator[str]:
    """Zero points, shifts and sums."""
    chain = case.chain
    for conv in chain.conv:
        least, most = ZERO_POINTS[chain.dtype_of_filters]
        for name, end in {"least": least, "next to least": least + 1, "next to most": most - 1, "most": most}.items():
            if most and conv.filter_zero_point == end:
                yield f"filter zero point {name}"
        if conv.requantize and chain.dtype != "int16":
            ends = dict(zip(ZERO_POINTS[chain.dtype], ("least", "most"), strict=True))
            yield f"zero point {ends.get(conv.requantize.zero_point, 'inside')}"
        if conv.requantize and conv.requantize.shift in (-31, 0):
            yield f"shift {conv.requantize.shift}"
        if conv.requantize and conv.requantize.shift == 30:
            yield "shift 30"
    fan_in = prod(chain.filter_shapes[0][1:])
    if fan_in > 10_000:
        yield f"long sums of {chain.dtypes}"


STEPS = (
    *(f"{side} padding beyond the reach" for side in ("top", "left", "bottom", "right")),
    *("image of one pixel", "padding beyond the image", "a first stripe of padding", "a stride that skips"),
    *("a stride that skips stripes", "a block of padding above a part of one"),
)
NUMBERS = (
    *(f"filter zero point {end}" for end in ("least", "next to least", "next to most", "most")),
    *("zero point least", "zero point most", "shift -31", "shift 0"),
    *(f"long sums of {dtypes}" for dtypes in ("uint8", "uint8xint8", "int8", "int8xuint8")),
)


@pytest.mark.parametrize("seed", one_in(3, [1, 2, 3]))
def test_every_extreme_is_drawn_for_every_kernel_in_any_2000_cases(seed: int) -> None:
    seen = Counter(what for index in range(2000) for what in set(extremes(drawn(seed, index))))
    expected = {
        *(f"{kernel}: {what}" for kernel in ("plain", "hvx") for what in STEPS),
        *(f"{kernel}: {what}" for kernel in ("plain", "hvx") for what in NUMBERS),
        *(f"{kernel}: h_split {count}" for kernel in ("plain", "hvx") for count in ("one", "many")),
        *(f"{kernel} in {storage}" for kernel in ("plain", "hvx") for storage in MIXED),
        *("plain in vtcm of v66", "hvx in vtcm of v68", "hvx in vtcm of v75", "hvx in global", "plain: shift 30"),
    }
    assert {what: seen[what] for what in expected if not seen[what]} == {}


def features_of_engine(case: Case) -> Iterator[str]:
    """What of the matrix engine a case covers."""
    chain, plan = case.chain, case.plan
    yield from (chain.dtype, f"{chain.dtype_of_filters} filters", plan.order, plan.halo, plan.filters, plan.buffering)
    yield from (f"{len(chain.conv)} convs", "one image" if chain.input[0] == 1 else "several images")
    phases = tensor_extents(in_phases(chain, "hmx"))[:-1]
    yield from ("phases left out" for each in phases if each.last_phase < (each.phases[0] - 1, each.phases[1] - 1))
    for index, conv in enumerate(chain.conv):
        yield f"{kernel_copies(chain, index)} kernels"
        yield f"{'one' if conv.groups == 1 else 'several'} groups"
        yield f"stride {'1' if conv.stride == (1, 1) else '2 or more'} of conv {index}"
        yield from (f"dilation {each}" for each in conv.dilation)
        yield from (f"kernel {each}" for each in conv.kernel)
        assert conv.requantize
        yield f"{conv.requantize.engine} requantisation"


def test_cases_for_the_matrix_engine_are_of_every_kind_and_small() -> None:
    cases = [random_case(3, index, "hmx") for index in range(400)]
    served = [case for case in cases if case.kernels[0].used == "hmx"]
    assert len(served) > 340
    most = [engine_packets(Planned.of(case).blocks).of_one for case in served]
    assert max(packets.taps for packets in most) <= QUICK_OF_ENGINE.taps
    seen = Counter(feature for case in served for feature in set(features_of_engine(case)))
    expected = {
        *("uint8", "int8", "uint8 filters", "int8 filters", "k_outer", "h_outer", "roll", "recompute", "resident"),
        *("single", "double", "one image", "several images", "phases left out", "1 convs", "3 convs"),
        *(f"{number} kernels" for number in (1, 2, 3)),
        *("one groups", "several groups", "stride 2 or more of conv 0", "stride 2 or more of conv 2"),
        *(f"dilation {number}" for number in (1, 2, 3)),
        *(f"kernel {number}" for number in range(1, 8)),
        *("fast requantisation", "exact requantisation"),
    }
    assert {what: seen[what] for what in expected if seen[what] < 3} == {}


def test_no_case_for_the_matrix_engine_is_refused() -> None:
    """What the engine doesn't serve goes to plain, with its convert for one multiplier and less room for sums."""
    for case in (random_case(5001, index, "hmx") for index in range(150)):
        check_supported(case.chain)
        if {choice.used for choice in case.kernels} != {"hmx"}:
            lower_case(case)


def test_some_cases_are_answers_of_the_search() -> None:
    differ = [case for case in (random_case(5, index) for index in range(40)) if case != drawn(5, int(case.name[9:]))]
    assert differ
    assert all(case.plan.kernel == "hvx" for case in differ)


def test_a_case_is_drawn_within_the_smallest_scope() -> None:
    """Where the padding alone makes too many rows, it is left out at last."""
    scope = replace(QUICK_OF_ENGINE, taps=256)
    for index in range(244, 266):
        case = drawn_case(Seeded(1, index), scope, f"small-{index}")
        if case.settled.kernel == "hmx":
            assert engine_packets(Planned.of(case).blocks).of_one.taps <= scope.taps
