"""Read the constants of a conv's channels, which are laid out once (`hexconv.lower.hvx.laid_out`).

Constants are arguments. Where the plan has filters in VTCM, a thread copies them there before it first uses them;
else tiles load them from the argument. Where lanes are pixels they stay outside of VTCM, since scalar loads read them.
"""

from dataclasses import dataclass

from tvm import tirx

from hexconv.lower.hvx import vector
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.requantize import Lanes
from hexconv.lower.vtcm import SCOPE
from hexconv.schedule.block import Block, Number
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import constant_cache, numbered
from hexconv.spec.narrowing import FixedPoint
from hexconv.spec.vectors import OFFSET, SCALES


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
        return {name: block.bind(name, load, vector.VECTOR) for name, load in loads.items()}

    def splats(self, block: Block, channel: Number) -> Lanes:
        """Load the values of a channel, each into every lane, by name."""
        loads = {name: tirx.BufferLoad(self.memory, [self.place(name, channel)]) for name in self.names}
        return {name: block.bind(name, vector.splat(load), vector.VECTOR) for name, load in loads.items()}

    def stage(self, block: Block, first: Number) -> None:
        """Copy the values of the 32 channels from `first` on into the cache."""
        for name in self.names:
            block.store(self.memory, self._lanes(name, first), vector.moved(self._loaded(self.argument, name, first)))

    def _loaded(self, memory: tirx.Buffer, name: str, first: Number) -> tirx.Expr:
        return tirx.BufferLoad(memory, [self._lanes(name, first)])

    def _lanes(self, name: str, first: Number) -> tirx.Ramp:
        return tirx.Ramp(self.place(name, first), 1, CHANNEL_BLOCK)


def offsets_of(conv: InnerConv, scope: str) -> Constants | None:
    """Declare the offset of each channel's sums; None where all channels have the same constant."""
    return _declared(conv, OFFSET, (OFFSET,), scope) if conv.has_offsets else None


def scales_of(conv: InnerConv, scope: str) -> Constants | None:
    """Declare what requantisation has for each channel; None where channels have nothing of their own."""
    how = conv.narrowing
    return _declared(conv, SCALES, how.vectors, scope) if isinstance(how, FixedPoint) and how.vectors else None


def _declared(conv: InnerConv, what: str, names: tuple[str, ...], scope: str) -> Constants:
    """Declare constants of every channel, and their cache where the filters' scope is VTCM."""
    channels = conv.out_blocks * CHANNEL_BLOCK
    elements, name = channels * len(names), numbered(what, conv.number)
    argument = tirx.decl_buffer((elements,), "int32", name, data_alignment=vector.BYTES)
    cache = tirx.decl_buffer((elements,), "int32", constant_cache(name), scope=scope, data_alignment=vector.BYTES)
    return Constants(names, channels, argument, cache if scope == SCOPE and not conv.pixels else None)
