"""Filter caches: the packed filter, re-laid so that the inner loop reads it from first to last vector.

    before: filter[ko, co, kh, kw, ci/4, 32, 4]                    (OIHW8i32o4i, as it arrives)
    after:  cache[group][plane][kh][kw][word of channels][block][32, 4]

A wide group (its four blocks narrow to 128 channels of one pixel) also gets its channels dealt: lane i of vector k holds
channel 4i + k. Signed filters are stored plus 128, as vrmpy takes unsigned vectors only.
"""

from collections.abc import Sequence

from tvm import tirx

from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.block import Block, int32
from hexconv.schedule.hvx.stage import CHANNELS, Group, Plane, Stage

BLOCK_BYTES = 8 * CHANNELS * 4  # 32 by 32 channels of one tap


def cache_bytes(stage: Stage, planes: Sequence[Plane]) -> int:
    """Size of the filter cache of a conv."""
    return stage.out_blocks * steps(stage, planes) * vector.BYTES


def steps(stage: Stage, planes: Sequence[Plane]) -> int:
    """Filter vectors of a block: words of channels by taps."""
    return stage.kernel[0] * stage.kernel[1] * sum(plane.steps for plane in planes)


def first_byte(stage: Stage, planes: Sequence[Plane], group: Group, number: "int | tirx.Expr") -> "int | tirx.Expr":
    """Where repetition `number` of a group starts in the cache."""
    return (number * group.blocks + group.first_block) * (steps(stage, planes) * vector.BYTES)


def stage_filter(block: Block, stage: Stage, planes: Sequence[Plane], groups: Sequence[Group], packed: tirx.Buffer, cache: tirx.Buffer) -> None:
    """Fill the filter cache of a conv.

    Args:
        block: where to.
        stage: the conv.
        planes: of its source, in the order in which the tile reads them.
        groups: of its output channels.
        packed: the filter, flat, uint8.
        cache: `cache_bytes` of uint8.
    """
    for group in groups:
        ragged = stage.out_channels % CHANNELS and group.first_block + group.blocks * group.count == stage.out_blocks
        for part in range(group.count) if ragged else [None]:
            if part is not None:
                _stage_group(block, stage, planes, group, int32(part), packed, cache)
            else:
                block.loop("group", group.count, lambda inner, number, group=group: _stage_group(inner, stage, planes, group, number, packed, cache))


def _stage_group(block: Block, stage: Stage, planes: Sequence[Plane], group: Group, number: tirx.Expr, packed: tirx.Buffer, cache: tirx.Buffer) -> None:
    taps, in_blocks = stage.kernel[0] * stage.kernel[1], -(-stage.in_channels // CHANNELS)
    target, channel = first_byte(stage, planes, group, number), 0
    for plane in planes:

        def copy(inner: Block, tap: tirx.Expr, word: tirx.Expr, first_word: int = channel // 4, target: "int | tirx.Expr" = target, words: int = plane.steps) -> None:
            in_word = word + first_word
            tile = (tirx.shift_right(in_word, int32(3)) * taps + tap) * BLOCK_BYTES + tirx.bitwise_and(in_word, int32(7)) * vector.BYTES
            loaded = [
                _loaded(inner, stage, packed, (number * group.blocks + group.first_block + part) * (in_blocks * taps * BLOCK_BYTES) + tile, _last(stage, group, number, part))
                for part in range(group.blocks)
            ]
            for part, value in enumerate(_dealt(inner, loaded) if group.wide else loaded):
                at = target + ((tap * words + word) * group.blocks + part) * vector.BYTES
                inner.store(cache, vector.at(at), vector.stored(value))

        block.loop("tap", taps, lambda outer, tap, copy=copy, words=plane.steps: outer.loop("word", words, lambda inner, word: copy(inner, tap, word)))
        channel += plane.channels
        target += taps * plane.steps * group.blocks * vector.BYTES


def _last(stage: Stage, group: Group, number: tirx.Expr, part: int) -> bool:
    """Whether this is the block that the output channels fill only in part."""
    known = number.value if isinstance(number, tirx.IntImm) else -1
    return stage.out_channels % CHANNELS != 0 and int(known) * group.blocks + group.first_block + part == stage.out_blocks - 1


def _loaded(block: Block, stage: Stage, packed: tirx.Buffer, byte: tirx.Expr, part_full: bool) -> tirx.Expr:
    """One vector of the filter: zero where there is no channel, plus 128 where signed."""
    value = block.bind("filter", vector.moved(vector.load(packed, byte)), vector.VECTOR)
    if part_full:
        lanes = tirx.Ramp(int32(0), int32(1), vector.WORDS) < vector.splat(stage.out_channels % CHANNELS)
        value = tirx.bitwise_and(value, tirx.Select(lanes, vector.splat(-1), vector.splat(0)))
    return tirx.bitwise_xor(value, vector.splat(-0x7F7F7F80)) if stage.signed_filter else value


def _dealt(block: Block, blocks: Sequence[tirx.Expr]) -> list[tirx.Expr]:
    """Four vectors of 32 channels each to four of every fourth channel: lane i of the k-th is channel 4i + k."""

    def deal(high: tirx.Expr, low: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
        pair = block.bind("pair", vector.deal_words(high, low), "int32x64")
        return vector.lower(pair), vector.upper(pair)

    (even_0, odd_0), (even_1, odd_1) = deal(blocks[1], blocks[0]), deal(blocks[3], blocks[2])
    (first, third), (second, fourth) = deal(even_1, even_0), deal(odd_1, odd_0)
    return [first, second, third, fourth]
