"""Cases where opinions differed once, each with what was wrong."""

from dataclasses import replace

import pytest
import tvm

from hexconv.compute.computable import check_supported
from hexconv.errors import Unsupported
from hexconv.lower import annotated_tir, lower_case
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.sweep.judging import judge
from tests.deep import DEEP, one_in

HALVED = Requantize(multiplier=1 << 30, shift=-6)
FOUND = {
    # One logical row and column: the index of the accumulator lost its constant terms, the index of the output kept
    # them, and TVM saw no element-wise copy that may run in place.
    "in-place": Chain(
        input=(4, 6, 4, 3),
        conv=(Conv2d(out_channels=20, kernel=(3, 3), stride=(2, 3), dilation=(2, 1), bias=True),),
    ),
    # Caches outside of the default memory had other names.
    "in-vtcm": Chain(
        input=(1, 9, 9, 3), dtype="float16", conv=(Conv2d(out_channels=5, kernel=(3, 3)), Conv2d(out_channels=4))
    ),
    # The second conv reads the first row of padding only: nothing was left of the first conv.
    "only-padding": Chain(
        input=(1, 4, 4, 3),
        conv=(
            Conv2d(out_channels=3),
            Conv2d(out_channels=3, kernel=(2, 2), stride=(3, 3), padding=Padding(top=3, left=5), bias=True),
        ),
    ),
    # The second conv's first block row is all padding: the guard that says so led TVM to rows that no step reads.
    "padding-first": Chain(
        input=(1, 7, 1, 1),
        conv=(
            Conv2d(out_channels=1, kernel=(4, 1), stride=(2, 1), dilation=(2, 1), padding=Padding(top=3, bottom=3)),
            Conv2d(out_channels=1, kernel=(6, 1), stride=(3, 1), dilation=(3, 1), padding=Padding(top=8, bottom=4)),
        ),
    ),
    # A copy for every pixel: more under way at a time than the copy engine kept.
    "many-copies": Chain(input=(2, 400, 400, 1), conv=(Conv2d(out_channels=1, stride=(3, 3)),)),
    # The last stride steps over rows: those that a band made early to even out with others, nothing ever read.
    "rows-stepped-over": Chain(
        input=(1, 115, 44, 1),
        conv=(
            Conv2d(out_channels=1, kernel=(3, 3), stride=(1, 3), dilation=(2, 2)),
            Conv2d(out_channels=54, kernel=(1, 2), stride=(3, 1), dilation=(3, 1)),
            Conv2d(
                out_channels=32,
                kernel=(4, 4),
                stride=(3, 2),
                dilation=(1, 2),
                padding=Padding(top=1, left=3, bottom=2, right=3),
            ),
            Conv2d(out_channels=32, kernel=(1, 6), stride=(3, 2), dilation=(1, 2), padding=Padding(left=5, right=5)),
        ),
    ),
    # A relu leaves next to nothing of sums that cancel: they are rounded by parts of what they sum.
    "cancelled": Chain(
        input=(1, 21, 55, 19),
        conv=(
            Conv2d(
                out_channels=76,
                kernel=(2, 7),
                dilation=(2, 3),
                padding=Padding(top=2, left=2, bottom=0, right=16),
                groups=19,
            ),
            Conv2d(
                out_channels=152,
                kernel=(5, 3),
                stride=(2, 2),
                dilation=(2, 3),
                padding=Padding(top=6, left=3, bottom=6, right=2),
                groups=76,
                bias=True,
                activation="relu",
            ),
            Conv2d(out_channels=8, kernel=(6, 7), stride=(3, 3), dilation=(2, 3), bias=True, activation="relu"),
            Conv2d(
                out_channels=40,
                kernel=(1, 3),
                stride=(1, 3),
                dilation=(2, 3),
                padding=Padding(left=5, right=5),
                groups=2,
                activation="relu",
            ),
        ),
    ),
    # An output of 8 bits in the memory of 32-bit sums, printed in a form that doesn't parse.
    "retyped": Chain(
        input=(1, 8, 8, 22),
        dtype="uint8",
        conv=(
            Conv2d(out_channels=6, kernel=(1, 5), requantize=HALVED),
            Conv2d(out_channels=140, kernel=(3, 4), requantize=HALVED),
        ),
    ),
}
PLANS = {
    "cancelled": Plan(kernel="plain", k_split=2, h_split=4, filters="resident"),
    "in-vtcm": Plan(kernel="plain", storage="vtcm"),
    "many-copies": Plan(kernel="plain", h_split=17, order="h_outer", buffering="double"),
    "retyped": Plan(kernel="plain", k_split=4),
    "rows-stepped-over": Plan(kernel="plain", order="h_outer", halo="roll"),
}


LONG = ("rows-stepped-over",)


def found(name: str) -> Case:
    """One of these under its plan."""
    return Case(name, FOUND[name], PLANS.get(name, Plan(kernel="plain")))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[DEEP] if name in LONG else []) for name in FOUND])
def test_opinions_agree_where_they_once_differed(name: str) -> None:
    assert judge(found(name)).reasons == ()


@pytest.mark.parametrize("name", one_in(4, FOUND))
def test_the_text_of_such_a_case_is_its_module(name: str) -> None:
    case = found(name)
    lowered = lower_case(case)
    parsed = tvm.script.from_source(annotated_tir(case, lowered, "as the closed form predicts"))
    tvm.ir.assert_structural_equal(parsed, lowered.module)


def test_the_8_bit_output_does_lie_in_32_bit_memory() -> None:
    shared = {memory.holds: memory.dtype for memory in lower_case(found("retyped")).allocations}
    assert shared[("accumulator1", "output_cache")] == "int32"


@pytest.mark.parametrize(
    "chain",
    [
        "input = [1, 1048576, 1048576, 1048576]\n[[chain.conv]]\nout_channels = 1",
        # Of which four elements are read.
        "input = [1, 1048576, 1048576, 1048576]\n[[chain.conv]]\nout_channels = 1\nstride = 524288",
        "input = [1048576, 1, 1, 1]\n[[chain.conv]]\nout_channels = 1048576",
        "input = [1, 1, 1, 1]\n[[chain.conv]]\nout_channels = 1\npadding = 1048576",
        "input = [1, 1, 1, 1048576]\n[[chain.conv]]\nout_channels = 1048576",
    ],
    ids=["input", "input-strided", "output", "padding", "filter"],
)
def test_what_tvm_cannot_index_is_refused_before_anything_is_built(chain: str) -> None:
    case = Case.parse(f"[chain]\n{chain}", "large")
    with pytest.raises(Unsupported, match="TVM's indices reach 2147483647"):
        check_supported(case.chain)
    assert judge(case).outcome == "refused"


def test_a_conv_of_which_nothing_is_read_is_refused_where_no_block_has_room_for_a_spare_row() -> None:
    chain = FOUND["only-padding"]
    tall = Conv2d(out_channels=3, kernel=(8, 2), stride=(9, 9), padding=Padding(top=8, left=5), bias=True)
    verdict = judge(Case("refused", replace(chain, conv=(chain.conv[0], tall)), Plan(kernel="plain")))
    assert verdict.outcome == "refused"
    assert "chain.conv[1] reads nothing but the padding of its input" in verdict.reasons[0]
