"""Ranges of integer sums and of each step of requantisation: does int32 hold them, and where do sums of int16 saturate?

Let a be the activations and w the filter of a conv, za and zw their zero points. Both may be any value of their dtype,
the filter of one output channel within `filter_l1` where a conv states it. The bias is limited too, and where a conv
states its `sum_limit`, so is the sum of both. Then

| step | value | plain | hvx |
|---|---|---|---|
| sum | s1 = sum over a window of (a - za) * (w - zw) | yes | yes |
| with bias | s2 = s1 + bias | yes | yes |
| window | W = sum over a window of a, where sums of int16 saturate | | yes |
| raised | 256 * high + low, by the bytes of a, where sums of int16 saturate | | yes |
| saturated | min(max(s2, -N), N), N being `saturates_at` | yes | yes |
| shifted left | s * 2**max(shift, 0), saturated to 32 bits after it | in 64 bits | |
| with offset | s + c, c being mostly the zero point, shifted left by the right shifts to come | | yes |
| lifted | s * 2**(shift + fraction_bits), where these are stated | in the product | where that is more than 1 |
| product | s * multiplier + 2**30 | in 64 bits | |
| high half | s >> 31 | in 64 bits | with a multiplier |
| nudged | s - 1 where s < 0, for ties away from zero | in 64 bits | with a multiplier |
| shifted | s >> (right shift - 15) | | with a multiplier |
| rounded | s + 2**(n - 1), n being the bits of the last shift | in 64 bits | yes |

With `engine = "fast"` the sum with bias is followed by what the engine's convert adds to it (`with what is added`), and
its own formula (`hexconv.compute.requantised`). The engine sums unsigned bytes as they are (`of bytes`), the padding's
too; one word of a table takes off their zero point, and adds the bias and the rest (`beside bytes`). It adds both in
more than 32 bits, so that what leaves 32 bits on the way does not come back.

Where sums saturate, plain has the sum and the sum with bias in 64 bits. Of 8 bits hvx has the sum alone, and adds the
bias to it saturating; of int16 it never has either whole, but the two steps after them (`hexconv.spec.ranges`).
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

The check is exact: a kernel is refused where some tensors of the chain's dtypes, within the limits that its convs
state, make an intermediate of `hexconv.spec.ranges` overflow its integer.

Let T be a sum of a * (w - zw) and the bias, u the unsigned bytes of the filter, z their zero point, W the sum of the
activations in the window. HVX sums high bytes times u, then takes 256 times that, then adds low bytes times u:

    T = 256 * high + low        high = sum(high bytes * u) - z * (W >> 8)
                                low  = sum(low bytes * u) - z * (W & 255) + bias

`high` fits a word whatever T is. It is held within a limit L before it is multiplied, so that 256 * L + low fits too:

    where abs(high) <= L, nothing has changed
    else                  abs(256 * L + low) >= 256 * L - abs(low) >= S, and so is abs(T), with T's sign

So what comes out is T wherever T is within S, and holding it within S saturates as the definition says. A filter that
sums its windows tile by tile has the high bytes and the low bytes of W apart; then `low` has a smaller range.

Scales of networks spread sums over the codes of a dtype: where a sum leaves int32, its output has long been at an end
of its range. So it is where the sum saturates.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hexconv.spec.chain import Chain, Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE, LARGEST_INT32
from hexconv.spec.names import numbered
from hexconv.spec.narrowing import MOST_NARROWING_SHIFT, FixedPoint, Shifts, narrowing_of
from hexconv.spec.requantize import FRACTION_BITS, LARGEST_MULTIPLIER, SMALLEST_SHIFT, Requantize

BYTE = 255
MOST_ADDED = 1 << 24
"""The most that a convert of the matrix engine adds to a sum beside what the sum starts from."""
RAISED = 256
"""A unit of the sums of high bytes."""


@dataclass(frozen=True)
class Raised:
    """What keeps sums of int16 within a word while they grow by a byte.

    Attributes:
        high: the largest absolute value of a sum of high bytes that is kept.
        sum: the absolute value at which the whole sum saturates.
        reach: the largest absolute value of what is added to 256 times the sum of high bytes.
    """

    high: int
    sum: int
    reach: int

    @property
    def most(self) -> int:
        """The largest absolute value that a word holds on the way."""
        return RAISED * self.high + self.reach


def raised(saturates_at: int, products: int, filter_l1: int, zero_point: int, added: int) -> Raised:
    """Return the limits of a conv.

    Args:
        saturates_at: where its sums saturate.
        products: the most elements of the image that one window can have.
        filter_l1: the largest sum of absolute values of the filter of one output channel, its zero point subtracted.
        zero_point: the zero point of the filter as unsigned bytes.
        added: the largest absolute value of the bias and of what narrowing adds to it.

    >>> raised(2**29, 4608, 30_000, 128, 0)
    Raised(high=2714555, sum=536870912, reach=158055120)
    """
    of_bytes = BYTE * min(BYTE * products, filter_l1 + zero_point * products)
    reach = max(of_bytes, BYTE * max(filter_l1, zero_point)) + added
    return Raised(ceil((saturates_at + reach) / RAISED), saturates_at, reach)


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

    >>> from hexconv.spec.chain import Conv2d
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
    if conv.requantize.engine == "fast":
        added = Step("with what is added", steps[-1].least - MOST_ADDED, steps[-1].most + MOST_ADDED)
        return *steps, added, *_of_engine(chain, index, bias + MOST_ADDED)
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


def _of_engine(chain: Chain, index: int, added: int) -> tuple[Step, Step]:
    """Return the two addends of a convert: the sum of the engine, and the word of its table."""
    conv, zero_point = chain.conv[index], chain.output_zero_point(index) - INTEGER_RANGE[chain.dtype][0]
    products = prod(chain.filter_shapes[index][1:])
    ends = [products * (end - conv.filter_zero_point) for end in INTEGER_RANGE[chain.dtype_of_filters]]
    limit = max(map(abs, ends)) if conv.filter_l1 is None else conv.filter_l1
    least, most = max(min(ends[0], 0), -limit), min(max(ends[1], 0), limit)
    beside = Step("beside bytes", -zero_point * most - added, -zero_point * least + added)
    return Step("of bytes", BYTE * least, BYTE * most), beside


def _plain(total: Step, how: Requantize) -> list[Step]:
    """Return the steps of `hexconv.compute.te.requantized`."""
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


SATURATE = ", or let sums saturate (requantize.saturates_at)"
REMEMBERED = 1024
"""The number of chains whose refusals are kept: every plan of a chain asks for them."""


def bias_limit(chain: Chain, index: int) -> int:
    """Return the largest absolute value that the bias of a conv may have: the stated limit, or else what int32 leaves.

    If the conv states no limit, it is the room that is left beside sums and constants by every kernel that leaves at
    least `LEAST_BIAS_LIMIT`. It is 0 where there is no bias, or no room for one.
    """
    conv = chain.conv[index]
    if not conv.bias:
        return 0
    if conv.bias_limit is not None:
        return conv.bias_limit
    kernels = _kernels(chain, index)
    room = [_largest(lambda bias, kernel=kernel: _fits(chain, index, kernel, bias)) for kernel in kernels]
    return min([left for left in room if left >= LEAST_BIAS_LIMIT], default=max(0, *room))


@lru_cache(REMEMBERED)
def sums_refusals(chain: Chain, kernel: Arithmetic) -> tuple[str, ...]:
    """Say for each conv by how much its sums can leave their integer with a kernel, and what to state; empty if not.

    For hvx, convs with a shift to the left, and filters of int16 whose sums saturate, are left out, since hvx refuses
    them for another reason.
    """
    return tuple(
        _refusal(chain, index, kernel) if kernel in _kernels(chain, index) else "" for index in range(len(chain.conv))
    )


def sums_refusal(chain: Chain, kernel: Arithmetic) -> str:
    """Return the first refusal of a chain's convs; empty if there is none."""
    return next(filter(None, sums_refusals(chain, kernel)), "")


def _refusal(chain: Chain, index: int, kernel: Arithmetic) -> str:
    conv = chain.conv[index]
    bias = stated_bias(conv)
    worst = max(requantisation_steps(chain, index, kernel, bias), key=lambda step: step.excess)
    if not worst.excess:
        return ""
    reached = worst.most if worst.most > -worst.least else worst.least
    told = (
        f"chain.conv[{index}]: {window_products(chain, index)} products can sum to {reached} with {kernel} "
        f"({worst.name}), int{worst.bits} holds {worst.largest}, {worst.excess} less"
    )
    change = f"use fewer input channels or a smaller kernel, or state {_remedy(chain, index, kernel, bias)}"
    return f"{told}; {change}{SATURATE if _may_saturate(chain, index, kernel, bias) else ''}"


def _may_saturate(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> bool:
    """Whether a kernel can have room for the sums of a conv that saturate; of int16 that depends on the limit alone."""
    if chain.conv[index].requantize is None or chain.saturates(index):
        return False
    return chain.dtype == "int16" or _fits(_with_limit(chain, index, LIMITS[-1]), index, kernel, bias)


def _remedy(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> str:
    """Say which limit would make the sums fit: one of the bias, or of the filter where no limit of the bias would."""
    if (left := _largest(lambda limit: _fits(chain, index, kernel, limit))) >= 0 and bias:
        return f"a bias_limit of up to {left}"

    def fits(filter_l1: int, bias: int) -> bool:
        convs = list(chain.conv)
        convs[index] = replace(convs[index], filter_l1=filter_l1)
        return _fits(replace(chain, conv=tuple(convs)), index, kernel, bias)

    if most := _largest(lambda filter_l1: fits(filter_l1, bias), 1):
        return f"a filter_l1 of up to {most}"
    most = _largest(lambda filter_l1: fits(filter_l1, LEAST_BIAS_LIMIT), 1)
    return f"a filter_l1 of up to {most}, with a bias_limit of up to {LEAST_BIAS_LIMIT}"


def _largest(fits: Callable[[int], bool], least: int = 0) -> int:
    """Return the largest number of int32 for which `fits` holds; one less than `least` if none does."""
    return bisect_left(range(least, LARGEST_INT32 + 1), True, key=lambda number: not fits(number)) + least - 1


def _kernels(chain: Chain, index: int) -> tuple[Arithmetic, ...]:
    """Return the kernels whose arithmetic has the requantisation of a conv."""
    how = chain.conv[index].requantize
    is_plain = how is not None and (how.shifts_left or (chain.saturates(index) and chain.dtype_of_filters == "int16"))
    return ("plain",) if is_plain else ("plain", "hvx")


def _fits(chain: Chain, index: int, kernel: Arithmetic, bias: int) -> bool:
    return not any(step.excess for step in requantisation_steps(chain, index, kernel, bias))


Array = NDArray[Any]
LIMITS = tuple(1 << bits for bits in range(30, 23, -1))
"""Where sums of int16 may saturate, the first choice first: the later, the sooner an output has reached its end."""


def saturating(chain: Chain, sums: Sequence[Array], vectors: Mapping[str, Array]) -> Chain:
    """Return an integer chain whose sums saturate where they can leave int32; as it is where a result would change.

    Args:
        chain: the chain, with the limits of its weights.
        sums: for each conv, the largest absolute value of each output channel's sums, bias included.
        vectors: `multiplier1`, `shift1`, ..., [K] each, where a requantisation has one value per channel.
    """
    for index, refusal in enumerate(sums_refusals(chain, "plain")):
        leaves = chain.sum_dtype(index) == "int64" and not chain.saturates(index)
        if (refusal or leaves) and chain.conv[index].requantize:
            chain = _if_saturating(chain, index, _invisible_from(chain, index, sums[index], vectors))
    return chain


def _if_saturating(chain: Chain, index: int, least: float) -> Chain:
    """Return the chain with the largest limit that a kernel has room for, HVX if it can be; `least` is the least."""
    limits = LIMITS if chain.dtype == "int16" else (LARGEST_INT32, *LIMITS)
    tried = [_with_limit(chain, index, limit) for limit in limits if limit >= least]
    for kernel in ("hvx", "plain"):
        for one in tried:
            if not any(sums_refusals(one, of)[index] for of in {kernel, "plain"}):
                return one
    return chain


def _with_limit(chain: Chain, index: int, limit: int) -> Chain:
    convs = list(chain.conv)
    how = convs[index].requantize
    assert how
    convs[index] = replace(convs[index], requantize=replace(how, saturates_at=limit))
    return replace(chain, conv=tuple(convs))


def _invisible_from(chain: Chain, index: int, sums: Array, vectors: Mapping[str, Array]) -> float:
    """Return the least limit that no output shows: each channel is at an end of its range by then, or ends before."""
    how = chain.conv[index].requantize
    assert how
    low, high = how.codes(*INTEGER_RANGE[chain.dtype])
    multiplier, shift = (
        np.asarray(vectors.get(numbered(what, index + 1), getattr(how, what)), np.float64)
        for what in ("multiplier", "shift")
    )
    # One code more than the end, since two roundings may take up to one from it.
    reached = (max(high - how.zero_point, how.zero_point - low) + 1) / (multiplier * 2.0 ** (shift - FRACTION_BITS))
    return float(np.minimum(reached, sums).max())
