"""How many steps over rows a case may take: those that its convs take, and one for each stripe of the input."""

import pytest

from hexconv.analyze.block_nest import BlockStripes
from hexconv.errors import InputError
from hexconv.spec import Case, Chain, Conv2d, Plan

MILLION = 2**20
POINTWISE = Conv2d(out_channels=1)


@pytest.mark.parametrize("stride", [2**19, MILLION - 1])
def test_a_stripe_of_the_input_is_one_step_whatever_the_stride(stride: int) -> None:
    """Two rows of output, which lie in one stripe."""
    chain = Chain(input=(1, MILLION, 1, 1), conv=(Conv2d(out_channels=1, stride=(stride, 1)),))
    Case("strided", chain, Plan())
    assert BlockStripes(chain, (1,)).made.stagings.tolist() == [[1], [1]]


def test_no_stripe_takes_more_steps_than_its_tensor_has_slabs() -> None:
    strided = Conv2d(out_channels=1, stride=(MILLION - 1, 1))
    Case("strided", Chain(input=(1, MILLION, 1, 1), conv=(POINTWISE, strided)), Plan())


def test_the_steps_of_all_convs_are_bounded() -> None:
    image = (1, MILLION, 1, 1)
    Case("four", Chain(input=image, conv=(POINTWISE,) * 4), Plan())
    with pytest.raises(InputError, match="1, which makes 655360 steps over rows; expected up to 524288 steps"):
        Case("five", Chain(input=image, conv=(POINTWISE,) * 5), Plan())


def test_a_stripe_of_an_intermediate_takes_steps_of_its_own() -> None:
    """Each slab of the tall conv's output reads 129 slabs: in one step from the input, in 129 from another conv."""
    tall = Conv2d(out_channels=1, kernel=(2, 1), dilation=(1024, 1))
    image = (1, 2**16, 1, 1)
    Case("tall first", Chain(input=image, conv=(tall, POINTWISE)), Plan())
    with pytest.raises(InputError, match=f"which makes {8064 * 129 + 8192} steps over rows"):
        Case("tall second", Chain(input=image, conv=(POINTWISE, tall)), Plan())
    Case("tall second, by sixteen", Chain(input=image, conv=(POINTWISE, tall)), Plan(h_split=16))
