"""Lay out once, in numpy, what each output channel of a conv has of its own, as HVX kernels load it.

    offset:  for channel: int32
    scales:  for vector of the sequence (multiplier, shift, mask, half, bias): for channel: int32; where several pixels
             share the vector of the last block, again for each of them

Both are arguments in the place of the bias, and of multipliers and shifts per channel. They have whole blocks of 32
channels. An offset is what a channel's sums start from: its bias, and the correction for the zero point of the input.

    sum((a - za) * (w - zw)) = sum(a * w) - zw * sum(a) - za * sum(w) + n * za * zw

The tiles take care of sum(a). Channels that the source lacks hold its zero point, so that they count nothing, whatever
the filter has there.

Masks and halves (`hexconv.spec.narrowing`) are made of multipliers and shifts: with a multiplier of m * 2**v, m odd, a
tie of 2**t with t = 30 + shift - v, shifts to the right,

    mask = 2**(t + 2) - 1        half = (m modulo 4) * 2**t

Where t + 2 is more than 32, no sum of the conv lies half way.
"""

from collections.abc import Mapping

import numpy as np

from hexconv.kernel.hvx.tiles import WORD_CHANNELS
from hexconv.lower.hvx.inner import InnerConv
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import bias_name, filter_name, numbered
from hexconv.spec.narrowing import FixedPoint
from hexconv.spec.requantize import LARGEST_MULTIPLIER
from hexconv.spec.vectors import OFFSET, SCALES, Array, odd_parts

LAST_TIE = 30
"""The highest bit of a word that can be the half of a tie: the bit above it says whether the result is even."""
NEVER = -(2**31)
WORD_BITS = 32
UNSHIFTED = -64
"""A negative number of bits by which HVX shifts nothing: it reads the low six."""


def laid_out(conv: InnerConv, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the constants of a conv, int32, by the names of their arguments.

    Args:
        conv: the conv.
        given: its filter as it is packed, its bias, its multipliers and its shifts, by the names of these arguments.
    """
    found: dict[str, Array] = {}
    if conv.has_offsets:
        found[numbered(OFFSET, conv.number)] = _offsets(conv, given)
    if isinstance(conv.narrowing, FixedPoint) and conv.narrowing.vectors:
        found[numbered(SCALES, conv.number)] = _scales(conv, conv.narrowing, given)
    return found


def _offsets(conv: InnerConv, given: Mapping[str, Array]) -> Array:
    """Compute what the sums of each channel start from."""
    value = np.full(conv.out_blocks * CHANNEL_BLOCK, conv.offset, np.int64)
    if conv.spec.bias and not conv.adds_bias_last:
        value[: conv.spec.out_channels] += given[bias_name(conv.number)]
    if conv.in_zero:
        value -= conv.in_zero * _weights(conv, given[filter_name(conv.number)].astype(np.int64))
    return _wrapped(value)


def _weights(conv: InnerConv, filter: Array) -> Array:
    """Sum each channel's weights as they are multiplied, less the zero points that tiles subtract for them."""
    if conv.is_depthwise:
        words = filter.reshape(conv.out_blocks, conv.spec.kernel[0], -1, CHANNEL_BLOCK, WORD_CHANNELS)
        taps = words.transpose(0, 3, 1, 2, 4).reshape(conv.out_blocks * CHANNEL_BLOCK, conv.spec.kernel[0], -1)
        return (taps[:, :, : conv.spec.kernel[1]] - conv.filter_zero).sum(axis=(1, 2))
    if not conv.multiplies_source:
        window = conv.spec.kernel[0] * conv.dense.window_bytes if conv.dense else 0
        return _by_channel(conv, _by_words(conv, filter, 1).sum(axis=(1, 2, 5))) - window * conv.filter_zero
    words = _by_words(conv, filter, conv.plane.words)
    total = words[:, :, : conv.multiplied_words].sum(axis=(1, 2, 5))
    summed = conv.filter_steps if conv.sums_windows_ahead else conv.multiplied_steps
    return _by_channel(conv, total) - summed * WORD_CHANNELS * conv.filter_zero


def _by_words(conv: InnerConv, filter: Array, words: int) -> Array:
    """Split a packed filter: groups, runs of `words` words, words, blocks side by side, channels, bytes of a word."""
    return filter.reshape(-1, conv.filter_steps // words, words, conv.side_by_side, CHANNEL_BLOCK, WORD_CHANNELS)


def _by_channel(conv: InnerConv, total: Array) -> Array:
    """Return sums of groups and blocks side by side as one sum for each channel."""
    return total.reshape(-1)[: conv.out_blocks * CHANNEL_BLOCK]


def _scales(conv: InnerConv, how: FixedPoint, given: Mapping[str, Array]) -> Array:
    """Return the values that narrowing has for each channel, one vector of the sequence after the other."""
    made: dict[str, Array] = {}
    if how.saturates_at is not None:
        made["bias"] = np.zeros(conv.out_blocks * CHANNEL_BLOCK, np.int64)
        if conv.spec.bias:
            made["bias"][: conv.spec.out_channels] = given[bias_name(conv.number)]
    if how.multiplier is None:
        made |= _factors(conv, how, given)
    return _wrapped(np.concatenate([_folded(conv, made[name]) for name in how.vectors]))


def _factors(conv: InnerConv, how: FixedPoint, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the multiplier of each channel, and what follows from it: shifts, masks, halves."""
    multiplier = given[numbered("multiplier", conv.number)].astype(np.int64)
    right = np.full_like(multiplier, how.shift) if how.shift is not None else -given[numbered("shift", conv.number)]
    made = {"multiplier": multiplier, "shift": right}
    if how.halves_per_channel:
        made |= _halves(multiplier, right.astype(np.int64))
    if how.doubles_saturating:
        made |= _shifted_by_less(multiplier, right, how.rounds_once)
    return made


def _folded(conv: InnerConv, values: Array) -> Array:
    """Repeat the values of the last block's channels as often as pixels share a vector of its sums."""
    lanes = CHANNEL_BLOCK // conv.units.folded
    last = values[-CHANNEL_BLOCK:]
    return np.concatenate([values[:-CHANNEL_BLOCK], np.tile(last[:lanes], conv.units.folded)])


def _halves(multiplier: Array, right: Array) -> dict[str, Array]:
    """Compute the mask and the half of each channel."""
    odd = odd_parts(multiplier)
    tie = LAST_TIE + right - np.log2(multiplier // odd).astype(np.int64)
    can_be, bound = tie <= LAST_TIE, np.minimum(tie, LAST_TIE)
    return {
        "mask": np.where(can_be, (1 << (bound + 2)) - 1, -1),
        "half": np.where(can_be, (odd & 3) << bound, NEVER),
    }


def _shifted_by_less(multiplier: Array, right: Array, rounds_once: bool) -> dict[str, Array]:
    """Leave the last bit of each shift to the shift by 1 that ends all of them.

    Channels without a shift are marked, so that what they shift is doubled. Where that is the sum, a multiplier below a
    half is doubled instead: such a sum can saturate before its result does.
    """
    has_none = right == 0
    is_small = has_none & (2 * multiplier <= LARGEST_MULTIPLIER) & rounds_once
    return {
        "multiplier": np.where(is_small, 2 * multiplier, multiplier),
        "shift": np.where(has_none & ~is_small, UNSHIFTED, np.maximum(right - 1, 0)),
    }


def _wrapped(values: Array) -> Array:
    """Return values modulo 2**32, as int32."""
    return (values & ((1 << WORD_BITS) - 1)).astype(np.uint32).view(np.int32)
