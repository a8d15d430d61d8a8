"""How the filters of a nest of rows are packed: in the order in which kernels load them, so that a call lays none out.

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
of a pixel in one plane of the source (`hexconv.kernel.hvx.planes`). As uint8, 128 is added to weights of int8 and to
their zero point; as int8, 128 is subtracted from those of uint8. A zero point of 128 is 0 then. Filters of int16 have
32768 added to each weight. Scalar code in a nest of rows reads filters as tiles of output channels do.
"""

from hexconv.kernel.depthwise import is_depthwise
from hexconv.kernel.forms import Forms, Packing
from hexconv.kernel.grouped import computed_filter, own_words_of, side_by_side
from hexconv.kernel.hvx.blocks import DENSE_UNIT
from hexconv.kernel.hvx.lanes import dense_rows, pixel_lanes
from hexconv.kernel.hvx.tiles import WORD_CHANNELS, unsigned_zero
from hexconv.layout import Layout, packed
from hexconv.spec import Chain
from hexconv.spec.narrowing import MADE_UNSIGNED

DEPTHWISE_TAG, OWN_WORDS_TAG = "OIHW32o4w", "OHIW1i1o32o4i"
MADE_UNSIGNED_HALVES = 1 << 15


def rows_filter(chain: Chain, index: int, forms: Forms, k_split: int, is_hvx: bool) -> tuple[Layout, Packing]:
    """Return the layout of the filter of conv `index`, and how its elements are packed.

    Args:
        chain: the chain, in which convs have the groups that HVX computes (`hexconv.kernel.grouped`).
        index: the index of the conv, from 0.
        forms: the layouts of the activations; its filters are not read.
        k_split: blocks of output channels of a step.
        is_hvx: whether HVX instructions compute the conv.
    """
    shape = computed_filter(chain, index)
    if is_depthwise(chain, index) or own_words_of(chain, index):
        tag = DEPTHWISE_TAG if is_depthwise(chain, index) else OWN_WORDS_TAG
        return packed(tag, shape, logical="OIHW"), _signed(chain, index) if is_hvx else _unsigned(chain)
    if is_hvx and (lanes := pixel_lanes(chain, index, forms, k_split)):
        pixels = f"OHI{lanes.planes.words}iW1o32o4i"
        layout = _in_runs(shape, 1) if lanes.planes.goes_on else packed(pixels, shape, logical="OIHW")
        return layout, _signed(chain, index, is_words=True)
    if is_hvx and dense_rows(chain, index, forms, k_split):
        return _in_runs(shape, side_by_side(chain, index, k_split)), _unsigned(chain, pads_zeros=True)
    return _of_tiles(chain, index, k_split, forms.channel_units[index]), _unsigned(chain)


def _in_runs(shape: tuple[int, ...], side_by_side: int) -> Layout:
    """Return the layout of a filter whose columns and channels are one axis."""
    outputs, inputs, rows, columns = shape
    return packed(f"OHR{side_by_side}o32o4r", (outputs, rows, columns * inputs))


def _of_tiles(chain: Chain, index: int, k_split: int, unit: int) -> Layout:
    """Return the layout in the order of tiles; `unit` channels of the conv's source lie together."""
    inner, shape = f"{side_by_side(chain, index, k_split)}o32o4i", computed_filter(chain, index)
    in_blocks = index > 0 or chain.conv[index].groups > 1
    order = f"HIW{unit // WORD_CHANNELS}i{inner}" if in_blocks else f"HWI{1 if unit == DENSE_UNIT else 2}i{inner}"
    if chain.dtype_of_filters != "int16":
        return packed(f"O{order}", shape, logical="OIHW")
    return packed(f"OB{order}", (*shape, 2), logical="OIHWB")


def _unsigned(chain: Chain, pads_zeros: bool = False) -> Packing:
    """Return the packing of elements as bytes without a sign."""
    shift = {"int8": MADE_UNSIGNED, "int16": MADE_UNSIGNED_HALVES}.get(chain.dtype_of_filters, 0)
    return Packing("uint8", shift, pads_zeros)


def _signed(chain: Chain, index: int, is_words: bool = False) -> Packing:
    """Return the packing of elements as bytes with a sign; without one where their zero point is 0 then."""
    unsigned = _unsigned(chain)
    if not unsigned_zero(chain, index):
        return Packing("uint8", unsigned.shift, True, is_words)
    return Packing("int8", unsigned.shift - MADE_UNSIGNED, True, is_words)
