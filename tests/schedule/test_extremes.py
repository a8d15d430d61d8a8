"""Convs whose sums, biases and constants fill int32, on tensors at the ends of their range, exact on the simulator."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from hexconv.compute import reference
from hexconv.layout import packed
from hexconv.lower import lower_case
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Tensors, output_shape, packed_arguments
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize, kernel_of
from hexconv.spec.dtypes import INTEGER_RANGE, Dtype
from hexconv.spec.ranges import bias_limit

HVX = Plan(kernel="hvx")
FAR = Requantize(multiplier=1 << 16, shift=-7, zero_point=200, rounding="up")
"""A zero point that is added 22 bits to the left."""
SCALED = Requantize(multiplier=0x7FFFFFFF, shift=-15, zero_point=3)


def dense(dtype: Dtype, channels: int, zero_point: int = 0, **fields: Any) -> Chain:
    conv = Conv2d(out_channels=8, **fields)
    return Chain(input=(1, 1, 1, channels), dtype=dtype, zero_point=zero_point, conv=(conv,))


MOST_PRODUCTS = (2**31 - 1 - (200 << 22) - (1 << 14)) // 255**2
CHAINS = {
    "as many products as a far zero point leaves": dense("uint8", MOST_PRODUCTS, requantize=FAR),
    "a bias beside a far zero point": dense("uint8", 100, zero_point=90, bias=True, requantize=FAR),
    "a bias before a multiplier": dense("int8", 40, zero_point=-128, bias=True, requantize=SCALED),
    "a bias beside zero points of input and filter": dense(
        "uint8", 128, zero_point=255, filter_zero_point=200, bias=True, requantize=FAR
    ),
    "a bias on sums that stay": dense("int8", 36, filter_zero_point=127, bias=True),
    "int16 as far as it goes": dense(
        "int16", 64, filter_l1=65535, bias=True, requantize=Requantize(multiplier=1 << 30, shift=-14)
    ),
}


@pytest.mark.simulator
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_what_fills_int32_is_exact_at_its_ends(chain: Chain) -> None:
    case = Case("ends", chain, HVX)
    assert kernel_of(chain, case.plan) == "hvx"
    module = lower_case(case).module
    seen = set()
    for image, filter in product(INTEGER_RANGE[chain.dtype], INTEGER_RANGE[chain.dtype_of_filters]):
        tensors = at_ends(chain, image, filter)
        dtype = chain.output_dtype(0)
        arguments = packed_arguments(chain, tensors, case.settled)
        run = Simulator(slots=False).run(module, arguments, [(output_shape(chain), dtype)])
        got = packed("NHWC8h8w32c", chain.shapes[-1]).unpack(run.outputs[0])
        expected = reference(chain, tensors.image, tensors.filters, tensors.biases)
        np.testing.assert_array_equal(got, expected)
        seen |= set(expected.ravel().tolist())
    assert len(seen) > 1


def at_ends(chain: Chain, image: int, filter: int) -> Tensors:
    """All elements at one end; of a filter with a limit as many as it allows; biases at either end."""
    [conv], [shape] = chain.conv, chain.filter_shapes
    weights = np.full(shape, conv.filter_zero_point, chain.dtype_of_filters)
    many = shape[1] if conv.filter_l1 is None else conv.filter_l1 // max(abs(filter - conv.filter_zero_point), 1)
    weights[:, :many] = filter
    limit = bias_limit(chain, 0)
    bias = np.tile([-limit, limit], shape[0] // 2).astype(np.int32) if conv.bias else None
    return Tensors(np.full(chain.input, image, chain.dtype), (weights,), (bias,))
