"""Laws of the stored extents, against the definition of a convolution."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.errors import InputError
from hexconv.spec import Chain, Conv2d, Padding, tensor_extents


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Small chains over kernels, strides, dilations and paddings."""
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    side = st.integers(0, 3)
    convs = draw(
        st.lists(
            st.builds(
                Conv2d,
                out_channels=st.just(1),
                kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
                stride=pair,
                dilation=pair,
                padding=st.builds(Padding, top=side, left=side, bottom=side, right=side),
            ),
            min_size=1,
            max_size=4,
        )
    )
    try:
        return Chain(input=(1, draw(st.integers(1, 40)), draw(st.integers(1, 40)), 1), conv=tuple(convs))
    except InputError:
        assume(False)
        raise


@given(chains())
def test_stored_rows_are_just_what_the_output_reaches(chain: Chain) -> None:
    """Walk back from every output row through all taps: the rows that are met are the stored rows, at `top`.

    Where all of them are padding, logical row 0 is stored behind them.
    """
    extents = tensor_extents(chain)
    rows = np.arange(chain.shapes[-1][1])
    for conv, tensor in zip(reversed(chain.conv), reversed(extents[:-1]), strict=True):
        taps = np.arange(conv.kernel[0]) * conv.dilation[0]
        rows = np.unique(rows[:, None] * conv.stride[0] + taps - conv.padding.top)
        if rows[-1] < 0 and (rows[-1] - rows[0] + 1) % 8:
            rows = np.append(rows - rows[-1] - 1, 0)
        assert rows[0] == -tensor.top
        assert rows[-1] == tensor.rows - 1 - tensor.top


@given(chains())
def test_the_output_is_stored_as_it_is(chain: Chain) -> None:
    output = tensor_extents(chain)[-1]
    assert (output.rows, output.columns) == chain.shapes[-1][1:3]
    assert (output.top, output.left) == (0, 0)


@given(chains())
def test_only_padding_moves_logical_rows(chain: Chain) -> None:
    """Each tensor's first logical row stands below the padding of all later convs, or in its spare row."""
    extents = tensor_extents(chain)
    for conv, tensor, output in zip(chain.conv, extents[:-1], extents[1:], strict=True):
        padded = conv.padding.top + conv.stride[0] * output.top
        assert tensor.top == padded or padded > tensor.top == tensor.rows - 1
        padded = conv.padding.left + conv.stride[1] * output.left
        assert tensor.left == padded or padded > tensor.left == tensor.columns - 1
