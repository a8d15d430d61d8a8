"""Bytes and MACs of a plan, and the bytes that a nest of rows moves in caches outside of VTCM.

If some caches lie in VTCM and another lies outside, what a kernel does in that other one is traffic: every load and
every store counts, however often it touches the same byte. Copies into a cache and out of it are counted with the
argument that they copy, and filling its padding isn't counted. Counted are caches, and the buffers that hold their
elements in another order: `split`, a source of int16 that is taken apart, and `planes`, a source where lanes are
pixels, or dense rows as often as they are copied. A kernel's sums and constants don't count, nor does what it reads in
`words`, the cache of a filter whose words scalar loads read.

HVX kernels read and write, for a row of outputs:

    source   4 bytes for each word of 4 channels under a window, once for each tile of channels (or two vectors for
             each 32 words of a run, where they are spread over vectors); where the zero point of
             the filter wants windows summed ahead, all vectors of the rows under the row of outputs as well; a
             depthwise conv reads vectors of 4 pixels, those that its windows meet, once for rows made together
    filter   128 bytes for each word, block of 32 channels and tile of pixels; of a depthwise conv, once for rows made
             together, or for each of their tiles
    target   whole vectors, those of the fringe included

Scalar code in their nest reads 4 bytes of the source and 32 of the filter for 8 output channels; product by product, an
element for 8 products (a depthwise conv one each), and one of the filter for each. It writes all that it makes.

Everything follows from the steps of every conv (`hexconv.analyze.block_nest`).

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

from hexconv.analyze.block_nest import PlannedBlocks
from hexconv.analyze.caches import BLOCK, DTYPE_BYTES, has_accumulator, packed_filter
from hexconv.analyze.needed import Work, macs_per_output
from hexconv.kernel import output_layout
from hexconv.kernel.cost import Parts
from hexconv.spec.names import (
    conv_name,
    filter_cache,
    filter_name,
    source_cache,
    target_cache,
)


def plain_work(planned: PlannedBlocks) -> Work:
    """The bytes that a plan moves and the MACs that it computes.

    >>> from hexconv.analyze.block_nest import planned_blocks
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


def plain_touched(planned: PlannedBlocks) -> Parts:
    """The bytes that the plain kernel reads and writes in each cache in a run."""
    chain, macs, total = planned.chain, plain_work(planned).macs, Parts()
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
