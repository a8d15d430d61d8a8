"""How many parts (`hexconv.analyze.nest_packets`) a conv takes that scalar code computes.

A conv of 8 output channels or fewer has one group of lanes, and LLVM leaves out what only lanes without a channel do.
Where there are more groups, a loop over them computes all lanes, and the last channel is looked for in each of them.
"""

from math import ceil

from hexconv.analyze.packet_parts import Parts, Spent
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.scalar import SCALAR_LANES, WORD_LANES, sums_words
from hexconv.spec.activations import TABLE
from hexconv.spec.vectors import whole_channels

SCALAR_PARTS = (
    "word",
    "scalar_run",
    "product",
    "tap_run",
    "pixel",
    "lane_group",
    "element",
    "scaled",
    "scaled_even",
    "held",
    "looked_up",
    "ragged",
    "unsure",
    "scalar_row",
    "scalar_fill",
)
"""The parts of convs that no HVX kernel serves, so that scalar code computes them."""


def on_scalar(planned: PlannedRows, index: int) -> Spent:
    """Count the parts of a conv that scalar code computes."""
    conv, work, (first, end) = (
        planned.chain.conv[index],
        planned.scalar(index),
        planned.extents[index + 1].valid_columns,
    )
    pixels, stored, channels = end - first, planned.source_columns(index + 1), whole_channels(conv.out_channels)
    words = work.words * _share_of_pairs(conv.out_channels) + work.window_words
    row = Parts(scalar_row=1, scalar_fill=(stored - pixels) * channels + pixels * (channels - work.lanes))
    row.add(Parts(pixel=1, word=words, product=work.products, lane_group=work.lanes / SCALAR_LANES), pixels)
    row["scalar_run" if sums_words(planned.chain, index) else "tap_run"] = work.runs * pixels
    row.add(_elements(planned, index), pixels)
    blank = Parts(scalar_row=1, scalar_fill=stored * channels)
    return Spent(row, blank, Parts(step=planned.channel_tiles(index)), Parts(word=work.filter_words))


def _share_of_pairs(channels: int) -> float:
    """Return the share of the pairs of lanes that have a channel, where there is one group of lanes.

    >>> [_share_of_pairs(channels) for channels in (1, 3, 8, 9)]
    [0.25, 0.5, 1.0, 1.0]
    """
    return min(ceil(channels / WORD_LANES) * WORD_LANES / SCALAR_LANES, 1.0)


def _elements(planned: PlannedRows, index: int) -> Parts:
    """Count the elements that the sums of a pixel become, by what each takes."""
    conv = planned.chain.conv[index]
    is_one_group = conv.out_channels <= SCALAR_LANES
    there = conv.out_channels if is_one_group else planned.scalar(index).lanes
    is_ragged = not is_one_group and conv.out_channels % SCALAR_LANES > 0
    parts = Parts(
        element=there, ragged=there * is_ragged, unsure=there * is_ragged * (planned.channel_tiles(index) > 1)
    )
    if how := conv.requantize:
        parts["scaled"] = there
        parts["scaled_even"] = there * (how.rounding == "even")
        parts["held"] = there * (how.clamp is not None)
        parts["looked_up"] = there * (conv.activation == TABLE)
    return parts
