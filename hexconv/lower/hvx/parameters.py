"""Parameters of each output channel, laid out once in numpy and read by kernels, and a conv's scratch memory.

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

Constants are arguments. Where the plan has filters in VTCM, a thread copies them there before it first uses them;
else tiles load them from the argument. Where lanes are pixels they stay outside of VTCM, since scalar loads read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from tvm import tirx

from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import VECTOR_BYTES
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.narrow_sums import Lanes
from hexconv.lower.hvx.windows import Windows
from hexconv.spec.activations import TABLE
from hexconv.spec.capacities import SCOPE
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import bias_name, constant_cache, filter_name, numbered
from hexconv.spec.narrowing import FixedPoint, Shifts
from hexconv.spec.requantize import LARGEST_MULTIPLIER
from hexconv.spec.vectors import OFFSET, SCALES, Array, odd_parts
from hexconv.tir.statements import Block, Number

LAST_TIE = 30
"""The highest bit of a word that can be the half of a tie: the bit above it says whether the result is even."""
NEVER = -(2**31)
WORD_BITS = 32
UNSHIFTED = -64
"""A negative number of bits by which HVX shifts nothing: it reads the low six."""


def laid_out(conv: RowConv, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the constants of a conv, int32, by the names of their arguments.

    Args:
        conv: the conv.
        given: its filter as it is packed, its bias, its multipliers and its shifts, by the names of these arguments.
    """
    found: dict[str, Array] = {}
    if conv.has_offsets:
        found[numbered(OFFSET, conv.number)] = offsets(conv, given)
    return found | scales(conv, given)


def offsets(conv: RowConv, given: Mapping[str, Array]) -> Array:
    """Compute what the sums of each channel start from."""
    value = np.full(conv.out_blocks * CHANNEL_BLOCK, conv.offset, np.int64)
    if conv.spec.bias and not conv.adds_bias_last:
        value[: conv.spec.out_channels] += given[bias_name(conv.number)]
    if conv.in_zero:
        weights = conv.form.summed_weights(given[filter_name(conv.number)].astype(np.int64))
        value -= conv.in_zero * weights
    return _wrapped(value)


def scales(conv: RowConv, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the values that narrowing has for each channel by the name of their argument, if there are any."""
    how = conv.narrowing
    return {numbered(SCALES, conv.number): _scales(conv, how, given)} if _has_vectors(how) else {}


def _has_vectors(how: Shifts | FixedPoint | None) -> TypeGuard[FixedPoint]:
    return isinstance(how, FixedPoint) and bool(how.vectors)


def _scales(conv: RowConv, how: FixedPoint, given: Mapping[str, Array]) -> Array:
    """Lay the values that narrowing has for each channel out, one vector of the sequence after the other."""
    made: dict[str, Array] = {}
    if how.saturates_at is not None:
        made["bias"] = np.zeros(conv.out_blocks * CHANNEL_BLOCK, np.int64)
        if conv.spec.bias:
            made["bias"][: conv.spec.out_channels] = given[bias_name(conv.number)]
    if how.multiplier is None:
        made |= _factors(conv, how, given)
    return _wrapped(np.concatenate([_folded(conv, made[name]) for name in how.vectors]))


def _factors(conv: RowConv, how: FixedPoint, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the multiplier of each channel, and what follows from it: shifts, masks, halves."""
    multiplier = given[numbered("multiplier", conv.number)].astype(np.int64)
    right = np.full_like(multiplier, how.shift) if how.shift is not None else -given[numbered("shift", conv.number)]
    made = {"multiplier": multiplier, "shift": right}
    if how.halves_per_channel:
        made |= _halves(multiplier, right.astype(np.int64))
    if how.doubles_saturating:
        made |= _shifted_by_less(multiplier, right, how.rounds_once)
    return made


def _folded(conv: RowConv, values: Array) -> Array:
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


@dataclass(frozen=True)
class Constants:
    """Constants of all output channels of a conv, int32.

    Attributes:
        names: what each channel has, in the order in which it is laid out.
        channels: the output channels, in whole blocks.
        argument: for each name: for each channel: a value.
        cache: the same in VTCM; None where tiles load the argument.
    """

    names: tuple[str, ...]
    channels: int
    argument: tirx.Buffer
    cache: tirx.Buffer | None

    @property
    def memory(self) -> tirx.Buffer:
        """The buffer that tiles load from."""
        return self.argument if self.cache is None else self.cache

    def place(self, name: str, first: Number) -> Number:
        """Return the index of the value `name` of channel `first`."""
        return first + self.names.index(name) * self.channels

    def lanes(self, block: Block, first: Number) -> Lanes:
        """Load the values of the 32 channels from `first` on, by name."""
        loads = {name: self._loaded(self.memory, name, first) for name in self.names}
        return {name: block.bind(name, load, instructions.VECTOR) for name, load in loads.items()}

    def splats(self, block: Block, channel: Number) -> Lanes:
        """Load the values of a channel, each into every lane, by name."""
        loads = {name: tirx.BufferLoad(self.memory, [self.place(name, channel)]) for name in self.names}
        return {name: block.bind(name, instructions.splat(load), instructions.VECTOR) for name, load in loads.items()}

    def stage(self, block: Block, first: Number) -> None:
        """Copy the values of the 32 channels from `first` on into the cache."""
        for name in self.names:
            block.store(
                self.memory, self._lanes(name, first), instructions.moved(self._loaded(self.argument, name, first))
            )

    def _loaded(self, memory: tirx.Buffer, name: str, first: Number) -> tirx.Expr:
        return tirx.BufferLoad(memory, [self._lanes(name, first)])

    def _lanes(self, name: str, first: Number) -> tirx.Ramp:
        return tirx.Ramp(self.place(name, first), 1, CHANNEL_BLOCK)


def offsets_of(conv: RowConv, scope: str) -> Constants | None:
    """Declare the offset of each channel's sums; None where all channels have the same constant."""
    return _declared(conv, OFFSET, (OFFSET,), scope) if conv.has_offsets else None


def scales_of(conv: RowConv, scope: str) -> Constants | None:
    """Declare what requantisation has for each channel; None where channels have nothing of their own."""
    how = conv.narrowing
    return _declared(conv, SCALES, how.vectors, scope) if _has_vectors(how) else None


def _declared(conv: RowConv, what: str, names: tuple[str, ...], scope: str) -> Constants:
    """Declare constants of every channel, and their cache where the filters' scope is VTCM."""
    channels = conv.out_blocks * CHANNEL_BLOCK
    elements, name = channels * len(names), numbered(what, conv.number)
    argument = tirx.decl_buffer((elements,), "int32", name, data_alignment=instructions.BYTES)
    cache = tirx.decl_buffer((elements,), "int32", constant_cache(name), scope=scope, data_alignment=instructions.BYTES)
    return Constants(names, channels, argument, cache if scope == SCOPE and not conv.filter[1].is_words else None)


WHOLE = tirx.Ramp(0, 1, instructions.WORDS)


@dataclass(frozen=True)
class Scratch:
    """The scratch memory of a conv beside its caches, and its constants.

    Attributes:
        offsets: the offset of each channel's sums; None where all channels have the same constant.
        scales: the per-channel values of requantisation, if there are any.
        buffers: the scratch of its form, by what it holds.
        table: the argument that results are looked up in, if there is one.
    """

    offsets: Constants | None
    scales: Constants | None
    buffers: Mapping[str, tirx.Buffer]
    table: tirx.Buffer | None

    @property
    def windows(self) -> Windows | None:
        """The sums of windows for the filter's zero point, where they are made before the tiles."""
        return Windows(self.buffers["columns"], self.buffers["corrections"]) if "columns" in self.buffers else None

    @property
    def split(self) -> tirx.Buffer | None:
        """High and low bytes, apart, of some rows of an int16 source; None where they already lie apart."""
        return self.buffers.get("split")

    @property
    def memory(self) -> list[tirx.Buffer]:
        """The buffers to allocate."""
        offsets, scales = (each.cache if each else None for each in (self.offsets, self.scales))
        others = [buffer for what, buffer in self.buffers.items() if what != "split"]
        return [one for one in (offsets, self.split, scales, *others) if one is not None]

    @property
    def constants(self) -> list[Constants]:
        """The constants of its channels."""
        return [each for each in (self.offsets, self.scales) if each]

    @property
    def staged(self) -> list[Constants]:
        """The constants that are copied into VTCM."""
        return [each for each in self.constants if each.cache is not None]


def scratch_of(conv: RowConv, arguments: Mapping[str, tirx.Buffer]) -> Scratch:
    """Say what scratch a conv needs beside its caches."""
    plan = conv.plan
    beside = plan.scope("intermediates")
    # Tiles load corrections word by word.
    windows = "global" if plan.activations == "splats" else beside
    scopes = {"split": plan.scope("input"), "window": windows}
    buffers = {
        what: tirx.decl_buffer(
            (elements,), dtype, numbered(what, conv.number), scope=scopes.get(role, beside), data_alignment=VECTOR_BYTES
        )
        for what, role, dtype, elements in conv.form.scratch()
    }
    scope, table = plan.scope("filters"), arguments.get(numbered(TABLE, conv.number))
    return Scratch(offsets_of(conv, scope), scales_of(conv, scope), buffers, table)
