"""Requantisation as it is compiled, on every 8-bit sum: random sums hardly ever lie half-way between two results."""

from typing import get_args

import numpy as np
import pytest

from hexconv.layout import packed
from hexconv.lower import lower_case
from hexconv.run.host import Host
from hexconv.run.tensors import Tensors, output_shape, packed_arguments
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.requantize import Rounding
from tests.compute.test_reference import by_definition
from tests.deep import one_in

SCALES = [(2**30, 0), (2**30, -1), (2**30, -2), (2**30 + 1, -3), (2**31 - 1, 0), (3 * 2**29, 3), (2**30, 24), (1, -31)]


PLACES = [
    (2**30 + 1, -3, 3),
    (2**30, -1, 1),
    (3 * 2**29, 3, 6),
    (5 * 2**28, -9, 9),
    (2**31 - 1, 0, 30),
    (2**30 - 1, -2, 8),
]


@pytest.mark.parametrize(
    ("multiplier", "shift", "rounding"),
    one_in(3, [(*scale, rounding) for rounding in get_args(Rounding) for scale in SCALES]),
)
def test_every_sum_goes_where_the_definition_says(multiplier: int, shift: int, rounding: Rounding) -> None:
    check_every_sum(Requantize(multiplier=multiplier, shift=shift, zero_point=-3, rounding=rounding))


@pytest.mark.parametrize(("multiplier", "shift", "places"), PLACES)
def test_products_of_few_places_go_where_the_definition_says(multiplier: int, shift: int, places: int) -> None:
    check_every_sum(Requantize(multiplier=multiplier, shift=shift, rounding="even", fraction_bits=places))


def check_every_sum(by: Requantize) -> None:
    """Compile a chain whose sums are all numbers of 8 bits, and compare its results with the definition."""
    chain = Chain(input=(1, 16, 16, 1), dtype="int8", conv=(Conv2d(out_channels=1, requantize=by),))
    image = np.arange(-128, 128, dtype=np.int8).reshape(chain.input)
    tensors = Tensors(image, (np.ones((1, 1, 1, 1), np.int8),), (None,))
    module = lower_case(Case("every-sum", chain, Plan(kernel="plain"))).module
    run = Host(calls=1).run(module, packed_arguments(chain, tensors), [(output_shape(chain), "int8")])
    found = packed("NHWC8h8w32c", chain.shapes[-1]).unpack(run.outputs[0]).ravel()
    assert found.tolist() == [by_definition(value, by, "int8") for value in range(-128, 128)]
