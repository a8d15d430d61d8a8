"""The bytes that the plain kernel moves and its MACs, from the shapes and the plan alone: the closed form.

Everything follows from the steps of every conv (`hexconv.analyze.steps`).

Input. Each step of the input read copies the logical elements of its slabs: padding and fringe are written, not read.

Filters. Each step of a conv stages all of its packed filter, one channel tile after the other, fringe included. A step
past the end of the tensor stages it too, though it computes nothing, as in the listings of the source document.
Resident filters are staged once. With ring buffers only steps that make something stage a filter.

Output. Every element of the packed output is written once, its fringe included.

MACs. Each step computes the logical outputs of its slabs; padding that they read is multiplied like anything else.

Biases, vectors and tables go through no cache; `hexconv.analyze.planned` counts them once a call.

Outside of VTCM, what the kernel does in a cache is traffic, too. It reads an element of the source and of the filter
for each multiply-accumulate, and writes all of each block that it makes; where its sums are its results, it reads and
writes one for each multiply-accumulate, too.

Sources: the loop nests of seed document 003; it states none of these figures.
"""

from math import prod

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.cache import DTYPE_BYTES
from hexconv.analyze.footprint import BLOCK, has_accumulator, packed_filter
from hexconv.analyze.needed import Work, macs_per_output
from hexconv.analyze.touched import Bytes
from hexconv.kernel import output_layout
from hexconv.spec.names import conv_name, filter_cache, filter_name, source_cache, target_cache


def plain_work(planned: PlannedBlocks) -> Work:
    """The bytes that a plan moves and the MACs that it computes.

    >>> from hexconv.analyze.rolled_blocks import planned_blocks
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> planned = planned_blocks(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan())
    >>> {name: macs // (64 * 64 * 128 * 128) for name, macs in plain_work(planned).macs.items()}
    {'conv1': 4, 'conv2': 1}
    """
    chain, order = planned.chain, range(len(planned.chain.conv))
    elements = [planned.logical_pixels(tensor) * each.channels for tensor, each in enumerate(planned.extents)]
    traffic = {"input": elements[0] * DTYPE_BYTES[chain.dtype]}
    for index in order:
        filter_bytes = prod(packed_filter(chain, index)) * DTYPE_BYTES[chain.dtype_of_filters]
        traffic[filter_name(index + 1)] = planned.filter_stagings(index) * filter_bytes
    traffic["output"] = prod(output_layout(chain).physical_shape) * DTYPE_BYTES[chain.output_dtype(order[-1])]
    return Work(traffic, {conv_name(i + 1): elements[i + 1] * macs_per_output(chain, i) for i in order})


def plain_touched(planned: PlannedBlocks) -> Bytes:
    """The bytes that the plain kernel reads and writes in each cache in a run."""
    chain, macs, total = planned.chain, plain_work(planned).macs, Bytes()
    for index, tensor in enumerate(planned.extents[1:]):
        products = macs[conv_name(index + 1)]
        target = target_cache(index + 1, len(chain.conv))
        elements = planned.made[index + 1].slabs * tensor.column_blocks * tensor.channel_blocks * prod(BLOCK)
        sum_bytes = DTYPE_BYTES[chain.sum_dtype(index)]
        total[source_cache(index + 1)] += products * DTYPE_BYTES[chain.dtype]
        total[filter_cache(index + 1)] += products * DTYPE_BYTES[chain.dtype_of_filters]
        if has_accumulator(chain, index):
            total[target] += elements * DTYPE_BYTES[chain.output_dtype(index)]
        else:
            total[target] += (2 * products + elements) * sum_bytes
    return total
