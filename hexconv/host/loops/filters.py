"""Filter caches: the packed filter, re-laid so that the inner loop reads it from first to last vector.

    before: filter[ko, ci/32, kh, kw, ci/4, 32 k, 4 ci]           (OIHW8i32o4i, as it arrives)
    after:  cache[group][kh][kw][ci][vectors of the group]        (a vector: consecutive output channels)

Channels that the filter's last block lacks are neither read as inputs nor used as outputs.
"""

import math
from dataclasses import dataclass

from tvm import tirx

from hexconv.host.loops import vector
from hexconv.host.loops.stage import Stage
from hexconv.host.registers import Registers
from hexconv.host.tiles import Tiling, split_evenly
from hexconv.schedule.block import Block, Number, int32
from hexconv.spec.extents import CHANNEL_BLOCK

WORD = 4  # The packed filter has this many input channels side by side.
BLOCK_ELEMENTS = CHANNEL_BLOCK * CHANNEL_BLOCK


@dataclass(frozen=True)
class Group:
    """`count` times `vectors` vectors of output channels, from vector `first` on."""

    first: int
    count: int
    vectors: int

    def vector(self, number: Number, part: int) -> Number:
        """Return the index of a vector among all vectors of the conv."""
        return number * self.vectors + (self.first + part)


@dataclass(frozen=True)
class Filter:
    """A filter, flat, and its cache."""

    stage: Stage
    registers: Registers
    tiling: Tiling
    packed: tirx.Buffer
    cache: tirx.Buffer

    @property
    def vectors(self) -> int:
        """The number of vectors of output channels."""
        return math.ceil(self.stage.conv.out_channels / self.registers.lanes)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of vectors, each with as many vectors as a tile has, or nearly."""
        groups, first = [], 0
        for count, vectors in split_evenly(self.vectors, self.tiling.vectors):
            groups.append(Group(first, count, vectors))
            first += count * vectors
        return tuple(groups)

    def first_element(self, group: Group, number: Number) -> Number:
        """Return where repetition `number` of a group starts in the cache."""
        return group.vector(number, 0) * (self.stage.taps * self.stage.in_channels * self.registers.lanes)


def cache_elements(stage: Stage) -> int:
    """Return the elements of the filter cache of a conv."""
    return stage.out_blocks * CHANNEL_BLOCK * stage.taps * stage.in_channels


def stage_filter(block: Block, filter: Filter, share: Number, shares: int) -> None:
    """Fill part `share` of `shares` of the cache, by the repetitions of each group."""

    def stage(group: Group) -> None:
        first, end = (tirx.floordiv(edge * group.count, int32(shares)) for edge in (share, share + 1))
        block.loop("group", end - first, lambda at, index: _stage_group(at, filter, group, index + first))

    for group in filter.groups:
        stage(group)


def _stage_group(block: Block, filter: Filter, group: Group, number: tirx.Expr) -> None:
    """Stage all taps and input channels of a group, four input channels at a time."""
    stage = filter.stage
    words, rest = divmod(stage.in_channels, WORD)

    def taps(at: Block, tap: tirx.Expr) -> None:
        at.loop("word", words, lambda inner, word: _stage_word(inner, filter, group, number, tap, word, WORD))
        if rest:
            _stage_word(at, filter, group, number, tap, int32(words), rest)

    block.loop("tap", stage.taps, taps)


def _stage_word(
    block: Block, filter: Filter, group: Group, number: tirx.Expr, tap: tirx.Expr, word: tirx.Expr, present: int
) -> None:
    """Stage up to four input channels of all vectors of a group: load four together, store a vector for each."""
    stage, lanes = filter.stage, filter.registers.lanes
    words_of_block = CHANNEL_BLOCK // WORD
    in_block, inner = tirx.floordiv(word, int32(words_of_block)), tirx.floormod(word, int32(words_of_block))
    target = block.bind(
        "target",
        filter.first_element(group, number) + (tap * stage.in_channels + word * WORD) * (group.vectors * lanes),
    )
    for part in range(group.vectors):
        channel = group.vector(number, part) * lanes
        out_block, first = tirx.floordiv(channel, int32(CHANNEL_BLOCK)), tirx.floormod(channel, int32(CHANNEL_BLOCK))
        tile = (out_block * stage.in_blocks + in_block) * stage.taps + tap
        source = tile * BLOCK_ELEMENTS + inner * (CHANNEL_BLOCK * WORD) + first * WORD
        loaded = block.bind("loaded", vector.load(filter.packed, source, WORD * lanes), f"float32x{WORD * lanes}")
        for channel in range(present):
            dealt = tirx.Shuffle([loaded], [int32(WORD * lane + channel) for lane in range(lanes)])
            vector.store(block, filter.cache, target + (channel * group.vectors + part) * lanes, dealt, lanes)
