"""What is added to the sums of a channel: its bias, and the zero point of the input.

    sum((a - za) * (w - zw)) = sum(a * w) - zw * sum(a) - za * sum(w) + n * za * zw

`sum(a)` is the business of `windows`; the rest is a number per output channel, made once from the staged filter.
"""

from tvm import tirx

from hexconv.schedule.block import Block, int32, vector_register
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.filters import Filter, dealt, first_byte, steps
from hexconv.schedule.hvx.stage import CHANNELS, Group

ONES = 0x01010101


def stage_offsets(block: Block, filter: Filter, bias: tirx.Buffer | None, offsets: tirx.Buffer) -> None:
    """Fill `offsets`, int32 [blocks * 32], in the channel order of the filter cache."""
    if bias is not None:
        _pad_bias(block, bias, offsets, filter.stage.out_channels)
    for group in filter.groups:
        block.loop(
            "group", group.count, lambda at, number, group=group: _group(at, filter, group, number, bias, offsets)
        )


def _pad_bias(block: Block, bias: tirx.Buffer, offsets: tirx.Buffer, channels: int) -> None:
    block.loop("channel", channels, lambda at, index: at.store(offsets, index, tirx.BufferLoad(bias, [index])))
    rest = int(offsets.shape[0]) - channels
    block.loop("channel", rest, lambda at, index: at.store(offsets, index + channels, int32(0)))


def _group(
    block: Block, filter: Filter, group: Group, number: tirx.Expr, bias: tirx.Buffer | None, offsets: tirx.Buffer
) -> None:
    stage = filter.stage
    places = [(number * group.blocks + group.first_block + part) * CHANNELS for part in range(group.blocks)]
    constant = vector.splat(vector.signed(stage.offset + words_of(filter) * 4 * stage.in_zero * stage.filter_zero))
    biases = [tirx.BufferLoad(offsets, [tirx.Ramp(place, 1, CHANNELS)]) for place in places] if bias is not None else []
    biases = [block.bind("bias", value, vector.VECTOR) for value in biases]
    added = dealt(block, biases) if biases and group.wide else biases
    starts = [value + constant for value in added] or [constant] * group.blocks
    sums = [_both_halves(block, filter, group, number, part) if stage.in_zero else None for part in range(group.blocks)]
    for place, start, total in zip(places, starts, sums, strict=True):
        value = start if total is None else start - total * vector.splat(stage.in_zero)
        block.store(offsets, tirx.Ramp(place, 1, CHANNELS), value)


def words_of(filter: Filter) -> int:
    """Words that a sum multiplies, those without channels included."""
    return steps(filter.stage, filter.planes)


def _both_halves(block: Block, filter: Filter, group: Group, number: tirx.Expr, part: int) -> tirx.Expr:
    """The sum of a channel's filter, per lane."""
    total = _filter_sum(block, filter, group, number, part, 0)
    if not filter.low_bytes:
        return total
    return vector.shift_left_add(_filter_sum(block, filter, group, number, part, filter.low_bytes), total, 8)


def _filter_sum(block: Block, filter: Filter, group: Group, number: tirx.Expr, part: int, start: int) -> tirx.Expr:
    """The sum of a channel's bytes in the cache, from `start` on."""
    register = vector_register(block, "filter_sum")
    whole = tirx.Ramp(0, 1, vector.WORDS)
    block.store(register, whole, vector.splat(0))
    first = first_byte(filter.stage, filter.planes, group, number) + start

    def add(at: Block, step: tirx.Expr) -> None:
        weights = vector.load(filter.cache, first + (step * group.blocks + part) * vector.BYTES)
        at.store(register, whole, vector.dot4_add(tirx.BufferLoad(register, [whole]), weights, int32(ONES)))

    block.loop("step", words_of(filter), add)
    return block.bind("filter_sum", tirx.BufferLoad(register, [whole]), vector.VECTOR)
