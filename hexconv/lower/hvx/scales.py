"""Stage the per-channel values of requantisation in scratch, where the kernel reads them.

    scales: for vector of the sequence (multiplier, shift, mask, half): for block of 32 channels: 32 words

Multipliers and shifts are arguments. Masks and halves (`hexconv.spec.narrowing`) are made of both: with a multiplier of
m * 2**v, m odd, a tie of 2**t with t = 30 + shift - v, shifts to the right,

    mask = 2**(t + 2) - 1        half = (m modulo 4) * 2**t

Where t + 2 is more than 32, no sum of the conv lies half way.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx

from hexconv.lower.hvx import vector
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.requantize import Lanes
from hexconv.schedule.block import Block, Number
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import numbered
from hexconv.spec.narrowing import FixedPoint

LAST_TIE = 30
"""Of a sum of 32 bits: half of it and all that it can be added to."""
NEVER = -(2**31)


@dataclass(frozen=True)
class Scales:
    """The scratch that holds the per-channel values of one conv's requantisation.

    Attributes:
        how: the sequence of instructions that narrows.
        channels: the output channels, in whole blocks.
        arguments: the arguments `multiplier` and `shift`, as far as the function has them.
        memory: the int32 buffer of all values.
    """

    how: FixedPoint
    channels: int
    arguments: Mapping[str, tirx.Buffer]
    memory: tirx.Buffer

    def place(self, name: str, first: Number) -> tirx.Ramp:
        """Return the indices where the values `name` of the 32 channels from `first` on lie."""
        return tirx.Ramp(first + self.how.vectors.index(name) * self.channels, 1, CHANNEL_BLOCK)

    def lanes(self, block: Block, first: Number) -> Lanes:
        """Load the values of the 32 channels from `first` on, by name."""
        names = self.how.vectors
        loads = {name: tirx.BufferLoad(self.memory, [self.place(name, first)]) for name in names}
        return {name: block.bind(name, load, vector.VECTOR) for name, load in loads.items()}


def scales_of(conv: InnerConv, arguments: Mapping[str, tirx.Buffer], scope: str) -> Scales | None:
    """Allocate the scratch of a conv whose requantisation has per-channel values; None for other convs."""
    how = conv.narrowing
    if not isinstance(how, FixedPoint) or not how.vectors:
        return None
    channels = conv.out_blocks * CHANNEL_BLOCK
    name, elements = numbered("scales", conv.number), channels * len(how.vectors)
    memory = tirx.decl_buffer((elements,), "int32", name, scope=scope, data_alignment=vector.BYTES)
    given = {what: numbered(what, conv.number) for what in ("multiplier", "shift")}
    return Scales(how, channels, {what: arguments[at] for what, at in given.items() if at in arguments}, memory)


def stage_scales(block: Block, scales: Scales, first: Number) -> None:
    """Compute and store the values of 32 channels from `first` on."""
    lanes = tirx.Ramp(first, 1, CHANNEL_BLOCK)
    loads = {what: tirx.BufferLoad(argument, [lanes]) for what, argument in scales.arguments.items()}
    given = {what: block.bind(what, load, vector.VECTOR) for what, load in loads.items()}
    multiplier = given["multiplier"]
    ready = {"multiplier": multiplier}
    right = vector.splat(scales.how.shift) if scales.how.shift is not None else vector.splat(0) - given["shift"]
    if scales.how.shift is None:
        ready["shift"] = right
    if scales.how.halves_per_channel:
        ready |= _halves(block, multiplier, right)
    for name, value in ready.items():
        block.store(scales.memory, scales.place(name, first), value)


def _halves(block: Block, multiplier: tirx.Expr, right: tirx.Expr) -> Lanes:
    """Compute the masks and halves of 32 channels."""
    lowest = block.bind("lowest", tirx.bitwise_and(multiplier, vector.splat(0) - multiplier), vector.VECTOR)
    powers = block.bind("powers", vector.splat(31) - vector.leading_zeros(lowest), vector.VECTOR)
    tie = block.bind("tie", right + (vector.splat(LAST_TIE) - powers), vector.VECTOR)
    odd = tirx.bitwise_and(vector.shift_right_by(multiplier, powers), vector.splat(3))
    can_be = tie <= vector.splat(LAST_TIE)
    bound = block.bind("bounded", tirx.min(tie, vector.splat(LAST_TIE)), vector.VECTOR)
    # two shifts, since a lane of 32 bits can't be shifted by 32
    above = vector.shift_left_by(vector.shift_left_by(vector.splat(1), bound), vector.splat(1))
    mask = block.bind("mask", above + above - vector.splat(1), vector.VECTOR)
    half = block.bind("half", vector.shift_left_by(odd, bound), vector.VECTOR)
    return {
        "mask": tirx.Select(can_be, mask, vector.splat(-1)),
        "half": tirx.Select(can_be, half, vector.splat(NEVER)),
    }
