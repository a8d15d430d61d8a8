"""What LLVM is told of caches: words that a kernel reads are read whole."""

import pytest

from hexconv.lower import lower_case
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize

BACK = Requantize(multiplier=1 << 20, shift=-4)


@pytest.mark.parametrize("columns", [28, 40])
def test_words_are_read_whole(columns: int) -> None:
    """With 40 columns LLVM can't find out that the input's words are aligned."""
    chain = Chain(input=(1, 16, columns, 64), dtype="uint8", conv=(Conv2d(out_channels=64, requantize=BACK),))
    plan = Plan(kernel="hvx", k_split=2, order="h_outer", filters="resident", buffering="double")
    text = compile_for_hexagon(lower_case(Case("words", chain, plan)).module, "v67").text
    packets = [packet for packet in text.split("{") if "vrmpy" in packet]
    assert packets
    assert not [packet for packet in packets if "memub" in packet]
