"""Cases where opinions differed once, each with what was wrong."""

import pytest
import tvm

from hexconv.compute.limits import check_supported
from hexconv.errors import Unsupported
from hexconv.lower import annotated_tir, lower_case
from hexconv.spec import Case
from hexconv.sweep.verdict import judge

# One logical row and column: the index of the accumulator lost its constant terms, the index of the output kept them,
# and TVM saw no element-wise copy that may run in place.
IN_PLACE = """
[chain]
input = [4, 6, 4, 3]
[[chain.conv]]
out_channels = 20
kernel = [3, 3]
stride = [2, 3]
dilation = [2, 1]
bias = true
"""
# Caches outside of the default memory had other names.
IN_VTCM = """
[chain]
input = [1, 9, 9, 3]
dtype = "float16"
[[chain.conv]]
out_channels = 5
kernel = 3
[[chain.conv]]
out_channels = 4
[plan]
storage = "vtcm"
"""
# The second conv reads the first row of padding only: nothing was left of the first conv.
ONLY_PADDING = """
[chain]
input = [1, 4, 4, 3]
[[chain.conv]]
out_channels = 3
[[chain.conv]]
out_channels = 3
kernel = [2, 2]
stride = [3, 3]
padding = [3, 5, 0, 0]
bias = true
"""
# An output of 8 bits in the memory of 32-bit sums, printed in a form that doesn't parse.
RETYPED = """
[chain]
input = [1, 8, 8, 22]
dtype = "uint8"
[[chain.conv]]
out_channels = 6
kernel = [1, 5]
requantize = { multiplier = 1073741824, shift = -6 }
[[chain.conv]]
out_channels = 140
kernel = [3, 4]
requantize = { multiplier = 1073741824, shift = -6 }
[plan]
k_split = 4
"""
FOUND = {"in-place": IN_PLACE, "in-vtcm": IN_VTCM, "only-padding": ONLY_PADDING, "retyped": RETYPED}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_opinions_agree_where_they_once_differed(text: str) -> None:
    assert judge(Case.parse(text, "found")).reasons == ()


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_the_text_of_such_a_case_is_its_module(text: str) -> None:
    case = Case.parse(text, "found")
    lowered = lower_case(case)
    parsed = tvm.script.from_source(annotated_tir(case, lowered, "as the closed form predicts"))
    tvm.ir.assert_structural_equal(parsed, lowered.module)


def test_the_8_bit_output_does_lie_in_32_bit_memory() -> None:
    shared = {memory.holds: memory.dtype for memory in lower_case(Case.parse(RETYPED, "retyped")).allocations}
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
    large = {"kernel = [2, 2]": "kernel = [8, 2]", "[3, 3]": "[9, 9]", "[3, 5, 0, 0]": "[8, 5, 0, 0]"}
    text = ONLY_PADDING
    for small, instead in large.items():
        text = text.replace(small, instead)
    verdict = judge(Case.parse(text, "refused"))
    assert verdict.outcome == "refused"
    assert "chain.conv[1] reads nothing but the padding of its input" in verdict.reasons[0]
