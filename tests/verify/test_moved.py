"""Sums that ONNX Runtime's float32 moves to another result: counted as the definition says, for every multiplier."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hexconv.model.requantize import requantize
from hexconv.report.network_verdict import network_verdict_lines
from hexconv.spec import Requantize
from hexconv.verify import ChainVerdict, Difference, NetworkVerdict
from hexconv.verify.moved import Moved, moved
from hexconv.verify.verdict import ConvVerdict

FSRCNN = Requantize(multiplier=1339778560, shift=-9, zero_point=109, rounding="even")
"""3/2462, but for 2 parts in 100 million."""
FIRST = np.array([0])


@st.composite
def scales(draw: st.DrawFn) -> Requantize:
    """Float32 scales, some of them next to a fraction of small numbers, where many products lie next to a half."""
    below = draw(st.integers(3, 2500))
    scale = draw(st.integers(1, 7)) / below
    moved_by = draw(st.sampled_from([0.0, 0.0, 1e-7, 3e-3]))
    zero_point = draw(st.sampled_from([0, 3, 109, 128]))
    clamp = draw(st.sampled_from([None, None, (20, 200)]))
    return requantize(np.array([scale * (1 + moved_by)], np.float32), zero_point, clamp).how


def results(sums: np.ndarray, by: Requantize, multiplier: int) -> np.ndarray:
    """Half to even of the exact products: below 2**53, so that a double holds them."""
    assert isinstance(by.shift, int)
    return np.clip(np.rint(sums * (multiplier * 2.0 ** (by.shift - 31))) + by.zero_point, *by.codes(0, 255))


@given(scales())
def test_it_counts_what_the_definition_says(by: Requantize) -> None:
    assert isinstance(by.multiplier, int)
    assert isinstance(by.shift, int)
    multiplier, scale, (low, high) = by.multiplier, by.multiplier * 2.0 ** (by.shift - 31), by.codes(0, 255)
    reach = int(300 / scale)
    sums = np.arange(-reach, reach + 1)
    codes = sums * scale + by.zero_point
    sums = sums[(codes >= low - 0.5) & (codes <= high + 0.5)]
    theirs = np.clip(np.rint(sums.astype(np.float32) * np.float32(scale)) + by.zero_point, low, high)

    def apart(multiplier: int) -> int:
        return int(np.count_nonzero(results(sums, by, multiplier) != theirs))

    found = moved(by, "uint8", {}, FIRST)
    assert (found.sums, found.apart) == (len(sums), apart(multiplier))
    assert found.least == min(
        apart(near) for near in range(multiplier - 64, multiplier + 65) if same_float32(near, multiplier)
    )


def same_float32(one: int, other: int) -> bool:
    return np.float32(one) == np.float32(other)


def test_no_multiplier_that_is_the_same_float32_saves_more_than_one_of_the_sums_next_to_halves() -> None:
    assert moved(FSRCNN, "uint8", {}, FIRST) == Moved(210091, 43, 42)


def test_channels_are_counted_by_their_own_scales() -> None:
    by = replace(FSRCNN, multiplier="per_channel")
    vectors = {"multiplier": np.array([1339778560, 1 << 30, 1339778560], np.int32)}
    assert moved(by, "uint8", vectors, np.array([0, 2])) == Moved(2 * 210091, 2 * 43, 2 * 42)
    assert moved(by, "uint8", vectors, np.array([1])).apart == 0


def test_a_conv_that_differs_too_much_says_how_many_sums_are_moved() -> None:
    conv = ConvVerdict("conv14", "uint8", Difference(65536, 14, 1), 0, Moved(210091, 43, 42))
    chain = ChainVerdict("01-conv", against_numpy=Difference(65536, 0, 0), convs=(conv,))
    lines = list(network_verdict_lines(NetworkVerdict("fsrcnn.onnx", "llvm", (chain,), ())))
    assert lines[1] == (
        "conv14: float32 moves 43 of the 210091 sums whose results are not cut; "
        "the best multiplier that is the same float32 leaves 42"
    )
