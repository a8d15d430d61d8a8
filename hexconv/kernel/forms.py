"""How every tensor of a chain lies in the nest: the layouts that its caches and filters have.

The document's nest keeps blocks: activations NHWC8h8w32c, filters OIHW8i32o4i. The nest of `kernel = "hvx"` keeps rows:

    input cache      NHWC         a row of the image is one run, pixels widened to doublewords
    intermediates    NHCW4w32c, NHCW2w64c or NHCW128c: four, two pixels or one are a vector, of as many blocks of
                     channels as its tiles narrow at a time; as wide as their stores reach
    output           NHWC8h8w32c  as the document has it
    filters          OHWI2i(g)o32o4i behind the input, OHIW(8 to 32)i(g)o32o4i behind an intermediate

A filter lies in the order in which the inner loop multiplies it, `g` blocks of 32 output channels side by side, so that
a tile of them is one run. int8 filters are laid out as uint8, 128 larger, as is their zero point.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd

from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Extents, Plan, refusal, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED, ROW_BLOCK

ACTIVATION_TAG = "NHWC8h8w32c"
FILTER_TAG = "OIHW8i32o4i"
FEW_INPUTS_TAG = "OIHW32o"
"""Of groups whose input channels are no whole blocks of 32: depthwise filters would use a 32nd of the above."""
PIXELS_TAG = "NHWC"
PAIR_BYTES = 8
"""Of the words of a pixel that are loaded together."""
VECTOR_BYTES = 128
VECTOR_BLOCKS = 4
"""Blocks of 32 channels of pixels in a vector."""
BLOCK_WORDS = 8
"""Words of 4 channels in a block of 32."""
MOST_BLOCKS = 4
"""Blocks of output channels that a tile of sums in registers has at most."""
FEW_BLOCKS = 2
"""Tiles of so few blocks of output channels are of eight pixels, all others of four."""
FIRST_WORDS = 2
"""Of a tile, that are multiplied while the tile before it is narrowed."""
SHORT_WORDS = 128
"""Under a window whose tiles' start and end count."""
MADE_UNSIGNED = 128
NESTED_DTYPES = ("uint8", "int8")


@dataclass(frozen=True)
class Forms:
    """The layouts of one nest.

    Attributes:
        activations: of the input cache, every intermediate and the output.
        filters: one per conv; both the argument and its cache.
        row_units: per activation, the rows that one step along its axis H counts: 8 or 1.
        channel_units: per activation, the blocks of 32 channels that one step along its axis C counts.
        filter_dtype: of the elements of filters.
        filter_shift: what laying a filter out adds to its elements.
    """

    activations: tuple[Layout, ...]
    filters: tuple[Layout, ...]
    row_units: tuple[int, ...]
    channel_units: tuple[int, ...]
    filter_dtype: str
    filter_shift: int = 0

    @property
    def has_rows(self) -> bool:
        """Whether intermediates are counted in rows, not in slabs of 8."""
        return self.row_units[0] == 1


def forms_of(chain: Chain, plan: Plan) -> Forms:
    """The layouts that a plan's nest has."""
    return rows_forms(chain, plan.k_split) if is_nested(chain, plan) else documented_forms(chain)


def is_nested(chain: Chain, plan: Plan) -> bool:
    """Whether a plan's HVX kernels fill the planned nest.

    They do where the plan has a knob that the kernel of whole chains (`hexconv.schedule.hvx`) has none for.
    """
    default = Plan()
    knobs = ("k_split", "order", "halo", "filters", "buffering")
    stated = any(getattr(plan, knob) != getattr(default, knob) for knob in knobs)
    return stated and can_be_nested(chain, plan)


def can_be_nested(chain: Chain, plan: Plan) -> bool:
    """Whether the planned nest serves a chain with the kernel that a plan asks for, whatever its knobs are."""
    return plan.kernel == "hvx" and chain.dtype in NESTED_DTYPES and not refusal(chain, "hvx")


@lru_cache(REMEMBERED)
def documented_forms(chain: Chain) -> Forms:
    """The layouts of the seed documents.

    >>> from hexconv.spec import Conv2d
    >>> forms = documented_forms(Chain(input=(1, 8, 8, 64), conv=(Conv2d(out_channels=40, kernel=(3, 1)),)))
    >>> forms.filters[0].physical_shape
    (2, 2, 3, 1, 8, 32, 4)
    """
    return Forms(
        activations=tuple(packed(ACTIVATION_TAG, _logical(extents)) for extents in tensor_extents(chain)),
        filters=tuple(documented_filter(chain, index) for index in range(len(chain.conv))),
        row_units=(ROW_BLOCK,) * len(chain.shapes),
        channel_units=(1,) * len(chain.shapes),
        filter_dtype=chain.dtype_of_filters,
    )


def documented_filter(chain: Chain, index: int) -> Layout:
    """The packed filter of conv `index` as the document has it.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=40, kernel=(3, 3), groups=40)
    >>> documented_filter(Chain(input=(1, 8, 8, 40), conv=(conv,)), 0).physical_shape
    (2, 1, 3, 3, 32)
    """
    inputs, grouped = chain.filter_shapes[index][1], chain.conv[index].groups > 1
    tag = FEW_INPUTS_TAG if grouped and inputs % CHANNEL_BLOCK else FILTER_TAG
    return packed(tag, chain.filter_shapes[index])


@lru_cache(REMEMBERED)
def rows_forms(chain: Chain, k_split: int) -> Forms:
    """The layouts of a nest of rows.

    >>> from hexconv.spec import Conv2d
    >>> from hexconv.spec import Requantize
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
    >>> forms = rows_forms(Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv)), 4)
    >>> [layout.physical_shape for layout in (*forms.activations[:2], *forms.filters)]
    [(1, 64, 64, 128), (1, 62, 1, 62, 128), (1, 3, 3, 16, 2, 4, 32, 4), (1, 3, 1, 3, 32, 4, 32, 4)]
    """
    extents = tensor_extents(chain)
    units = tuple(narrowed_blocks(tensor.channel_blocks, k_split) for tensor in extents[1:-1])
    between = (_rows(*each) for each in zip(extents[1:-1], units, strict=True))
    signed = chain.dtype_of_filters == "int8"
    return Forms(
        activations=(
            packed(PIXELS_TAG, _padded(extents[0])),
            *between,
            packed(ACTIVATION_TAG, _logical(extents[-1])),
        ),
        filters=tuple(_rows_filter(chain, index, k_split, unit) for index, unit in enumerate((1, *units))),
        row_units=(*(1 for _ in chain.conv), ROW_BLOCK),
        channel_units=(1, *units, 1),
        filter_dtype="uint8",
        filter_shift=MADE_UNSIGNED if signed else 0,
    )


def tile_blocks(k_split: int) -> int:
    """Blocks of output channels in a tile of sums: at most 4, as even as a step's come.

    >>> [tile_blocks(k_split) for k_split in (1, 4, 5, 8)]
    [1, 4, 3, 4]
    """
    return ceil(k_split / ceil(k_split / MOST_BLOCKS))


def tile_pixels(blocks: int) -> int:
    """Pixels of a tile: as many as make 12 or 16 sums.

    >>> [tile_pixels(blocks) for blocks in (1, 2, 3, 4)]
    [8, 8, 4, 4]
    """
    return 8 if blocks <= FEW_BLOCKS else 4


def interleaved_blocks(out_blocks: int, k_split: int) -> int:
    """Blocks of output channels that lie side by side in a filter: a tile's, where these divide all there are.

    >>> [interleaved_blocks(4, 4), interleaved_blocks(6, 4), interleaved_blocks(3, 8), interleaved_blocks(12, 6)]
    [4, 2, 3, 3]
    """
    split = min(k_split, out_blocks)
    return gcd(gcd(out_blocks, split), tile_blocks(split))


def narrowed_blocks(out_blocks: int, k_split: int) -> int:
    """Blocks of output channels that tiles narrow to one vector: as many as divide a tile and a vector.

    >>> [narrowed_blocks(4, 4), narrowed_blocks(6, 4), narrowed_blocks(3, 8), narrowed_blocks(4, 1)]
    [4, 2, 1, 1]
    """
    return gcd(interleaved_blocks(out_blocks, k_split), VECTOR_BLOCKS)


def overlaps_tiles(rows: int, planes: int, words: int, blocks: int, tiles: int) -> bool:
    """Whether a tile's first words are multiplied while the tile before it is narrowed.

    Worth it where a reduction is short and a tile large; possible where it is one run of words.

    Args:
        rows: of taps.
        planes: of channels that don't lie side by side.
        words: under a window.
        blocks: of output channels of a tile.
        tiles: in a row.
    """
    return rows == planes == 1 and blocks > FEW_BLOCKS and tiles > 1 and FIRST_WORDS < words <= SHORT_WORDS


def has_vector_rows(pixel_bytes: int, columns: int) -> bool:
    """Whether vectors of 128 bytes hold whole pixels, or pixels whole vectors, and rows are whole vectors.

    >>> [has_vector_rows(8, 16), has_vector_rows(8, 17), has_vector_rows(256, 3), has_vector_rows(40, 16)]
    [True, False, True, False]
    """
    fits = VECTOR_BYTES % pixel_bytes == 0 or pixel_bytes % VECTOR_BYTES == 0
    return fits and columns * pixel_bytes % VECTOR_BYTES == 0


def _rows_filter(chain: Chain, index: int, k_split: int, unit: int) -> Layout:
    """The filter of conv `index` in the order in which tiles multiply it; `unit` blocks of its source lie together."""
    side_by_side = interleaved_blocks(ceil(chain.conv[index].out_channels / CHANNEL_BLOCK), k_split)
    inner = f"{side_by_side}o32o4i"
    tag = f"OHIW{BLOCK_WORDS * unit}i{inner}" if index else f"OHWI2i{inner}"
    return packed(tag, chain.filter_shapes[index], logical="OIHW")


def _rows(extents: Extents, unit: int) -> Layout:
    """An intermediate of which `unit` blocks of channels lie together."""
    pixels = VECTOR_BLOCKS // unit
    columns = f"{pixels}w" if pixels > 1 else ""
    return packed(f"NHCW{columns}{unit * CHANNEL_BLOCK}c", _widened(extents, pixels), logical="NHWC")


def _logical(extents: Extents) -> tuple[int, int, int, int]:
    """The stored part of a tensor, NHWC."""
    return (extents.batch, extents.rows, extents.columns, extents.channels)


def _padded(extents: Extents) -> tuple[int, int, int, int]:
    """The same, channels widened to doublewords."""
    batch, rows, columns, channels = _logical(extents)
    return (batch, rows, columns, ceil(channels / PAIR_BYTES) * PAIR_BYTES)


def _widened(extents: Extents, pixels: int) -> tuple[int, int, int, int]:
    """The same, as wide as stores of some pixels reach that begin where the logical columns do."""
    first, end = extents.valid_columns
    reached = first + ceil((end - first) / pixels) * pixels
    batch, rows, columns, channels = _logical(extents)
    return (batch, rows, max(columns, reached), channels)
