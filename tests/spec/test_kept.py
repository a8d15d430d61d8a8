"""Strips that keep columns, held against a model of which columns of a row are known: those of whole windows alone."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import InputError
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan
from hexconv.spec.strips import KeptChain, Strips, strips_of, why_no_strips

KEEPS = Plan(kernel="hvx", w_split=1, order="h_outer", halo="roll", column_halo="keep")


def _conv(draw: st.DrawFn) -> Conv2d:
    kernel, dilation = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    left, right = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    across: dict[str, Any] = {"kernel": (1, kernel), "stride": (1, draw(st.integers(1, 3))), "dilation": (1, dilation)}
    return Conv2d(out_channels=4, padding=Padding(left=left, right=right), **across)


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Chains of one row, with outputs of any width."""
    convs = tuple(_conv(draw) for _ in range(draw(st.integers(1, 4))))
    columns = draw(st.integers(1, 60))
    for conv in reversed(convs):
        columns = max(conv.columns_read(columns) - conv.padding.left - conv.padding.right, 1)
    return Chain(input=(1, 1, columns, 4), output_layout="NHWC", conv=convs)


def kept(chain: Chain, w_split: int) -> Strips | None:
    """The strips of a chain, None where it can't have any."""
    if why_no_strips(chain, w_split) or why_no_strips(chain, w_split, "keep"):
        return None
    return strips_of(chain, replace(KEEPS, w_split=w_split))


def _reads_every_column(conv: Conv2d) -> bool:
    """Whether windows leave out no column that they span; strips are counted as if none did."""
    return conv.dilation[1] == 1 and conv.stride[1] <= conv.kernel[1]


def known_outputs(chain: Chain, strips: Strips, count: int) -> list[bool]:
    """Which columns of the output are known where the last `count` strips run: all that their windows read is known."""
    stores = [[False] * tensor.kept for tensor in strips.tensors]
    output = [False] * chain.shapes[-1][2]
    for number in range(strips.count - count, strips.count):
        rows: list[list[bool]] = []
        for tensor, columns in enumerate(strips.tensors):
            begin, _ = strips.image_columns(tensor, number)
            made = [_is_known(chain, strips, rows, tensor, number, x) for x in range(columns.made)]
            # What lies outside of the image is padding, whoever has made it.
            there = [0 <= x - begin < columns.image_columns for x in range(columns.columns)]
            stored = [known or not is_there for known, is_there in zip(made + stores[tensor], there, strict=True)]
            rows.append(stored)
            stores[tensor] = stored[: columns.kept]
        for x, known in enumerate(rows[-1], strips.first_made(number)):
            if x < len(output):
                assert not output[x], "a column is written once"
                output[x] = known
    return output


def _is_known(chain: Chain, strips: Strips, rows: list[list[bool]], tensor: int, number: int, x: int) -> bool:
    """Whether column `x` of a strip's tensor can be made from the row before it; of the input, whether it is there."""
    begin, end = strips.image_columns(tensor, number)
    if not begin <= x < end:
        return False  # not of the image
    if tensor == 0:
        return True
    conv = chain.conv[tensor - 1]
    return all(rows[-1][x * conv.stride[1] + tap * conv.dilation[1]] for tap in range(conv.kernel[1]))


@given(chains(), st.integers(1, 4))
def test_strips_make_every_column_of_the_output_and_no_fewer_would(chain: Chain, w_split: int) -> None:
    strips = kept(chain, w_split)
    if strips is None:
        return
    assert all(known_outputs(chain, strips, strips.count))
    if all(_reads_every_column(conv) for conv in chain.conv):
        assert not all(known_outputs(chain, strips, strips.count - 1))


@given(chains(), st.integers(1, 4))
def test_strips_share_no_column(chain: Chain, w_split: int) -> None:
    strips = kept(chain, w_split)
    if strips is None:
        return
    assert isinstance(strips.chain, KeptChain)
    for columns, shape in zip(strips.tensors, strips.chain.shapes, strict=True):
        assert columns.made == shape[2] <= strips.columns * columns.stride
        assert columns.kept == 0 or columns.made == strips.columns * columns.stride


THREE = Conv2d(out_channels=8, kernel=(3, 3))
SAME = replace(THREE, padding=Padding(left=1, right=1))
CHAIN = Chain(input=(1, 20, 44, 4), output_layout="NHWC", conv=(THREE, THREE))


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"w_split": None}, "whole rows share no columns"),
        ({"halo": "recompute"}, "its own strip has replaced what was kept"),
        ({"order": "k_outer"}, "would find what its strip has replaced"),
    ],
)
def test_plans_that_can_keep_no_columns_are_refused_with_the_reason(plan: dict, why: str) -> None:
    with pytest.raises(InputError, match=why):
        replace(KEEPS, **plan)


@pytest.mark.parametrize(
    ("chain", "w_split", "why"),
    [
        (replace(CHAIN, conv=(Conv2d(out_channels=8), Conv2d(out_channels=8))), 1, "no column is read by two strips"),
        (replace(CHAIN, input=(1, 20, 7, 4), conv=(SAME,)), 1, "one strip has all columns"),
        (replace(CHAIN, output_layout="NHWC8h8w32c", input=(1, 20, 43, 4)), 2, "has 7, and is whole"),
    ],
)
def test_chains_that_have_no_columns_to_keep_are_refused_with_the_reason(chain: Chain, w_split: int, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Case("c", chain, replace(KEEPS, w_split=w_split))
