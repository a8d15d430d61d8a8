"""Tables of codes as HVX looks them up, for every code, exact on the simulator."""

import numpy as np
import pytest

from hexconv.compute import reference
from hexconv.layout import packed
from hexconv.lower import lower_case
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Tensors, output_shape, packed_arguments
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, kernel_of
from hexconv.spec.dtypes import Dtype
from hexconv.spec.vectors import in_lookup_order, lookup_place
from tests.deep import one_in

HALF = 1 << 30
"""Of filters that are all 2: codes stay as they are."""


def vlut(codes: np.ndarray, table: np.ndarray, eighth: int) -> np.ndarray:
    """`vlutvvb`, written from the programmer's reference: entries where a code is of this eighth, 0 elsewhere."""
    halfwords = table.reshape(64, 2)
    return np.where(codes >> 5 == eighth & 7, halfwords[codes % 64, eighth >> 1 & 1], 0)


def test_the_order_of_a_table_is_that_of_the_instruction() -> None:
    table, codes = np.random.default_rng(0).permutation(256), np.arange(256)
    ordered = in_lookup_order(table)
    assert sorted(lookup_place(code) for code in codes) == codes.tolist()
    found = sum(vlut(codes, ordered[eighth // 4 * 128 :][:128], eighth) for eighth in range(8))
    assert np.array_equal(found, table)


@pytest.mark.simulator
@pytest.mark.parametrize("channels", one_in(3, [70, 1, 32]))
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_every_code_is_looked_up(dtype: Dtype, channels: int) -> None:
    zero_point, table_zero_point = (9, 200) if dtype == "uint8" else (-9, 100)
    same = Requantize(multiplier=HALF, zero_point=zero_point)
    first = Conv2d(
        out_channels=channels,
        activation="table",
        table_zero_point=table_zero_point,
        requantize=same,
        padding=Padding(top=1, left=1, bottom=1, right=1),
    )
    last = Conv2d(
        out_channels=channels, groups=channels, requantize=Requantize(multiplier=HALF, zero_point=table_zero_point)
    )
    chain = Chain(input=(1, 16, 16, 1), dtype=dtype, filter_dtype="int8", zero_point=zero_point, conv=(first, last))
    case = Case("table", chain, Plan(kernel="hvx", order="h_outer"))
    assert kernel_of(chain, case.plan) == "hvx"
    image = np.arange(256).astype(dtype).reshape(chain.input)
    table = np.random.default_rng(channels).permutation(256).astype(dtype)
    twos = tuple(np.full(shape, 2, np.int8) for shape in chain.filter_shapes)
    tensors = Tensors(image, twos, (None, None), {"table1": table})
    arguments = packed_arguments(chain, tensors, case.settled)
    run = Simulator(slots=False).run(lower_case(case).module, arguments, [(output_shape(chain), dtype)])
    found = packed("NHWC8h8w32c", chain.shapes[-1]).unpack(run.outputs[0])
    inner = table[np.arange(256).astype(dtype).astype(int) - np.iinfo(dtype).min].reshape(16, 16, 1)
    assert np.array_equal(found[0, 1:-1, 1:-1], np.broadcast_to(inner, (16, 16, channels)))
    np.testing.assert_array_equal(found, reference(chain, *tensors.logical))
