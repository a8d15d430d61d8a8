"""Filter caches: the packed filter, re-laid so that the inner loop reads it from first to last vector.

    before: filter[ko, co, kh, kw, ci/4, 32, 4]                    (OIHW8i32o4i, as it arrives)
    after:  cache[group][plane][kh][kw][word of channels][block][32, 4]

A wide group (its four blocks narrow to 128 channels of one pixel) also gets its channels dealt: lane i of vector k
holds channel 4i + k. Where the packed filter has no channel the cache holds the filter's zero point, so that what is
multiplied with it counts nothing, whatever it is. Filters of int16 are staged twice: high bytes, then low bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.block import Block, Number, int32
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.stage import CHANNELS, Group, Plane, Stage

BLOCK_BYTES = 8 * CHANNELS * 4  # 32 by 32 channels of one tap
WORDS_OF_BLOCK = 8


@dataclass(frozen=True)
class Filter:
    """A filter and its cache, both uint8 and flat."""

    stage: Stage
    planes: tuple[Plane, ...]
    groups: tuple[Group, ...]
    packed: tirx.Buffer
    cache: tirx.Buffer

    @property
    def low_bytes(self) -> int:
        """From the high bytes in the cache to the low ones; 0 where elements are bytes."""
        return cache_bytes(self.stage, self.planes) // 2 if self.stage.splits_filter else 0


def cache_bytes(stage: Stage, planes: Sequence[Plane]) -> int:
    """Size of the filter cache of a conv."""
    return stage.out_blocks * steps(stage, planes) * vector.BYTES * len(stage.filter_zero_bytes)


def steps(stage: Stage, planes: Sequence[Plane]) -> int:
    """Filter vectors of a block: words of channels by taps."""
    return stage.taps * sum(plane.steps for plane in planes)


def first_byte(stage: Stage, planes: Sequence[Plane], group: Group, number: Number) -> Number:
    """Where repetition `number` of a group starts in the cache."""
    return (number * group.blocks + group.first_block) * (steps(stage, planes) * vector.BYTES)


def stage_filter(block: Block, filter: Filter) -> None:
    """Fill the filter cache of a conv."""
    for group in filter.groups:
        if filter.stage.is_ragged(group):
            for number in range(group.count):
                _stage_group(block, filter, group, int32(number))
        else:
            block.loop("group", group.count, lambda at, number, group=group: _stage_group(at, filter, group, number))


def _stage_group(block: Block, filter: Filter, group: Group, number: tirx.Expr) -> None:
    stage, first_word = filter.stage, 0
    target = first_byte(stage, filter.planes, group, number)
    for plane in filter.planes:
        _stage_plane(block, filter, group, number, plane, first_word, target)
        first_word += plane.steps
        target += stage.taps * plane.steps * group.blocks * vector.BYTES


def _stage_plane(
    block: Block, filter: Filter, group: Group, number: tirx.Expr, plane: Plane, first_word: int, target: Number
) -> None:
    """The words of one plane of the source; the last word may have channels that the filter lacks."""
    whole = min(plane.steps, max(filter.stage.in_channels // 4 - first_word, 0))
    missing = plane.steps - whole

    def copy(at: Block, tap: tirx.Expr, word: tirx.Expr, present: int) -> None:
        parts = [
            _loaded(at, filter, group, number, part, tap, word + first_word, present)
            if present
            else [vector.filled(zero) for zero in filter.stage.filter_zero_bytes]
            for part in range(group.blocks)
        ]
        for half, vectors in enumerate(zip(*parts, strict=True)):
            for part, value in enumerate(dealt(at, vectors) if group.wide else vectors):
                byte = target + ((tap * plane.steps + word) * group.blocks + part) * vector.BYTES
                at.store(filter.cache, vector.at(byte + half * filter.low_bytes), vector.stored(value))

    def words(at: Block, tap: tirx.Expr) -> None:
        at.loop("word", whole, lambda inner, word: copy(inner, tap, word, 4))
        for word in range(missing):
            present = filter.stage.in_channels - (first_word + whole + word) * 4
            copy(at, tap, int32(whole + word), max(present, 0))

    block.loop("tap", filter.stage.taps, words)


def _loaded(
    block: Block,
    filter: Filter,
    group: Group,
    number: tirx.Expr,
    part: int,
    tap: tirx.Expr,
    word: tirx.Expr,
    present: int,
) -> list[tirx.Expr]:
    """128 elements of the packed filter, `present` of whose 4 input channels exist: a vector, or two of int16."""
    stage = filter.stage
    in_block, inner = tirx.shift_right(word, int32(3)), tirx.bitwise_and(word, int32(WORDS_OF_BLOCK - 1))
    out_block = number * group.blocks + (group.first_block + part)
    tile = (out_block * stage.in_blocks + in_block) * stage.taps + tap
    byte = tile * BLOCK_BYTES + inner * vector.BYTES
    if stage.splits_filter:
        values = _halves(block, filter.packed, byte * 2)
    else:
        value = block.bind("filter", vector.moved(vector.load(filter.packed, byte)), vector.VECTOR)
        values = [vector.flipped(value) if stage.flips_filter else value]
    lanes = stage.channels_of(group, number, part)
    if lanes == CHANNELS and present == 4:
        return values
    zeros = stage.filter_zero_bytes
    return [_or_zero_point(value, zero, lanes, present) for value, zero in zip(values, zeros, strict=True)]


def _halves(block: Block, packed: tirx.Buffer, byte: tirx.Expr) -> list[tirx.Expr]:
    """The high bytes of 128 int16, made unsigned, and their low bytes."""
    lower, upper = (
        block.bind("filter", vector.load(packed, byte + start), vector.VECTOR) for start in (0, vector.BYTES)
    )
    return [vector.flipped(vector.high_bytes(upper, lower)), vector.low_bytes(upper, lower)]


def _or_zero_point(value: tirx.Expr, zero_point: int, lanes: int, present: int) -> tirx.Expr:
    """The first `present` bytes of the first `lanes` words of a vector, and the zero point elsewhere."""
    exists = [lane < lanes and byte < present for lane in range(vector.WORDS) for byte in range(4)]
    mask = vector.repeated([255 if there else 0 for there in exists])
    rest = vector.repeated([0 if there else zero_point for there in exists])
    return tirx.bitwise_or(tirx.bitwise_and(value, mask), rest)


def dealt(block: Block, blocks: Sequence[tirx.Expr]) -> list[tirx.Expr]:
    """Four vectors of 32 channels each to four of every fourth channel: lane i of the k-th is channel 4i + k."""

    def deal(high: tirx.Expr, low: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
        pair = block.bind("pair", vector.deal_words(high, low), "int32x64")
        return vector.lower(pair), vector.upper(pair)

    (even_0, odd_0), (even_1, odd_1) = deal(blocks[1], blocks[0]), deal(blocks[3], blocks[2])
    (first, third), (second, fourth) = deal(even_1, even_0), deal(odd_1, odd_0)
    return [first, second, third, fourth]
