"""Bounds of sums against sums: tensors that reach the ends, evaluated exactly, step by step of each kernel."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import example, given
from hypothesis import strategies as st
from tvm import tirx
from tvm.sym import Analyzer

from hexconv.compute import te
from hexconv.compute.reference import Array, convolution, requantized
from hexconv.spec import Chain, Conv2d, Padding, Requantize, ranges
from hexconv.spec.case import sums_by_channel
from hexconv.spec.dtypes import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS
from hexconv.spec.narrowing import FixedPoint, narrowing_of, narrowing_to_halfwords
from hexconv.spec.ranges import (
    MOST_ADDED,
    SATURATE,
    Arithmetic,
    Step,
    bias_limit,
    narrowing_at,
    raised_sums,
    requantisation_steps,
    sums_refusal,
    window_products,
)
from hexconv.spec.requantize import PER_CHANNEL
from tests.schedule.instructions import to_bytes, to_halfwords, words

INT32 = (-(2**31), 2**31 - 1)
MOST_CHANNELS = {"int16": 600}
"""Some more than int32 holds the products of."""
SATURATIONS = st.one_of(st.none(), st.sampled_from([1, 2**28, 2**29, 2**31 - 1]), st.integers(1, 2**31 - 1))


@st.composite
def convs_of_integers(draw: st.DrawFn) -> Chain:
    """One conv, its fan-in up to what overflows, zero points and shifts at their ends as often as between them."""
    dtype = draw(st.sampled_from(("uint8", "int8", "int16")))
    filter_dtype = draw(st.sampled_from(FILTER_DTYPES[dtype]))
    requantize = Requantize(
        multiplier=draw(st.one_of(st.integers(1, 30).map(lambda bit: 1 << bit), st.integers(1, 2**31 - 1))),
        shift=draw(st.one_of(st.integers(-15, 0), st.integers(-31, 30))),
        zero_point=draw(_ends_or_between(*ZERO_POINTS[dtype])),
        rounding=draw(st.sampled_from(("away", "up", "even"))),
        saturates_at=draw(SATURATIONS),
    )
    requantize = replace(requantize, fraction_bits=draw(_places(requantize)))
    shifts = (min(requantize.shift, 0),) if requantize.fraction_bits else (PER_CHANNEL, min(requantize.shift, 0))
    by_channel = [replace(requantize, multiplier=PER_CHANNEL, shift=shift) for shift in shifts]
    bias = draw(st.booleans())
    conv = Conv2d(
        out_channels=1,
        kernel=draw(st.sampled_from([(1, 1), (1, 1), (2, 3)])),
        dilation=draw(st.sampled_from([(1, 1), (2, 1)])),
        padding=Padding(**{side: draw(st.integers(0, 4)) for side in ("top", "left", "bottom", "right")}),
        bias=bias,
        filter_zero_point=draw(_ends_or_between(*ZERO_POINTS[filter_dtype])),
        filter_l1=draw(st.one_of(st.none(), st.integers(1, 2**24))),
        bias_limit=draw(st.one_of(st.none(), st.integers(0, 2**31 - 1))) if bias else None,
        sum_limit=draw(st.one_of(st.none(), st.integers(2**30 - 9, 2**32), st.integers(0, 2**33))),
        requantize=draw(st.sampled_from((None, requantize, requantize, requantize, *by_channel))),
    )
    size = draw(st.sampled_from([(1, 1), (3, 3)]))
    if conv.kernel != (1, 1) and size == (1, 1):
        conv = replace(conv, padding=Padding(top=4, left=4, bottom=4, right=4))
    most = MOST_CHANNELS.get(dtype, 140_000 if size == conv.kernel == (1, 1) else 24_000)
    if conv.kernel == (1, 1):
        conv = replace(conv, padding=Padding())
    channels = draw(st.one_of(st.integers(1, 64), st.integers(1, most)))
    zero_point = draw(_ends_or_between(*ZERO_POINTS[dtype]))
    image = (1, *size, channels)
    return Chain(input=image, dtype=dtype, filter_dtype=filter_dtype, zero_point=zero_point, conv=(conv,))


def _places(how: Requantize) -> st.SearchStrategy[int | None]:
    """The binary places that a product may be rounded to first, near the fewest as often as not."""
    assert isinstance(how.shift, int)
    least, most = max(1, -how.shift), 30 - max(0, how.shift)
    if how.rounding != "even" or least > most:
        return st.none()
    return st.one_of(st.none(), st.integers(least, min(least + 3, most)), st.integers(least, most))


def _ends_or_between(low: int, high: int) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from([low, 0, high] if low <= 0 <= high else [low, high]), st.integers(low, high))


@dataclass(frozen=True)
class Reached:
    """The least and the greatest sum of some tensors.

    Attributes:
        least: of the sums.
        most: of the sums.
        are_ends: whether no tensors reach further.
        are_near: whether none reach more than twice as far: where a limit of the filter meets taps that go much further
            to one side than to the other, the bound takes the best of both sides for all of them.
    """

    least: int
    most: int
    are_ends: bool
    are_near: bool


def reached(chain: Chain) -> Reached:
    """Constant images at either end, filters as far from their zero point as they can be, in either direction."""
    [conv] = chain.conv
    totals = np.concatenate(
        [
            convolution(conv, np.full(chain.input, end, chain.dtype), _filter(chain, to), chain.zero_point).ravel()
            for end in INTEGER_RANGE[chain.dtype]
            for to in INTEGER_RANGE[chain.dtype_of_filters]
        ]
    )
    least, most = min(int(totals.min()), 0), max(int(totals.max()), 0)
    down, up = (abs(end - conv.filter_zero_point) for end in INTEGER_RANGE[chain.dtype_of_filters])
    ends = conv.filter_l1 is None
    return Reached(least, most, are_ends=ends, are_near=ends or max(down, up) <= 2 * min(down, up))


def _filter(chain: Chain, to: int) -> Array:
    """As many elements as the limit allows at `to`, the one after them as near as it may be, the others at zero."""
    [conv], [shape] = chain.conv, chain.filter_shapes
    rest, apart = conv.filter_l1, to - conv.filter_zero_point
    filter = np.full(shape, conv.filter_zero_point, np.int64)
    if rest is None or not apart:
        return (filter + apart).astype(chain.dtype_of_filters)
    seen = filter[:, :, :1, :1] if chain.input[1:3] == (1, 1) else filter  # one pixel meets one tap
    flat = np.clip(rest - abs(apart) * np.arange(seen.size), 0, abs(apart)) * np.sign(apart)
    seen += flat.reshape(seen.shape)
    return filter.astype(chain.dtype_of_filters)


def evaluated(total: Array, chain: Chain, kernel: Arithmetic) -> dict[str, Array]:
    """Every intermediate of some sums with their bias, by name."""
    how = chain.conv[0].requantize
    if how is None:
        return {}
    if kernel == "hvx":
        sequence, offset = narrowing_at(chain, 0)
        if how.fraction_bits:
            assert isinstance(sequence, FixedPoint)
            return of_lifted(total, sequence)
        if how.rounding != "even":
            return words(total + offset, sequence)
        less = total + offset - np.array([1, 0, 0])  # one is taken from some
        steps = words(less, replace(sequence, halves=None))
        return {"with offset": total + offset, "less one": less, **{name: steps[name] for name in list(steps)[1:]}}
    shift = -31 if how.shift == PER_CHANNEL else how.shift
    if how.fraction_bits:
        product = total * how.most_multiplier + 2 ** (30 - how.lift)
        high = product >> (31 - how.lift)
        return {"product": product, "high half": high, "rounded": high + 2 ** (how.fraction_bits - 1)}
    if how.rounding == "even":
        product = total * how.most_multiplier
        return {"product": product, "rounded": product + 2 ** (30 - shift)}
    steps = {"shifted left": total << max(shift, 0)}
    steps["product"] = np.clip(steps["shifted left"], *INT32) * how.most_multiplier + 2**30
    value = steps["high half"] = steps["product"] >> 31
    bits = max(-shift, 0)
    if bits and how.rounding == "away":
        value = steps["nudged"] = value - (value < 0)
    return steps | {"rounded": value + (2**bits // 2)}


def of_lifted(total: Array, how: FixedPoint) -> dict[str, Array]:
    """The intermediates of hvx where products are rounded to few places; one is taken from some of these."""
    assert how.shift
    known = words(total, replace(how, halves_of_product=None))
    steps = {name: known[name] for name in ("with offset", "lifted", "high half") if name in known}
    last, less = min(how.shift, 15), known["high half"] - np.array([1, 0, 0])
    shifted = {"shifted": less >> (how.shift - last)} if how.shift > last else {}
    return {**steps, "less one": less, **shifted, "rounded": shifted.get("shifted", less) + 2 ** (last - 1)}


def serves(kernel: Arithmetic, chain: Chain) -> bool:
    """Whether the kernel has the arithmetic of a chain of one conv."""
    how = chain.conv[0].requantize
    saturates_halves = chain.saturates(0) and chain.dtype_of_filters == "int16"
    return kernel == "plain" or how is None or not (how.shifts_left or saturates_halves)


def saturated(total: Array, how: Requantize | None) -> Array:
    """Sums that are held where they saturate."""
    limit = how.saturates_at if how else None
    return total if limit is None else np.clip(total, -limit, limit)


def limited(totals: Array, chain: Chain) -> Array:
    """Sums as far as the chain says that they go, bias included."""
    limit = chain.conv[0].sum_limit
    return totals if limit is None else np.clip(totals, -limit, limit)


def summed(chain: Chain, kernel: Arithmetic, totals: Array, held: Array, bias: int) -> dict[str, Array]:
    """Every intermediate up to the sum that is scaled; `held` is that sum."""
    biased = {"sum": totals, "with bias": limited(totals + np.array([-bias, 0, bias]), chain)}
    if not chain.saturates(0):
        return biased
    if kernel == "plain":
        return {**biased, "saturated": held}
    if chain.dtype != "int16":
        return {"sum": totals, "saturated": held}
    most = raised_sums(chain, 0, bias).most  # tests/spec/test_saturating.py asks whether that is so
    window = np.array(INTEGER_RANGE[chain.dtype]) * window_products(chain, 0)
    return {"window": window, "raised": np.array([-most, most]), "saturated": held}


KERNELS = st.sampled_from(("plain", "hvx"))


@given(convs_of_integers(), KERNELS)
def test_every_intermediate_lies_within_its_bounds_and_reaches_them(chain: Chain, kernel: Arithmetic) -> None:
    [conv] = chain.conv
    kernel = kernel if serves(kernel, chain) else "plain"
    bias = bias_limit(chain, 0)
    ends = reached(chain)
    totals = np.array([ends.least, 0, ends.most], dtype=object)  # 64 bits may not be enough for what is refused
    biased = limited(totals + np.array([-bias, 0, bias]), chain)
    held = saturated(biased, conv.requantize)
    values = {**summed(chain, kernel, totals, held, bias), **evaluated(held, chain, kernel)}
    steps = {step.name: step for step in requantisation_steps(chain, 0, kernel, bias)}
    assert list(steps) == list(values)
    for name, step in steps.items():
        assert step.least <= values[name].min(), name
        assert step.most >= values[name].max(), name
        if ends.are_ends:
            assert (step.least, step.most) == (values[name].min(), values[name].max()), name
    if ends.are_near and "sum" in steps:
        assert ends.most * 2 >= steps["sum"].most
        assert ends.least * 2 <= steps["sum"].least


def padded_pixel() -> Chain:
    """A pixel under a window of padding, all of which the engine sums with the zero point."""
    conv = Conv2d(out_channels=1, kernel=(2, 3), padding=Padding(top=4, left=4, bottom=4, right=4))
    return Chain(input=(1, 1, 1, 64), dtype="uint8", zero_point=255, conv=(conv,))


@given(convs_of_integers())
@example(padded_pixel())
def test_the_addends_of_a_convert_of_the_engine_fit_its_words(chain: Chain) -> None:
    """Biases go as far as the limit, and taps that never lie on the image at once are summed with the others."""
    how = Requantize(multiplier=1 << 30, shift=-8, zero_point=3, engine="fast")
    convs = [replace(conv, bias=True, bias_limit=None, requantize=how, sum_limit=None) for conv in chain.conv]
    chain = replace(chain, dtype="int8" if chain.dtype == "int16" else chain.dtype, conv=tuple(convs))
    chain = replace(chain, zero_point=min(max(chain.zero_point, INTEGER_RANGE[chain.dtype][0]), 127))
    if chain.filter_dtype == "int16" or sums_refusal(chain, "plain"):
        return
    bias, zero_point = bias_limit(chain, 0) + MOST_ADDED, chain.zero_point - INTEGER_RANGE[chain.dtype][0]
    for to in INTEGER_RANGE[chain.dtype_of_filters]:
        weights = int((_filter(chain, to).astype(np.int64) - chain.conv[0].filter_zero_point).sum())
        assert INT32[0] <= 255 * weights <= INT32[1]
        assert INT32[0] <= -zero_point * weights - bias
        assert -zero_point * weights + bias <= INT32[1]


@given(st.lists(st.integers(-128, 127), min_size=8, max_size=8), st.integers(-128, 127), st.integers(-128, 127))
def test_the_ends_of_sums_by_channel_are_those_of_the_corners(taps: list[int], zero_point: int, apart: int) -> None:
    conv = Conv2d(out_channels=2, filter_zero_point=apart, bias=True)
    chain = Chain(input=(1, 1, 1, 4), dtype="int8", zero_point=zero_point, conv=(conv,))
    filter, bias = np.array(taps, np.int8).reshape(2, 4, 1, 1), np.array([-7, 1000], np.int32)
    corners = np.array(list(product((-128 - zero_point, 127 - zero_point), repeat=4)))
    sums = corners @ (filter.reshape(2, 4).astype(int) - apart).T + bias
    least, most = sums_by_channel(chain, 0, filter, bias)
    assert (least.tolist(), most.tolist()) == (sums.min(axis=0).tolist(), sums.max(axis=0).tolist())


def one_code_beside_the_zero_point() -> Chain:
    """A pixel whose scale makes every sum 0, so that its clamp hides its range from TVM."""
    conv = Conv2d(out_channels=1, kernel=(1, 1), requantize=Requantize(multiplier=2, shift=-2, zero_point=0))
    return Chain(input=(1, 1, 1, 1), dtype="uint8", filter_dtype="int8", conv=(conv,))


@given(convs_of_integers(), KERNELS)
@example(one_code_beside_the_zero_point(), "plain")
def test_what_is_accepted_is_requantised_as_defined_even_at_the_ends(chain: Chain, kernel: Arithmetic) -> None:
    [conv] = chain.conv
    how = conv.requantize
    if how is None or how.vectors or not serves(kernel, chain) or sums_refusal(chain, kernel):
        return
    ends, bias = reached(chain), bias_limit(chain, 0)
    total = np.unique([end + of_bias for end in (ends.least, 0, ends.most) for of_bias in (-bias, 0, bias)])
    total = np.unique(limited(total, chain))
    assert chain.sum_dtype(0) == "int64" or INT32[0] <= total[0] <= total[-1] <= INT32[1]
    given = total if kernel == "plain" else saturated(total, how)
    assert by_kernel(given, how, kernel, chain.dtype) == list(requantized(total, how, chain.dtype))


def shown(value: tirx.Expr) -> tirx.Expr:
    """A value without the reinterpretations there and back that hide its range from TVM."""
    return tvm_ffi.structural_map(value, (tvm.ir.Call, reinterpreted))


def reinterpreted(call: tvm.ir.Call) -> tirx.Expr:
    """What a reinterpretation takes; any other call as it is."""
    return call.args[0] if call.op.name == "tirx.reinterpret" else call


def by_kernel(total: Array, how: Requantize, kernel: Arithmetic, dtype: str) -> list[int]:
    """What the kernel's own expressions make of sums; for hvx, its instructions on words that int32 holds."""
    if kernel == "plain":
        made = [te.requantized(tirx.const(int(each), "int64"), how, {}, dtype) for each in total]
        return [int(Analyzer().simplify(shown(value)).value) for value in made]
    if dtype == "int16":
        sequence, offset = narrowing_to_halfwords(how)
        assert_int32(words(total + offset, sequence))
        return list(to_halfwords(total + offset, sequence))
    made_unsigned = 128 if dtype == "int8" else 0
    sequence, offset = narrowing_of(how, dtype)
    assert_int32(words(total + offset, sequence))
    return list(to_bytes(total + offset, sequence) - made_unsigned)


def assert_int32(steps: dict[str, Array]) -> None:
    for name, values in steps.items():
        assert INT32[0] <= values.min() <= values.max() <= INT32[1], name


def dense(channels: int, requantize: Requantize, **more: Any) -> Chain:
    """A conv over one pixel of uint8."""
    conv = Conv2d(out_channels=32, requantize=requantize, **more)
    return Chain(input=(1, 1, 1, channels), dtype="uint8", conv=(conv,))


FAR = Requantize(multiplier=1 << 16, shift=-7, zero_point=200, rounding="up")
"""Its zero point is added 22 bits to the left: 838860800, and 4096 for the rounding."""
MOST_PRODUCTS = (2**31 - 1 - (200 << 22) - (1 << 14)) // 255**2


@pytest.mark.parametrize(
    ("channels", "more", "words"),
    [
        (MOST_PRODUCTS + 1, {}, "with hvx (with offset)"),
        (MOST_PRODUCTS, {"bias": True, "bias_limit": 100_000}, "state a bias_limit of up to "),
    ],
)
def test_hvx_refuses_what_its_constants_add_too_much_with_the_figure(channels: int, more: dict, words: str) -> None:
    chain = dense(channels, FAR, **more)
    assert not sums_refusal(chain, "plain")
    refusal = sums_refusal(chain, "hvx")
    assert words in refusal
    assert f"chain.conv[0]: {channels} products can sum to " in refusal
    assert not sums_refusal(dense(MOST_PRODUCTS, FAR), "hvx")


def test_the_limit_that_a_refusal_names_would_do_and_no_larger_one() -> None:
    chain = dense(MOST_PRODUCTS, FAR, bias=True, bias_limit=2**30)
    refusal = sums_refusal(chain, "hvx").removesuffix(SATURATE)
    assert refusal != sums_refusal(chain, "hvx")
    most = int(refusal.rpartition(" ")[2])
    assert not sums_refusal(dense(MOST_PRODUCTS, FAR, bias=True, bias_limit=most), "hvx")
    assert sums_refusal(dense(MOST_PRODUCTS, FAR, bias=True, bias_limit=most + 1), "hvx")
    most = int(sums_refusal(dense(30_000, FAR), "hvx").removesuffix(SATURATE).rpartition(" ")[2])
    assert not sums_refusal(dense(30_000, FAR, filter_l1=most), "hvx")
    assert sums_refusal(dense(30_000, FAR, filter_l1=most + 1), "hvx")


def test_the_table_of_steps_is_the_documents_and_has_every_step() -> None:
    lines = [line for line in (ranges.__doc__ or "").splitlines() if line.startswith("|")]
    assert "\n".join(lines) in (Path(ranges.__file__).parents[1] / "docs" / "reference" / "dtypes.md").read_text()
    described = {line.split("|")[1].strip() for line in lines}
    far = dense(64, replace(FAR, multiplier=3, shift=-20, rounding="away"))
    assert {step.name for kernel in ("plain", "hvx") for step in requantisation_steps(far, 0, kernel, 9)} < described


def test_a_step_outside_tells_by_how_much() -> None:
    assert [Step("any", *ends).excess for ends in (INT32, (0, 2**31), (-(2**31) - 7, 0))] == [0, 1, 7]
