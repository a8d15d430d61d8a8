"""Constants of channels are laid out once, before a run: what HVX kernels load for each channel, and where it lies."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze import cache_usage
from hexconv.lower import lower_case
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.run.tensors import packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.narrowing import FixedPoint, narrowing
from hexconv.spec.requantize import LARGEST_MULTIPLIER
from tests.draws import LOWERED

EVEN = Requantize(multiplier="per_channel", shift=-7, zero_point=9, rounding="even")
CONV = Conv2d(out_channels=40, bias=True, requantize=EVEN)
CHAIN = Chain(input=(1, 8, 8, 36), dtype="uint8", filter_dtype="int8", zero_point=5, conv=(CONV,))
ROWS = Plan(kernel="hvx", order="h_outer")
SCALES = st.tuples(st.integers(1, LARGEST_MULTIPLIER), st.integers(0, 30), st.integers(-15, 0))


@LOWERED
@given(st.lists(SCALES, min_size=2, max_size=40))
def test_each_channel_has_the_masks_and_halves_of_a_conv_with_its_scale(scales: list[tuple[int, int, int]]) -> None:
    multipliers = [max(multiplier >> zeros << zeros, 1) for multiplier, zeros, _ in scales]
    shifts = [shift for *_, shift in scales]
    conv = replace(CONV, out_channels=len(scales), requantize=replace(EVEN, shift="per_channel"))
    chain = replace(CHAIN, conv=(conv,))
    vectors = {"multiplier1": np.array(multipliers, np.int32), "shift1": np.array(shifts, np.int32)}
    arguments = packed_arguments(chain, replace(random_tensors(chain), vectors=vectors), ROWS)
    multiplier, right, mask, half = arguments[-1].reshape(4, -1)[:, : len(scales)]
    assert multiplier.tolist() == multipliers
    assert right.tolist() == [-shift for shift in shifts]
    for channel, (of_all, shift) in enumerate(zip(multipliers, shifts, strict=True)):
        alone, _ = narrowing(replace(EVEN, multiplier=of_all, shift=shift), 0)
        if isinstance(alone, FixedPoint) and alone.halves:
            wanted = (alone.halves.mask, alone.halves.half)
            assert (int(mask[channel]) % 2**32, int(half[channel]) % 2**32) == tuple(each % 2**32 for each in wanted)


@pytest.mark.parametrize("storage", ["global", "vtcm", "input+output", "filters+output"])
def test_constants_are_arguments_and_copied_to_vtcm_with_the_filters_alone(storage: str) -> None:
    case = Case("constants", CHAIN, replace(ROWS, storage=storage), target="hexagon")
    lowered = lower_case(case)
    names = [argument.name for argument in lowered.module["main"].params]
    assert names == ["input", "filter1", "offset1", "scales1", "output"]
    shapes = [tuple(map(int, argument.shape)) for argument in lowered.module["main"].params]
    given = packed_arguments(CHAIN, random_tensors(CHAIN), case.settled)
    assert [array.shape for array in given] == shapes[:-1]
    usage = cache_usage(case, lowered)
    assert usage.agrees
    copied = {cache.name for cache in usage.caches} & {"offset1_cache", "scales1_cache"}
    assert len(copied) == (2 if case.settled.is_in_vtcm("filters") else 0)


def test_constants_are_copied_by_vectors_not_by_a_call() -> None:
    conv = replace(CONV, out_channels=160)
    case = Case("copied", replace(CHAIN, conv=(conv,)), replace(ROWS, storage="vtcm", k_split=5), target="hexagon")
    assembly = compile_for_hexagon(lower_case(case).module, "v68").text
    assert "memcpy" not in assembly
