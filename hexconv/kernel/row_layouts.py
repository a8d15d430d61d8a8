"""Layouts of the nest of rows of `kernel = "hvx"`: activations by rows, filters in the order of their loads.

input cache      NHWC         a row of the image is one run, pixels widened to doublewords; those of 1 to 3
                                  channels stay dense where that takes fewer packets (`hexconv.kernel.dense`)
    intermediates    NHCW4w32c, NHCW2w64c or NHCW128c: four, two pixels or one are a vector, of as many blocks of
                     channels as its tiles narrow at a time; as wide as their stores reach. NHCW8w16c, NHCW16w8c or
                     NHCW32w4c where these are filled up less and take no more packets (`hexconv.kernel.channel_blocks`)
    output cache     NHWC8h8w32c  as the document has it; kept in rows like an intermediate (of int16 NHCW2w32c, of
                     sums NHCW32c), where the output lies in rows itself or a stripe is some of its rows
    filters          in the order in which the inner loop multiplies them (`hexconv.kernel.row_layouts`)

A conv of several groups (`hexconv.kernel.grouped`) reads NHCW4w32c, or an input as NHCW32c, which has the same order in
memory, as wide as its form loads.

int16 has one digit more, B: the bytes of an element, the high one first. Intermediates are then NHCBW4w32c and the
like, so that a row of high bytes lies beside one of low bytes. The input cache holds the elements as they arrive.

lanes are           filter                                    elements
    output channels     OHWI2i(g)o32o4i behind the input,         uint8
                        OHIW(8 to 32)i(g)o32o4i behind an
                        intermediate; OBHWI.. of int16
    the same, on        OHR(g)o32o4r: words of the run of bytes   uint8
    dense rows          that a row of a window is
    pixels              OHI(w)iW1o32o4i: for a row of taps, for   int8, or uint8 where their zero point is 0; in words
                        4 channels: a word of each tap;           that scalar loads read
                        OHR1o32o4r where words go on
    the same, in        OHIW8i(g)o32o4i: the blocks around its    uint8
    groups              diagonal (`hexconv.kernel.grouped`)
    the same, in        OHIW1i1o32o4i: for a row of taps, for     int8, or uint8 where their zero point is 0
    groups of 4 or 8    4 channels of a group: each tap
    channels            OIHW32o4w: words of 4 taps of a row       int8, or uint8 where their zero point is 0

`g` blocks of 32 output channels lie side by side, so that a tile of them is one run; `w` words of 4 channels are those
of a pixel in one plane of the source (`hexconv.kernel.planes`). As uint8, 128 is added to weights of int8 and to
their zero point; as int8, 128 is subtracted from those of uint8. A zero point of 128 is 0 then. Filters of int16 have
32768 added to each weight. Scalar code in a nest of rows reads filters as tiles of output channels do.
"""

from dataclasses import replace
from functools import lru_cache
from math import ceil, gcd

from hexconv.kernel.channel_blocks import chosen_blocks
from hexconv.kernel.engine import in_croutons
from hexconv.kernel.form import columns_read, tile_of_groups, without_groups
from hexconv.kernel.layouts import ACTIVATION_TAG, NestLayouts, documented_layouts, logical, output_layout
from hexconv.kernel.row_conv import ELEMENT_BYTES, RowConv, lying, with_split
from hexconv.kernel.tiles import PAIR_BYTES, VECTOR_BLOCKS, VECTOR_BYTES, narrowed_blocks
from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Extents, Plan, choose_kernels, kernel_of, nest_of, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, REMEMBERED, ROW_BLOCK
from hexconv.spec.kernels import Kernel
from hexconv.spec.phases import in_phases
from hexconv.spec.strips import in_strips

PIXELS_TAG = "NHWC"
BLOCKS_TAG = "NHCW32c"


@lru_cache(REMEMBERED)
def rows_layouts(chain: Chain, k_split: int, has_output_rows: bool, kernels: tuple[Kernel, ...]) -> NestLayouts:
    """The layouts of all tensors of a chain in a nest of rows.

    Args:
        chain: a chain of integers.
        k_split: `k_split` of the plan.
        has_output_rows: whether the output cache is kept in rows, too (`keeps_output_rows`).
        kernels: the kernel of each conv.

    >>> from hexconv.spec import Conv2d
    >>> from hexconv.spec import Requantize
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
    >>> layouts = rows_layouts(Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv)), 4, False, ("hvx",) * 2)
    >>> [layout.physical_shape for layout in (*layouts.activations[:2], *layouts.filters)]
    [(1, 64, 64, 128), (1, 62, 1, 62, 128), (1, 3, 3, 16, 2, 4, 32, 4), (1, 3, 1, 3, 32, 4, 32, 4)]
    """
    chain = without_groups(chain)
    extents, blocks = tensor_extents(chain), _intermediate_units(chain, k_split)
    output_unit = _output_unit(chain, k_split) if has_output_rows else 1
    halves = chain.dtype == "int16"
    wide = (
        _blocks(_widest(chain, 0)) if _reads_blocks(chain, 0) else packed(PIXELS_TAG, _pixels(chain)),
        *(_rows(_widest(chain, tensor), some, halves) for tensor, some in enumerate(blocks, start=1)),
        _output_rows(chain, output_unit) if has_output_rows else packed(ACTIVATION_TAG, logical(extents[-1])),
    )
    units = (1, *blocks, output_unit)
    rows = (*(1 for _ in chain.conv), 1 if has_output_rows else ROW_BLOCK)
    lies = [lying(layout, some * CHANNEL_BLOCK, each) for layout, some, each in zip(wide, units, rows, strict=True)]
    lies = chosen_blocks(chain, lies, [kernel == "hvx" for kernel in kernels], k_split)
    plan = with_split(k_split)
    convs = [RowConv(chain, index, lies[index], lies[index + 1], each, plan) for index, each in enumerate(kernels)]
    return NestLayouts(
        activations=tuple(each.layout for each in lies),
        output=output_layout(chain),
        filters=tuple(conv.filter[0] for conv in convs),
        row_units=rows,
        channel_units=tuple(each.unit for each in lies),
        packings=tuple(conv.filter[1] for conv in convs),
    )


def layouts_of(chain: Chain, plan: Plan) -> NestLayouts:
    """The layouts of all tensors of a chain in its plan's nest; of strips, where the plan makes strips."""
    if nest_of(chain, plan) != "rows":
        kernel = kernel_of(chain, plan)
        nest = in_phases(chain, kernel, plan.padding_rows)
        return in_croutons(nest, documented_layouts(nest)) if kernel == "hmx" else documented_layouts(nest)
    return planned_layouts(*in_strips(chain, plan), tuple(choice.used for choice in choose_kernels(chain, plan)))


def planned_layouts(chain: Chain, plan: Plan, kernels: tuple[Kernel, ...]) -> NestLayouts:
    """Return the layouts of all tensors of a chain in the nest of rows of a plan; `kernels` are those of its convs."""
    return rows_layouts(chain, plan.k_split, keeps_output_rows(chain, plan), kernels)


def keeps_output_rows(chain: Chain, plan: Plan) -> bool:
    """Whether the output cache of a nest of rows is kept in rows: where the output is, or a stripe is some rows."""
    return plan.rows is not None or chain.output_layout != ACTIVATION_TAG


def _intermediate_units(chain: Chain, k_split: int) -> tuple[int, ...]:
    """Blocks of channels that lie together in each intermediate: one where its reader wants each block apart."""
    readers = range(1, len(chain.conv))
    return tuple(1 if _reads_blocks(chain, index) else _narrowed(chain, index - 1, k_split) for index in readers)


def _reads_blocks(chain: Chain, index: int) -> bool:
    """Whether blocks of 32 channels lie apart in what conv `index` reads: it multiplies some of them, or one a lane."""
    return chain.conv[index].groups > 1


def _narrowed(chain: Chain, index: int, k_split: int) -> int:
    """Blocks of channels that tiles of conv `index` narrow to one vector."""
    if chain.conv[index].groups > 1:
        return gcd(tile_of_groups(chain, index, k_split), VECTOR_BLOCKS)
    return narrowed_blocks(tensor_extents(chain)[index + 1].channel_blocks, k_split)


def _output_unit(chain: Chain, k_split: int) -> int:
    """Blocks of channels that lie together in an output cache in rows: several where bytes of an output do."""
    if chain.output_layout != PIXELS_TAG or ELEMENT_BYTES[chain.output_dtype(len(chain.conv) - 1)] > 1:
        return 1
    return _narrowed(chain, len(chain.conv) - 1, k_split)


def _output_rows(chain: Chain, unit: int) -> Layout:
    """An output cache in rows: vectors of `unit` blocks of channels, as many rows and columns as the output has."""
    output = tensor_extents(chain)[-1]
    if chain.output_layout == ACTIVATION_TAG:
        output = replace(output, rows=output.row_blocks * ROW_BLOCK, columns=output.column_blocks * COLUMN_BLOCK)
    last = len(chain.conv) - 1
    pixels = VECTOR_BLOCKS // unit // ELEMENT_BYTES[chain.output_dtype(last)]
    columns = f"{pixels}w" if pixels > 1 else ""
    return packed(f"NHCW{columns}{unit * CHANNEL_BLOCK}c", _widened(output, pixels), logical="NHWC")


@lru_cache(REMEMBERED)
def _rows(extents: Extents, unit: int, halves: bool) -> Layout:
    """An intermediate of which `unit` blocks of channels lie together, its bytes apart if they are two."""
    pixels = VECTOR_BLOCKS // unit
    columns = f"{pixels}w" if pixels > 1 else ""
    shape, pixel = _widened(extents, pixels), f"W{columns}{unit * CHANNEL_BLOCK}c"
    return (
        packed(f"NHCB{pixel}", (*shape, 2), logical="NHWCB") if halves else packed(f"NHC{pixel}", shape, logical="NHWC")
    )


def _blocks(extents: Extents) -> Layout:
    """An input whose blocks of 32 channels lie apart, in rows of whole words of 4 pixels: the order of `_rows`."""
    batch, rows, columns, channels = logical(extents)
    return packed(BLOCKS_TAG, (batch, rows, ceil(columns / VECTOR_BLOCKS) * VECTOR_BLOCKS, channels), logical="NHWC")


def _padded(extents: Extents) -> tuple[int, int, int, int]:
    """The shape of the stored part, with its channels rounded up to doublewords."""
    batch, rows, columns, channels = logical(extents)
    return (batch, rows, columns, ceil(channels / PAIR_BYTES) * PAIR_BYTES)


def _pixels(chain: Chain) -> tuple[int, int, int, int]:
    """The shape of an input in pixels; rows that a conv adds are whole vectors, since they are read by these."""
    batch, rows, columns, channels = _padded(tensor_extents(chain)[0])
    is_added = len(chain.readers[0]) > 1 or (chain.conv[0].add is not None)
    pixels = VECTOR_BYTES // gcd(channels, VECTOR_BYTES) if is_added else 1
    return batch, rows, ceil(columns / pixels) * pixels, channels


@lru_cache(REMEMBERED)
def _widest(chain: Chain, tensor: int) -> Extents:
    """The stored part of a tensor, as wide as what forms load of it in blocks of 32 channels."""
    extents = tensor_extents(chain)[tensor]
    return replace(extents, columns=max(extents.columns, columns_read(chain, tensor, CHANNEL_BLOCK)))


def _widened(extents: Extents, pixels: int) -> tuple[int, int, int, int]:
    """The shape of the stored part, as wide as stores of `pixels` pixels from the first logical column on reach."""
    first, end = extents.valid_columns
    reached = first + ceil((end - first) / pixels) * pixels
    batch, rows, columns, channels = logical(extents)
    return (batch, rows, max(columns, reached), channels)
