"""The range of values of every step of requantisation in an integer conv, for each kernel.

Let a be the activations and w the filter of a conv, za and zw their zero points. Both may be any value of their dtype,
the filter of one output channel within `filter_l1` where a conv states it. The bias is limited too, and where a conv
states its `sum_limit`, so is the sum of both. Then

| step | what it computes | plain | hvx |
|---|---|---|---|
| sum | the sum of (a - za) * (w - zw) over one window | yes | yes |
| with bias | that and the bias of the channel | yes | yes |
| window | the sum of the activations in one window, where sums of int16 saturate | | yes |
| raised | the sum of high bytes times 256, and the products of low bytes, where sums of int16 saturate | | yes |
| saturated | the sum with bias, within `saturates_at` | yes | yes |
| shifted left | that times 2**shift, where shift is positive; saturated to 32 bits after it | in 64 bits | |
| with offset | that and a constant, mostly the output's zero point, to the left as far as shifts go back | | yes |
| lifted | that times 2**(shift + fraction_bits), where these are stated | in the product | where that is more than 1 |
| product | that times the multiplier, and 2**30 | in 64 bits | |
| high half | that without its low 31 bits | in 64 bits | with a multiplier |
| nudged | one less where it is negative, for ties away from zero | in 64 bits | with a multiplier |
| shifted | that to the right by all but 15 bits | | with a multiplier |
| rounded | that and half of what the last shift takes | in 64 bits | yes |

Where sums saturate, plain has the sum and the sum with bias in 64 bits. Of 8 bits hvx has the sum alone, and adds the
bias to it saturating; of int16 it never has either whole, but the two steps after them (`hexconv.spec.raised`).
With `rounding = "even"` plain rounds the product itself, and hvx takes one from sums that lie half way (`less one`), or
with `fraction_bits` from the high halves of their products.
A sum whose limit is beyond int32 has 64 bits in plain, and so has its sum with bias.
Multipliers and shifts that are one a channel count with the largest that a channel may have; hvx doubles what such a
shift takes (`doubled`), so that one rounding shift by 1 ends all of them. Where sums leave no bit for that, only those
of channels without a shift are doubled, and saturate, long after their results have.

Every step grows with the one before it, so its ends are made of the ends before it, and inputs that reach the first
reach all. Windows that padding cuts count the taps that can lie on the image at once.

Up to `with offset` hvx only adds, subtracts, multiplies and shifts to the left, modulo 2**32: sums of bytes whose zero
points are still to come off, or of the high bytes of int16 times 256, may leave int32 on the way. They come back, since
what they come to is in this table. From there on shifts to the right and saturation follow, which don't.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.narrowing import MOST_NARROWING_SHIFT, FixedPoint, Shifts, narrowing_of
from hexconv.spec.raised import Raised, raised
from hexconv.spec.requantize import FRACTION_BITS, LARGEST_MULTIPLIER, SMALLEST_SHIFT, Requantize

Arithmetic = Literal["plain", "hvx"]
"""Kernels that have arithmetic for integers."""
LEAST_BIAS_LIMIT = 2**12
"""The least bias limit: a kernel must leave room for such a bias, or it doesn't serve a conv that states no limit."""
SHIFTED_BITS = 33
"""A shift that rounds has a bit of its own for the half that it adds."""


@dataclass(frozen=True)
class Step:
    """One intermediate of requantisation.

    Attributes:
        name: the name of the step in the table above.
        least: the smallest value that it can have.
        most: the largest value that it can have.
        bits: the bits of the integer that holds it.
    """

    name: str
    least: int
    most: int
    bits: int = 32

    @property
    def largest(self) -> int:
        """The largest value of its integer."""
        return 2 ** (self.bits - 1) - 1

    @property
    def excess(self) -> int:
        """By how much the value can leave its integer; 0 where it can't."""
        return max(self.most - self.largest, -self.least - self.largest - 1, 0)

    def then(self, name: str, to: Callable[[int], int], bits: int | None = None) -> "Step":
        """Return the next step: the range of a non-decreasing function `to` over this one."""
        return Step(name, to(self.least), to(self.most), bits or self.bits)


def requantisation_steps(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> tuple[Step, ...]:
    """Return every intermediate of conv `index` of an integer chain, in order.

    Args:
        chain: an integer chain.
        index: the conv, from 0; for hvx its shift is 0 or less.
        kernel: the kernel whose arithmetic is used.
        bias: the largest absolute value of the conv's bias; 0 where there is none.

    >>> from hexconv.spec.conv import Conv2d
    >>> requantize = Requantize(multiplier=1 << 16, shift=-7, zero_point=200, rounding="up")
    >>> conv = Conv2d(out_channels=32, kernel=(7, 7), requantize=requantize)
    >>> chain = Chain(input=(1, 7, 7, 512), dtype="uint8", conv=(conv,))
    >>> for step in requantisation_steps(chain, 0, "hvx", bias=0):
    ...     print(step.name, step.least, step.most, step.excess)
    sum 0 1631347200 0
    with bias 0 1631347200 0
    with offset 838877184 2470224384 322740737
    rounded 838877184 2470224384 322740737
    """
    conv = chain.conv[index]
    steps = _summed(chain, index, kernel, bias)
    if conv.requantize is None:
        return steps
    if kernel == "plain":
        return *steps, *_plain(steps[-1], conv.requantize)
    sequence, offset = narrowing_at(chain, index)
    return *steps, *_hvx(steps[-1], conv.requantize, sequence, offset)


def narrowing_at(chain: Chain, index: int) -> tuple[Shifts | FixedPoint, int]:
    """Return the sequence that narrows the sums of conv `index` for hvx, and the number to add to every sum.

    Of two sequences for shifts per channel the shorter one is taken where it has a bit for doubling all sums.
    """
    conv = chain.conv[index]
    assert conv.requantize
    sequence, offset = narrowing_of(conv.requantize, chain.dtype)
    if isinstance(sequence, FixedPoint) and sequence.shift is None:
        total = _summed(chain, index, "hvx", stated_bias(conv))[-1]
        if any(step.excess for step in _hvx(total, conv.requantize, sequence, offset)):
            sequence = replace(sequence, doubles_saturating=True)
    return sequence, offset


def stated_bias(conv: Conv2d) -> int:
    """Return the largest bias of a conv for which kernels are chosen: the stated limit, or the least that they leave.

    >>> stated_bias(Conv2d(out_channels=1)), stated_bias(Conv2d(out_channels=1, bias=True))
    (0, 4096)
    """
    if not conv.bias:
        return 0
    return LEAST_BIAS_LIMIT if conv.bias_limit is None else conv.bias_limit


def _summed(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> tuple[Step, ...]:
    """Return the steps up to the sum that is requantised."""
    total, limit = _sum(chain, index), chain.conv[index].sum_limit
    biased = Step("with bias", total.least - bias, total.most + bias)
    if limit is not None:
        biased = replace(biased, least=max(biased.least, -limit), most=min(biased.most, limit))
    if chain.saturates(index):
        return _saturating(chain, index, kernel, bias, biased)
    if kernel == "plain" and chain.sum_dtype(index) == "int64":
        return replace(total, bits=64), replace(biased, bits=64)
    return total, biased


def raised_sums(chain: Chain, index: int, bias: int) -> Raised:
    """Return how hvx saturates the sums of conv `index`, whose requantisation says where they do."""
    conv = chain.conv[index]
    assert conv.requantize
    assert conv.requantize.saturates_at is not None
    low, high = INTEGER_RANGE["int8"]
    products, zero_point = _dense_products(chain, index), conv.filter_zero_point
    apart = products * max(high - zero_point, zero_point - low)
    filter_l1 = apart if conv.filter_l1 is None else min(conv.filter_l1, apart)
    _sequence, offset = narrowing_of(conv.requantize, "int16")
    return raised(conv.requantize.saturates_at, products, filter_l1, zero_point - low, bias + offset)


def _saturating(chain: Chain, index: int, kernel: Arithmetic, bias: int, biased: Step) -> tuple[Step, ...]:
    """Return the steps up to the saturated sum."""
    how = chain.conv[index].requantize
    assert how
    assert how.saturates_at is not None
    saturated = Step("saturated", max(biased.least, -how.saturates_at), min(biased.most, how.saturates_at))
    if kernel == "plain":
        return replace(_sum(chain, index), bits=64), replace(biased, bits=64), saturated
    if chain.adds_bias_last(index):
        return _sum(chain, index), saturated
    products, (low, high) = _dense_products(chain, index), INTEGER_RANGE[chain.dtype]
    most = raised_sums(chain, index, bias).most
    return Step("window", products * low, products * high), Step("raised", -most, most), saturated


def window_products(chain: Chain, index: int) -> int:
    """Return the most elements of the image that one window can have."""
    conv, (_, *size, _) = chain.conv[index], chain.shapes[index]
    rows, columns = (
        min(taps, ceil(there / apart)) for taps, there, apart in zip(conv.kernel, size, conv.dilation, strict=True)
    )
    return chain.filter_shapes[index][1] * rows * columns


def _dense_products(chain: Chain, index: int) -> int:
    """Return the most elements of the image under a window of all groups: hvx multiplies those of others by zero."""
    return window_products(chain, index) * chain.conv[index].groups


def _sum(chain: Chain, index: int) -> Step:
    """Return the range of a window's sum, by what the dtypes allow or by `filter_l1`, whichever is less."""
    conv, zero_point = chain.conv[index], chain.output_zero_point(index)
    low, high = (end - zero_point for end in INTEGER_RANGE[chain.dtype])
    smallest, largest = (end - conv.filter_zero_point for end in INTEGER_RANGE[chain.dtype_of_filters])
    products = window_products(chain, index)
    least = products * min(low * largest, high * smallest)
    most = products * max(low * smallest, high * largest)
    if conv.filter_l1 is None:
        return Step("sum", least, most)
    up, down = (high if largest else 0), (-low if smallest else 0)  # what a unit of the filter, of either sign, can add
    back, forth = (-low if largest else 0), (high if smallest else 0)
    return Step("sum", max(least, -conv.filter_l1 * max(back, forth)), min(most, conv.filter_l1 * max(up, down)))


def _plain(total: Step, how: Requantize) -> list[Step]:
    """Return the steps of `hexconv.compute.epilogue.requantized`."""
    shift = how.shift if isinstance(how.shift, int) else SMALLEST_SHIFT
    if how.fraction_bits is not None:
        return _plain_fraction(total, how, how.fraction_bits)
    if how.rounding == "even":
        product = total.then("product", lambda value: value * how.most_multiplier, 64)
        return [product, product.then("rounded", lambda value: value + (1 << (FRACTION_BITS - 1 - shift)))]
    shifted = total.then("shifted left", lambda value: value << max(shift, 0), 64)
    product = shifted.then("product", lambda value: _saturated(value, 32) * how.most_multiplier + (1 << 30))
    steps = [shifted, product, product.then("high half", lambda value: value >> 31)]
    bits = max(-shift, 0)
    if bits and how.rounding == "away":
        steps.append(steps[-1].then("nudged", lambda value: value + (value >> 63)))
    return [*steps, steps[-1].then("rounded", lambda value: value + ((1 << bits) >> 1))]


def _plain_fraction(total: Step, how: Requantize, bits: int) -> list[Step]:
    """Return the steps where the product is rounded to so many binary places first."""
    dropped = FRACTION_BITS - how.lift
    product = total.then("product", lambda value: value * how.most_multiplier + (1 << (dropped - 1)), 64)
    high = product.then("high half", lambda value: value >> dropped)
    return [product, high, high.then("rounded", lambda value: value + (1 << (bits - 1)))]


def _hvx(total: Step, how: Requantize, sequence: Shifts | FixedPoint, offset: int) -> list[Step]:
    """Return the steps of the sequences of `hexconv.spec.narrowing`."""
    steps = [total.then("with offset", lambda value: value + offset)]
    if how.rounding == "even" and how.fraction_bits is None:
        steps.append(Step("less one", steps[-1].least - 1, steps[-1].most))
    if isinstance(sequence, Shifts):
        half = (1 << sequence.first) >> 1 if sequence.rounds else 0
        return [*steps, steps[-1].then("rounded", lambda value: value + half)]
    return [*steps, *_fixed_point(steps[-1], sequence)]


def _fixed_point(total: Step, how: FixedPoint) -> list[Step]:
    rounds_product = not how.rounds_once or how.shift == 0
    multiplier, half = how.multiplier or LARGEST_MULTIPLIER, 1 << 30 if rounds_product else 0
    if how.shift is None:
        return _shifted_by_channel(total, how, multiplier, half)
    lifted = [total.then("lifted", lambda value: value << how.lift)] if how.lift else []
    factor = lifted[0] if lifted else total
    steps = [*lifted, factor.then("high half", lambda value: (value * multiplier + half) >> 31)]
    last = min(how.shift, MOST_NARROWING_SHIFT)
    if how.halves_of_product:
        steps.append(replace(steps[-1], name="less one", least=steps[-1].least - 1))
    if how.ties_away:
        steps.append(steps[-1].then("nudged", lambda value: value + (value >> 31)))
    if how.shift > last:
        shift = how.shift
        steps.append(steps[-1].then("shifted", lambda value: value >> (shift - last)))
    return [*steps, steps[-1].then("rounded", lambda value: value + ((1 << last) >> 1))]


def _shifted_by_channel(total: Step, how: FixedPoint, multiplier: int, half: int) -> list[Step]:
    """Return the steps for shifts per channel: the worst channel has the largest multiplier and no shift."""
    if how.doubles_saturating:
        return _shifted_by_channel_saturating(total, how, multiplier, half)
    if how.rounds_once:
        doubled = total.then("doubled", lambda value: 2 * value)
        steps = [doubled, doubled.then("high half", lambda value: value * multiplier >> 31)]
    else:
        high = total.then("high half", lambda value: (value * multiplier + half) >> 31)
        steps = [high, high.then("doubled", lambda value: 2 * value + (value >> 31 if how.ties_away else 0))]
    return [*steps, steps[-1].then("rounded", lambda value: value + 1)]


def _shifted_by_channel_saturating(total: Step, how: FixedPoint, multiplier: int, half: int) -> list[Step]:
    """Return the same steps where doubling saturates, and channels that have a shift are shifted by 1 less."""
    if how.rounds_once:
        doubled = total.then("doubled", lambda value: _saturated(2 * value, 32))
        steps = [doubled, doubled.then("high half", lambda value: value * multiplier >> 31)]
    else:
        high = total.then("high half", lambda value: (value * multiplier + half) >> 31)
        nudged = [high.then("nudged", lambda value: value + (value >> 31))] if how.ties_away else []
        doubled = high.then("doubled", lambda value: _saturated(2 * value + (value >> 31 if how.ties_away else 0), 32))
        steps = [high, *nudged, doubled]
    return [*steps, steps[-1].then("rounded", lambda value: value + 1, SHIFTED_BITS)]


def _saturated(value: int, bits: int) -> int:
    largest = 2 ** (bits - 1) - 1
    return max(-largest - 1, min(value, largest))
