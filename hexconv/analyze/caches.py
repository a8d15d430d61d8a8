"""Cache footprints from shapes and plan alone: the closed form of every cache's size.

One outer step computes `k_split` blocks of 32 output channels by `h_split` blocks of 8 rows, over the full width. The
tensors that it needs are found backwards, from the output to the input.

Output cache. It holds one step of the last conv: h_split block rows (all of them if there are fewer), full width,
k_split channel blocks.

Filter caches. Each conv has one, which holds the k_split output-channel blocks of one step, with all input channels and
the whole kernel; a 3x3 kernel makes it 9 times as large as 1x1. Resident filters are staged whole.

Groups. A filter has the input channels of one group. If their number is no multiple of 32, the filter is stored without
blocks of input channels: [32-channel blocks out, channels in, rows, columns, 32]. Everything else is as without groups.

Input cache. It holds the stripe that the first conv reads in one of its steps (`hexconv.analyze.block_nest`).

Intermediates. Each holds the stripe that the next conv reads, with all channels: a conv sums over all input channels,
so all output channels of the conv before it must be there.

Accumulators. Where a conv has an epilogue, its sums live in one block of 8 x 8 x 32 until they are written out.

Double buffering. A cache that is copied to or from more than once has two slots. A ring of the input has as many slabs
more as one step of the first conv adds to its stripe, `step * stride`: they are read ahead. (There are none where a
stride steps over slabs, since the next slabs to read then aren't those that follow.) A cache that is copied once has
one slot.

Knob by knob: `h_split` scales everything that has rows, and each slab of halo is paid once a step, so larger steps
waste less on it. `k_split` scales filter caches and the output cache; intermediates hold all channels whatever it is.
Kernel rows, times dilation, are the halo; kernel columns cost filter elements only, since the width is whole. Stride
multiplies the rows read. Padding makes a tensor longer and wider (`hexconv.spec.extents`), so it counts where a
stripe is the whole tensor, and in the width. Batch costs nothing: one image at a time is cached. The dtype changes
bytes, and integers and float16 add accumulators, as do bias and activation.

Source: seed document 003, "Cache Usage" of each section; where its prose and its TIR differ, its TIR.
"""

from dataclasses import dataclass, replace
from math import prod

from hexconv.analyze.block_nest import PlannedBlocks
from hexconv.spec import Chain, Extents, Plan
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, accumulator, filter_cache, intermediate
from hexconv.spec.places import BUFFER_ROLES, Role

DTYPE_BYTES = {"float32": 4, "float16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "int16": 2}


@dataclass(frozen=True)
class PredictedCache:
    """One cache as the closed form predicts it.

    Attributes:
        name: `input_cache`, `filter1_cache`, `intermediate1`, `accumulator1`, `output_cache`.
        role: what the cache holds, one of `BUFFER_ROLES`.
        number: the number of the conv that it belongs to, from 1: an intermediate or the output belongs to the conv
            that makes it; 0 for the input.
        dtype: the type of an element.
        shape: the packed sizes, in elements.
        copies: how many equal parts the first axis has: one for each thread that has a cache of its own.
        is_vtcm_only: whether there is no such cache outside of VTCM.
    """

    name: str
    role: str
    number: int
    dtype: str
    shape: tuple[int, ...]
    copies: int = 1
    is_vtcm_only: bool = False

    @property
    def place(self) -> Role:
        """The role by which a plan says whether this buffer lies in VTCM or outside."""
        return BUFFER_ROLES[self.role].place

    def is_in_vtcm(self, plan: Plan) -> bool:
        """Whether a plan puts it into VTCM. Words of weights never lie there, nor words of windows beside splats."""
        by_word = self.role == "words" or (self.role == "window" and plan.activations == "splats")
        return plan.is_in_vtcm(self.place) and not by_word

    @property
    def elements(self) -> int:
        """How many elements the cache holds, in all of its copies."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes the cache holds, in all of its copies."""
        return self.elements * DTYPE_BYTES[self.dtype]


BLOCK = (ROW_BLOCK, COLUMN_BLOCK, CHANNEL_BLOCK)
FILTER_BLOCK = (8, 32, 4)


def plain_footprints(planned: PlannedBlocks) -> tuple[PredictedCache, ...]:
    """Predict every cache of a planned chain, in the order in which they are first written.

    >>> from hexconv.analyze.block_nest import planned_blocks
    >>> from hexconv.spec import Conv2d, Plan
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> caches = plain_footprints(planned_blocks(chain, Plan(k_split=2, h_split=2)))
    >>> [(cache.name, cache.elements) for cache in caches][:3]
    [('input_cache', 196608), ('filter1_cache', 73728), ('intermediate1', 196608)]
    """
    chain = planned.chain
    stripe = _stripe(planned.extents[0], planned.slabs[0] + planned.ahead)
    caches = [PredictedCache(INPUT_CACHE, "input", 0, chain.dtype, stripe)]
    for index in range(len(chain.conv)):
        caches.append(_filter_cache(planned, index))
        if has_accumulator(chain, index):
            known = (accumulator(index + 1), "accumulator", index + 1)
            caches.append(PredictedCache(*known, chain.sum_dtype(index), (1, 1, 1, 1, *BLOCK)))
        caches.append(_written_by(planned, index))
    return tuple(replace(each, shape=(2, *each.shape)) if each.name in planned.doubled else each for each in caches)


def _stripe(tensor: Extents, slabs: int) -> tuple[int, ...]:
    """Return the packed shape of a stripe of one image: `slabs` slabs, full width, all channels."""
    return (1, slabs, tensor.column_blocks, tensor.channel_blocks, *BLOCK)


def _filter_cache(planned: PlannedBlocks, index: int) -> PredictedCache:
    """Predict the cache of the filter blocks of one step of conv `index`, or of all blocks if filters are resident."""
    out_blocks, *block = packed_filter(planned.chain, index)
    shape = (out_blocks if planned.plan.filters == "resident" else planned.staged_blocks[index], *block)
    return PredictedCache(filter_cache(index + 1), "filter", index + 1, planned.chain.dtype_of_filters, shape)


def packed_filter(chain: Chain, index: int) -> tuple[int, ...]:
    """Return the shape of the packed filter of conv `index`; its first axis is blocks of 32 output channels."""
    out_channels, inputs, *kernel = chain.filter_shapes[index]
    out_blocks = -(-out_channels // CHANNEL_BLOCK)
    if chain.conv[index].groups > 1 and inputs % CHANNEL_BLOCK:
        return (out_blocks, inputs, *kernel, CHANNEL_BLOCK)
    return (out_blocks, -(-inputs // CHANNEL_BLOCK), *kernel, *FILTER_BLOCK)


def _written_by(planned: PlannedBlocks, index: int) -> PredictedCache:
    """Predict the cache that conv `index` writes: an intermediate, or the output cache if the conv is the last one."""
    number, dtype = index + 1, planned.chain.output_dtype(index)
    stripe = _stripe(planned.extents[number], planned.slabs[number])
    if number < len(planned.chain.conv):
        return PredictedCache(intermediate(number), "intermediate", number, dtype, stripe)
    return PredictedCache(OUTPUT_CACHE, "output", number, dtype, (*stripe[:3], planned.staged_blocks[index], *BLOCK))


def has_accumulator(chain: Chain, index: int) -> bool:
    """Whether conv `index` sums into an accumulator, since an epilogue turns its sums into what it writes."""
    conv = chain.conv[index]
    changes = conv.bias or conv.activation != "none" or conv.requantize is not None
    return changes or chain.output_dtype(index) != chain.sum_dtype(index)
