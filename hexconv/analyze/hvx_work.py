"""What the HVX kernels move and multiply, from the shapes and the plan alone: the closed form.

Rows are those of `hexconv.analyze.rolling`: no row is computed twice. A multiplying instruction is 128 MACs, four in
each of 32 lanes, whatever it multiplies: channels that fill up a block or a word, or words of ones, count too.

MACs of a conv, in instructions:

    every pixel     blocks of 32 output channels x taps x words of 4 channels of its source
    tiles overlap   two words more for the pixels of one tile, once a stripe for every group of channels and every
                    length of tile: the last tile starts another, which is never finished
    filter's zero   sums of windows: ahead of the tiles, 32 columns of the source at a time, all rows of taps; or in the
                    tiles, one instruction more for every word of a pixel in every group
    input's zero    the sum of the whole filter, once
    int16           all of it for each plane of bytes of what is read; products for each pair of planes

Input. With a cache its new rows, each once. Read in place, the words of every pixel in every group of output channels,
and what sums windows: a kernel of 3x3 loads a byte up to nine times for each 128 output channels. No cache of ours
holds it meanwhile, so each load counts.

Filters, once: the vectors that have a channel. Output: all of it once, its fringe included. Biases are left out, as
they are for the plain kernel.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, prod

from hexconv.analyze.footprint import DTYPE_BYTES
from hexconv.analyze.hvx import (
    LANES,
    VECTOR_BYTES,
    Source,
    byte_planes,
    filter_zero,
    input_zero,
    padded_columns,
    source_of,
    sums_windows_ahead,
)
from hexconv.analyze.needed import Work
from hexconv.analyze.rolling import stripe_rows_of
from hexconv.spec import Chain, Conv2d, Plan, tensor_extents
from hexconv.spec.bands import Band
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK

MACS = VECTOR_BYTES
"""Of an instruction."""

WORD_BYTES = 4
MOST_BLOCKS = 4  # of a group of output channels
FEW_BLOCKS = 2  # tiles of so few do not overlap
TILE_PIXELS = 4  # of those that do
FIRST_WORDS = 2
SHORT = range(5, 129)  # words of a pixel whose tiles overlap


@dataclass(frozen=True)
class HvxConv:
    """One conv of a chain: how many rows it makes, and from what.

    Attributes:
        chain: that it is in.
        index: in the chain.
        source: what it reads.
        rows_read: of its source that are made, or of the input, copied, in one image.
        rows: of its output that it makes, in one image.
        stripes: that make any.
    """

    chain: Chain
    index: int
    source: Source
    rows_read: int
    rows: int
    stripes: int

    @property
    def spec(self) -> Conv2d:
        """As the chain states it."""
        return self.chain.conv[self.index]

    @property
    def pixels(self) -> int:
        """Of its output, in one image."""
        return self.rows * self.width

    @property
    def width(self) -> int:
        """Of its output."""
        return self.chain.shapes[self.index + 1][2]

    @property
    def words(self) -> int:
        """Of a pixel's window."""
        return prod(self.spec.kernel) * sum(ceil(pixel / WORD_BYTES) for pixel in self.source.pixels_bytes)

    @cached_property
    def groups(self) -> list[int]:
        """Blocks of every group of output channels: 128 channels first, or for the output as even as they come."""
        blocks = ceil(self.spec.out_channels / CHANNEL_BLOCK)
        if self.index < len(self.chain.conv) - 1:
            return [MOST_BLOCKS] * (blocks // MOST_BLOCKS) + [blocks % MOST_BLOCKS] * (blocks % MOST_BLOCKS > 0)
        number = ceil(blocks / MOST_BLOCKS)
        return [blocks // number + (place < blocks % number) for place in range(number)]

    @property
    def sums_ahead(self) -> bool:
        """Whether windows are summed before the tiles, for the filter's zero point."""
        return sums_windows_ahead(self.chain, self.index, self.source)

    @property
    def sums_in_tiles(self) -> bool:
        """Whether tiles sum their windows themselves."""
        return filter_zero(self.chain, self.spec) != 0 and not self.sums_ahead

    @property
    def overlapping(self) -> list[int]:
        """The groups whose tiles overlap: of a short reduction that is one run of doublewords."""
        kernel, pixels = self.spec.kernel, self.source.pixels_bytes
        one_run = kernel[0] == 1 and (kernel[1] == 1 or self.spec.dilation[1] == 1) and len(pixels) == 1
        overlaps = one_run and pixels[0] % (2 * WORD_BYTES) == 0 and self.words in SHORT and not self.sums_in_tiles
        return [blocks for blocks in self.groups if blocks > FEW_BLOCKS] if overlaps else []

    @property
    def unfinished(self) -> int:
        """Pixels of tiles that are started in vain for each group, in one image: one a stripe of every length."""
        lengths = (TILE_PIXELS if self.width >= TILE_PIXELS else 0) + self.width % TILE_PIXELS
        return self.stripes * lengths

    @property
    def window_vectors(self) -> int:
        """Vectors of the source that are summed ahead of the tiles, in one image."""
        if not self.sums_ahead:
            return 0
        of_pixels = sum(
            LANES * pixel // VECTOR_BYTES if pixel >= VECTOR_BYTES else pixel // WORD_BYTES
            for pixel in self.source.pixels_bytes
        )
        return self.rows * self.spec.kernel[0] * ceil(padded_columns(self.chain, self.index) / LANES) * of_pixels


def hvx_work(chain: Chain, plan: Plan) -> Work:
    """What an integer chain with `kernel = "hvx"` moves and multiplies.

    >>> from hexconv.spec import Requantize
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
    >>> work = hvx_work(Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv)), Plan())
    >>> work.traffic_bytes["input"] == 62 * 62 * 9 * 128, work.macs["conv2"] == 60 * 60 * 128 * 9 * 128
    (True, True)
    """
    convs, images = hvx_convs(chain, plan), chain.input[0]
    copied = convs[0].rows_read * prod(chain.input[2:]) * DTYPE_BYTES[chain.dtype]
    loaded = copied if convs[0].source.cache else _loaded_in_place(convs[0])
    filters = {f"filter{conv.index + 1}": _filter_bytes(conv) for conv in convs}
    written = prod(tensor_extents(chain)[-1].packed_shape) * DTYPE_BYTES[chain.output_dtype(len(convs) - 1)]
    traffic = {"input": images * loaded, **filters, "output": written}
    return Work(traffic, {f"conv{conv.index + 1}": MACS * _instructions(conv, images) for conv in convs})


def hvx_convs(chain: Chain, plan: Plan) -> list[HvxConv]:
    """The convs of a chain as HVX kernels compute them."""
    stripes = list(stripe_rows_of(chain, plan.h_split * ROW_BLOCK, Band(0, chain.shapes[-1][1])))
    made = [[stripe.new[tensor] for stripe in stripes] for tensor in range(len(chain.shapes))]
    held = [max(stripe.held[tensor] for stripe in stripes) for tensor in range(len(chain.conv))]
    return [
        HvxConv(
            chain=chain,
            index=index,
            source=source_of(chain, index, held[index]),
            rows_read=sum(read),
            rows=sum(rows),
            stripes=sum(row > 0 for row in rows),
        )
        for index, (read, rows) in enumerate(pairwise(made))
    ]


def _loaded_in_place(conv: HvxConv) -> int:
    """Bytes of one image that the first conv loads from the argument."""
    words = len(conv.groups) * conv.pixels * conv.words + len(conv.overlapping) * conv.unfinished * FIRST_WORDS
    return words * WORD_BYTES + conv.window_vectors * VECTOR_BYTES


def _filter_bytes(conv: HvxConv) -> int:
    """Vectors of 32 output and 4 input channels, for all taps."""
    blocks, channels = sum(conv.groups), conv.chain.shapes[conv.index][3]
    vectors = blocks * prod(conv.spec.kernel) * ceil(channels / WORD_BYTES)
    return vectors * VECTOR_BYTES * DTYPE_BYTES[conv.chain.dtype_of_filters]


def _instructions(conv: HvxConv, images: int) -> int:
    """That multiply, in all images."""
    planes, of_filters = byte_planes(conv.chain.dtype), byte_planes(conv.chain.dtype_of_filters)
    in_tiles = sum(conv.groups) * planes * of_filters + (len(conv.groups) * planes if conv.sums_in_tiles else 0)
    started = sum(conv.overlapping) * conv.unfinished * FIRST_WORDS
    of_filter = sum(conv.groups) * conv.words * of_filters if input_zero(conv.chain, conv.index) else 0
    return images * (conv.pixels * conv.words * in_tiles + started + conv.window_vectors * planes) + of_filter
