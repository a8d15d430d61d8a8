"""An Add in a conv's epilogue: its definition, its integer form, and what a case file may say of it."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.checked import Trial, check
from hexconv.compute import reference
from hexconv.errors import InputError
from hexconv.run.measure import runner_of
from hexconv.search.adds_apart import separate_cut
from hexconv.search.cuts import Pieces
from hexconv.search.question import Question
from hexconv.spec import Case, Chain, Conv2d, Requantize
from hexconv.spec.addition import Add
from hexconv.spec.code_sums import CODES, Summed, integer_form

SAME = Conv2d(out_channels=8, kernel=(3, 3), padding=1, requantize=Requantize(multiplier=1 << 30, shift=-6))  # pyright: ignore[reportArgumentType]
SUM = Add(from_="input", scales=(0.021, 0.0313, 0.0437), zero_point=5)
BLOCK = Chain(input=(1, 16, 16, 8), dtype="uint8", conv=(SAME, replace(SAME, add=SUM)))

codes = st.integers(0, CODES - 1)
scales = st.floats(-3, 3).map(lambda power: 2.0**power)


@given(st.tuples(scales, scales, scales), st.tuples(codes, codes, codes), codes)
def test_the_integer_form_is_the_definition_for_all_pairs(scales, zero_points, least) -> None:
    summed, every = Summed(scales, zero_points, (least, CODES - 1)), np.arange(CODES)
    assume(form := integer_form(summed))
    assert form
    assert np.array_equal(form.of_codes(every[:, None], every[None, :]), summed.defined(every[:, None], every[None, :]))


@given(st.tuples(*[st.floats()] * 3))
def test_any_scales_make_a_chain_or_are_refused(scales) -> None:
    with suppress(InputError):
        replace(BLOCK, conv=(SAME, replace(SAME, add=replace(SUM, scales=scales))))


def test_numpy_adds_what_the_other_tensor_holds() -> None:
    """A filter of zeros makes its zero point alone, so that the sum is the other tensor, requantised."""
    image = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1).repeat(8, axis=3)
    filters = [np.zeros(shape, np.uint8) for shape in BLOCK.filter_shapes]
    made = reference(BLOCK, image, filters, [None, None])
    expected = np.clip(np.rint(image * np.float32(0.0313) / np.float32(0.0437)) + 5, 0, 255)
    assert np.array_equal(made, expected)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"from_": "conv2"}, "chain.conv[1].add.from: got conv2; expected a tensor before it: input, or conv1"),
        ({"scales": None}, "chain.conv[1].add.scales is missing"),
        ({"scales": (0.02, 0.03, 0.04)}, "half way between two codes"),
        ({"zero_point": -1}, "chain.conv[1].add.zero_point: got -1"),
        ({"activation": "relu"}, "say a relu's codes in clamp"),
        ({"clamp": (9, 3)}, "chain.conv[1].add.clamp"),
    ],
)
def test_a_wrong_add_is_refused_in_one_line(changed: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as refused:
        replace(BLOCK, conv=(SAME, replace(SAME, add=replace(SUM, **changed))))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_stride_under_an_add_is_refused() -> None:
    padded = replace(SAME, stride=(2, 2), padding=9)
    with pytest.raises(InputError, match="behind which a conv has a stride"):
        replace(BLOCK, conv=(padded, replace(SAME, add=SUM)))


def test_a_case_file_names_the_tensor_as_from() -> None:
    text = Case("block", BLOCK).to_toml()
    assert 'add = { from = "input", scales = [0.021, 0.0313, 0.0437]' in text
    assert Case.parse(text, "block").chain == BLOCK
    with pytest.raises(InputError, match="did you mean from"):
        Case.parse(text.replace("{ from =", "{ form ="), "block")


def test_no_cut_parts_a_tensor_from_the_conv_that_adds_it() -> None:
    two = replace(BLOCK, conv=(*BLOCK.conv, SAME, replace(SAME, add=replace(SUM, from_="conv2"))))
    pieces = Pieces(two, Question(vtcm_bytes=1 << 20))
    cut = pieces.cut(2)
    assert cut
    assert [piece.chain.conv[1].add for piece in cut.pieces] == [SUM, SUM]
    assert pieces.cut(1) is pieces.cut(3) is None


def test_apart_each_add_reads_two_tensors_and_writes_one() -> None:
    """What fusing is held against has no Add in a chain: its bytes are those of operators."""
    separate = separate_cut(BLOCK, Question(vtcm_bytes=1 << 20))
    assert separate
    assert [piece.name for piece in separate.pieces] == ["conv1", "conv2"]
    assert not any(conv.add for piece in separate.pieces for conv in piece.chain.conv)
    moved = sum(piece.figures.traffic_bytes for piece in separate.pieces)
    assert separate.traffic_bytes == moved + 3 * 16 * 16 * 8


BOTTLENECK = """
[chain]
input = [1, 7, 7, 1024]
dtype = "uint8"
filter_dtype = "int8"
output_layout = "NHWC"
[[chain.conv]]
out_channels = 512
bias = true
requantize = { multiplier = 1279092096, shift = -9, rounding = "even" }
[[chain.conv]]
out_channels = 512
kernel = [3, 3]
padding = [1, 1, 1, 1]
bias = true
requantize = { multiplier = 1934310656, shift = -10, rounding = "even" }
[[chain.conv]]
out_channels = 1024
bias = true
requantize = { multiplier = 1225179264, shift = -9, zero_point = 129, rounding = "even" }
add = { from = "input", scales = [21.1926326751709, 9.973159790039062, 15.479218482971191], zero_point = 0 }
[plan]
k_split = 8
kernel = "hvx"
storage = "vtcm"
"""


@pytest.mark.simulator
@pytest.mark.deep
def test_every_tile_of_channels_adds_by_the_same_constants() -> None:
    """LLVM dropped the reload of a vector of constants behind the loop over tiles: all but the first were wrong."""
    case = Case.parse(BOTTLENECK, "bottleneck")
    [tried] = check(case, [Trial(runner_of(case, "hexagon"))]).runs
    assert tried.passed
