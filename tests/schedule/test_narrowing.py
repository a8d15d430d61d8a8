"""The instruction sequences of requantisation, step by step in numpy, against the definition."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hexconv.compute.reference import Array, requantized
from hexconv.spec import Requantize
from hexconv.spec.narrowing import narrowing, narrowing_to_halfwords
from hexconv.spec.requantize import Rounding
from tests.schedule.instructions import to_bytes, to_halfwords

MULTIPLIERS = st.one_of(
    st.integers(16, 30).map(lambda bit: 1 << bit),
    st.tuples(st.integers(1, 2**10), st.integers(0, 20)).map(lambda parts: parts[0] << parts[1]),
    st.integers(1, 2**31 - 1),
)


@given(
    multiplier=MULTIPLIERS,
    shift=st.one_of(st.integers(-7, 0), st.integers(-24, 0)),
    zero_point=st.one_of(st.just(0), st.integers(0, 255)),
    rounding=st.sampled_from(["away", "up", "even"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_narrowing_is_requantisation(
    multiplier: int, shift: int, zero_point: int, rounding: Rounding, seed: int
) -> None:
    how = Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding=rounding)
    sequence, offset = narrowing(how, zero_point)
    sums = interesting_sums(how, seed)
    np.testing.assert_array_equal(to_bytes(sums + offset, sequence), requantized(sums, how, "uint8"))


@given(
    multiplier=MULTIPLIERS,
    shift=st.one_of(st.integers(-7, 0), st.integers(-24, 0)),
    rounding=st.sampled_from(["away", "up", "even"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_narrowing_to_halfwords_is_requantisation(multiplier: int, shift: int, rounding: Rounding, seed: int) -> None:
    how = Requantize(multiplier=multiplier, shift=shift, rounding=rounding)
    sequence, offset = narrowing_to_halfwords(how)
    sums = interesting_sums(how, seed)
    np.testing.assert_array_equal(to_halfwords(sums + offset, sequence), requantized(sums, how, "int16"))


@given(
    multiplier=MULTIPLIERS,
    shift=st.one_of(st.integers(-12, 0), st.integers(-24, 0)),
    lift=st.integers(0, 8),
    zero_point=st.one_of(st.just(0), st.integers(0, 255)),
    seed=st.integers(0, 2**32 - 1),
)
def test_narrowing_of_products_of_few_places_is_requantisation(
    multiplier: int, shift: int, lift: int, zero_point: int, seed: int
) -> None:
    how = Requantize(
        multiplier=multiplier,
        shift=shift,
        zero_point=zero_point,
        rounding="even",
        fraction_bits=min(max(1, lift - shift), 30),
    )
    sums = interesting_sums(how, seed)
    sums = sums[np.abs(sums) < 2 ** (31 - how.lift)]  # as int32 holds them when they are lifted
    sequence, offset = narrowing(how, zero_point)
    np.testing.assert_array_equal(to_bytes(sums + offset, sequence), requantized(sums, how, "uint8"))
    wide = replace(how, zero_point=0)
    sequence, offset = narrowing_to_halfwords(wide)
    np.testing.assert_array_equal(to_halfwords(sums + offset, sequence), requantized(sums, wide, "int16"))


def interesting_sums(how: Requantize, seed: int) -> Array:
    """Small ones, those about the steps of the output, and any."""
    assert isinstance(how.multiplier, int)
    assert isinstance(how.shift, int)
    random, edges = np.random.default_rng(seed), np.arange(-300, 300)
    unit = min(2 ** (31 - how.shift) // how.multiplier, 2**21)  # a sum of about one step of the output
    halves = edges * 2 ** (31 - how.shift) // (2 * how.multiplier)  # half way between two outputs, or nearly
    near = [halves + apart for apart in (-1, 0, 1)]
    sums = np.concatenate(
        [edges, *near, edges * unit + random.integers(-2, 3, 600), random.integers(-(2**28), 2**28, 4000)]
    )
    return sums[np.abs(sums) < 2**29]
