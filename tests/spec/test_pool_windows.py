"""A max pool in a chain is refused where a window lies in its padding alone: it would be the largest of no element."""

from itertools import product

import pytest

from hexconv.errors import InputError
from hexconv.spec.chain import Conv2d, Padding, check_shapes, output_shape

AXES = (0, 1)


@pytest.mark.parametrize("axis", AXES, ids=["rows", "columns"])
def test_each_window_of_a_pool_reads_some_element(axis: int) -> None:
    refused = 0
    for size, taps, stride, dilation, begin, end in product(
        range(1, 6), range(1, 4), range(1, 4), range(1, 4), range(6), range(6)
    ):
        shape = (1, size, 1, 1) if axis == 0 else (1, 1, size, 1)
        pair = [(each, 1) if axis == 0 else (1, each) for each in (taps, stride, dilation)]
        padding = Padding(top=begin, bottom=end) if axis == 0 else Padding(left=begin, right=end)
        pool = Conv2d(out_channels=1, kernel=pair[0], stride=pair[1], dilation=pair[2], padding=padding, pool="max")
        places = output_shape(pool, shape)[1 + axis]
        if places < 1:
            continue
        reads = [{place * stride - begin + tap * dilation for tap in range(taps)} for place in range(places)]
        if all(read & set(range(size)) for read in reads):
            check_shapes("chain.conv[0]", pool, shape)
            continue
        refused += 1
        with pytest.raises(
            InputError, match=f"has padding alone; expected padding with which each window reads some of the {size}"
        ):
            check_shapes("chain.conv[0]", pool, shape)
    assert refused
