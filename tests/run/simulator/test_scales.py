"""Scales per channel and half to even as HVX computes them, on sums at and next to halves, exact on the simulator."""

import numpy as np
import pytest

from hexconv.compute import reference
from hexconv.layout import packed
from hexconv.lower import lower_case
from hexconv.run.fills import drawn_vectors
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Tensors, output_shape, packed_arguments
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize, kernel_of
from hexconv.spec.dtypes import INTEGER_RANGE, Dtype
from hexconv.spec.requantize import PER_CHANNEL, PerChannel, Rounding
from hexconv.spec.vectors import Vectors
from tests.deep import one_in

CHANNELS, PIXELS = 70, 16
LIMIT = 2**29
FEW_PLACES = [("uint8", -9, 11), ("int8", -8, 16), ("int16", -7, 7)]


@pytest.mark.simulator
@pytest.mark.parametrize("rounding", ["even", "away", "up"])
@pytest.mark.parametrize(
    ("multiplier", "shift"), one_in(3, [(5 << 27, -7), (1 << 30, -9), (PER_CHANNEL, -7), (PER_CHANNEL,) * 2])
)
def test_sums_near_halves_go_where_numpy_says(
    multiplier: int | PerChannel, shift: int | PerChannel, rounding: Rounding
) -> None:
    dtype: Dtype = "uint8" if shift == PER_CHANNEL or multiplier == 1 << 30 else "int8"
    zero_point = 77 if dtype == "uint8" else -100
    by = Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding=rounding)
    check_near_halves(by, dtype, LIMIT)


@pytest.mark.simulator
@pytest.mark.parametrize("multiplier", [5 << 27, 1339778560, PER_CHANNEL])
@pytest.mark.parametrize(
    ("dtype", "shift", "places"), one_in(3, [("uint8", -9, 11), ("int8", -8, 16), ("int16", -7, 7)])
)
def test_products_of_few_places_go_where_numpy_says(
    multiplier: int | PerChannel, dtype: Dtype, shift: int, places: int
) -> None:
    zero_point = {"uint8": 77, "int8": -100, "int16": 0}[dtype]
    by = Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding="even", fraction_bits=places)
    check_near_halves(by, dtype, LIMIT >> by.lift)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("dtype", "rounding"), [("uint8", "even"), ("int8", "away"), ("int16", "even"), ("int16", "up")]
)
def test_sums_of_all_32_bits_go_where_numpy_says(dtype: Dtype, rounding: Rounding) -> None:
    by = Requantize(multiplier=PER_CHANNEL, shift=PER_CHANNEL, rounding=rounding)
    check_near_halves(by, dtype, 2**31 - 1 + INTEGER_RANGE["int16"][0])


def check_near_halves(by: Requantize, dtype: Dtype, limit: int) -> None:
    """Run sums at and next to halves, and anywhere within a limit, and compare them with numpy."""
    conv = Conv2d(out_channels=CHANNELS, bias=True, bias_limit=limit, filter_l1=1, requantize=by)
    chain = Chain(input=(1, 1, PIXELS, 1), dtype=dtype, filter_dtype="int8", conv=(conv,))
    case = Case("halves", chain, Plan(kernel="hvx", order="h_outer"))
    assert kernel_of(chain, case.plan) == "hvx"
    module, seen = lower_case(case).module, set()
    image = np.arange(PIXELS, dtype=dtype).reshape(chain.input)
    for seed in range(2):
        vectors = drawn_vectors(chain, seed)
        if by.shift == PER_CHANNEL:  # some channels have no shift, and some of these the least multiplier
            vectors["shift1"][::5], vectors["multiplier1"][::10] = 0, 1
        bias = near_halves(vectors, by, seed, limit)
        tensors = Tensors(image, (np.ones((CHANNELS, 1, 1, 1), np.int8),), (bias,), vectors)
        arguments, shape = packed_arguments(chain, tensors, case.settled), output_shape(chain)
        run = Simulator(slots=False).run(module, arguments, [(shape, dtype)])
        expected = reference(chain, *tensors.logical)
        np.testing.assert_array_equal(packed("NHWC8h8w32c", chain.shapes[-1]).unpack(run.outputs[0]), expected)
        seen |= set(expected.ravel().tolist())
    assert len(seen) > 16


def near_halves(vectors: Vectors, by: Requantize, seed: int, limit: int) -> np.ndarray:
    """A bias from which sixteen sums go over half of an output of the channel, or over any number within the limit."""
    random = np.random.default_rng(seed)
    multiplier = vectors["multiplier1"] if by.multiplier == PER_CHANNEL else by.multiplier
    shift = vectors["shift1"] if by.shift == PER_CHANNEL else by.shift
    unit = 2.0 ** (31 - np.asarray(shift)) / np.asarray(multiplier)  # of the sums, one output
    outputs = random.integers(-100, 100, CHANNELS) + 0.5
    far = random.uniform(-limit, limit, CHANNELS)
    is_near = (np.abs(outputs * unit) < limit) & (np.arange(CHANNELS) % 4 > 0)
    bias = np.where(is_near, outputs * unit, far) - random.integers(0, PIXELS, CHANNELS)
    return np.clip(np.floor(bias), -limit, limit).astype(np.int32)
