"""Rules of scalar code for a conv in a nest of rows: the channels that it computes together, and its work per pixel.

Bytes are multiplied word by word: an instruction takes 4 input channels of 2 output channels, 8 products. The zero
points come off the sums, as in the HVX kernels:

    sum((a - za) * (w - zw)) = sum(a * w) - zw * sum(a) - za * sum(w) + n * za * zw

The window is summed once for each pixel of a step, the filter once per run. A depthwise conv, and a conv over int16,
multiplies element by element and subtracts the zero points first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from hexconv.kernel.channels import of_tiles
from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.depthwise import is_depthwise, of_channels
from hexconv.kernel.form import Form, Memory, unsigned_packing
from hexconv.kernel.grouped import diagonal_of, grouped_words_of, in_grouped_words
from hexconv.kernel.layouts import Diagonal, Packing
from hexconv.kernel.row_conv import ELEMENT_BYTES, RowConv
from hexconv.kernel.tiles import BYTES, WORD_CHANNELS
from hexconv.layout import Layout
from hexconv.spec.activations import TABLE
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import filter_cache, source_cache, target_cache
from hexconv.spec.vectors import Array, whole_channels

SCALAR_LANES = 8
"""Output channels whose sums are in registers together; a word of the source is loaded once for all of them."""
assert CHANNEL_BLOCK % SCALAR_LANES == 0
WORD_LANES = 2
"""Output channels in a doubleword of a packed filter."""
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


def scalar_channels(out_channels: int) -> int:
    """Output channels that are computed, with those that only fill the last lanes.

    >>> [scalar_channels(channels) for channels in (1, 8, 33)]
    [8, 8, 40]
    """
    return ceil(out_channels / SCALAR_LANES) * SCALAR_LANES


@dataclass(frozen=True)
class ScalarWork:
    """The work of scalar code for a conv: for one pixel, except `filter_words`.

    Attributes:
        lanes: output channels, with those that only fill the last lanes.
        runs: how often a loop over words or products is entered.
        words: instructions that multiply 8 bytes of the source and of the filter.
        window_words: instructions that sum 4 channels of the source.
        products: products of single elements.
        source_elements: elements of the source that are loaded.
        filter_words: instructions that sum the filter, once for all pixels.
    """

    lanes: int
    runs: int
    words: int = 0
    window_words: int = 0
    products: int = 0
    source_elements: int = 0
    filter_words: int = 0

    @property
    def weights(self) -> int:
        """Elements of the filter that are loaded for a pixel."""
        return self.words * WORD_CHANNELS * WORD_LANES + self.products

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return (self.words + self.window_words) * WORD_CHANNELS * WORD_LANES + self.products

    @property
    def filter_macs(self) -> int:
        """Multiply-accumulates that sum the filter."""
        return self.filter_words * WORD_CHANNELS * WORD_LANES


@dataclass(frozen=True)
class ScalarForm(Form):
    """Scalar code: words of 4 bytes, or single elements, of 8 output channels at a time.

    A conv of 8 output channels or fewer has one group of lanes, and LLVM leaves out what only lanes without a channel
    do. Where there are more groups, a loop over them computes all lanes, and the last channel is looked for in each.
    """

    name = "scalar"
    kernel = "plain"
    products_of_packet = None

    @classmethod
    def serves(cls, conv: RowConv) -> str:
        """Serve all convs."""
        return ""

    @property
    def filter_layout(self) -> tuple[Layout, Packing]:
        """The filter as HVX would have it with channels as lanes, of bytes without a sign."""
        chain, index = self.conv.chain, self.conv.index
        unsigned = unsigned_packing(chain, diagonal=self.diagonal)
        if is_depthwise(chain, index):
            return of_channels(chain, index), unsigned
        return in_grouped_words(chain, index) if grouped_words_of(chain, index) else of_tiles(self.conv), unsigned

    def summed_weights(self, filter: Array) -> Array:
        """Refuse: it sums weights as it runs."""
        raise NotImplementedError("scalar code sums weights as it runs")

    def scratch(self) -> Iterator[Memory]:
        """The offset of each channel's sums."""
        if self.has_offsets:
            yield Memory("offset", "offset", "int32", whole_channels(self.conv.spec.out_channels))

    @property
    def products(self) -> int:
        """None of vectors."""
        return 0

    @property
    def diagonal(self) -> Diagonal | None:
        """The channels of the source that each output channel multiplies, where these differ; else None."""
        return diagonal_of(self.conv.chain, self.conv.index)

    @property
    def inputs(self) -> int:
        """The input channels that an output channel multiplies."""
        return self.diagonal.channels if self.diagonal else self.conv.chain.filter_shapes[self.conv.index][1]

    @property
    def has_own_inputs(self) -> bool:
        """Whether each group of output channels has input channels of its own, as many as it has outputs."""
        chain, index = self.conv.chain, self.conv.index
        return is_depthwise(chain, index) or grouped_words_of(chain, index) > 0

    @property
    def sums_words(self) -> bool:
        """Whether sums are made of words of 4 bytes, not of single elements."""
        return self.conv.chain.dtype in BYTES and not self.has_own_inputs

    @property
    def has_offsets(self) -> bool:
        """Whether the sums of words get an offset per channel, which the zero point of the source asks for."""
        return self.sums_words and self.conv.in_zero != 0

    @cached_property
    def work(self) -> ScalarWork:
        """The work for one pixel, and for its filter once.

        If the filter has a zero point, windows are summed for each tile of channels, or for some lanes of each tile if
        their windows differ.
        """
        conv, diagonal, words = self.conv, self.diagonal, self.conv.filter_steps
        lanes, taps = scalar_channels(conv.spec.out_channels), prod(conv.spec.kernel)
        groups = lanes // SCALAR_LANES
        if not self.sums_words:
            elements = taps * self.inputs
            loaded = (lanes if self.has_own_inputs else groups) * elements
            return ScalarWork(lanes, groups * taps, products=lanes * elements, source_elements=loaded)
        sums = (groups if diagonal else conv.channel_tiles) if conv.filter_zero else 0
        return ScalarWork(
            lanes,
            (groups + sums) * taps * (diagonal.width if diagonal else conv.plane.count),
            words=lanes // WORD_LANES * words,
            window_words=sums * words,
            source_elements=(groups + sums) * words * WORD_CHANNELS,
            filter_words=lanes // WORD_LANES * words if self.has_offsets else 0,
        )

    @property
    def reads_fringe(self) -> bool:
        """Not where each channel is multiplied apart."""
        return not is_depthwise(self.conv.chain, self.conv.index)

    @property
    def row_macs(self) -> int:
        """For each pixel."""
        return self.conv.columns * self.work.macs

    @property
    def once_macs(self) -> int:
        """Those that sum the filter."""
        return self.work.filter_macs

    def packets(self) -> Cost:
        """Count the parts of pixels, of their elements, and of the fringe."""
        conv, work, pixels = self.conv, self.work, self.conv.columns
        channels = whole_channels(conv.spec.out_channels)
        words = work.words * _share_of_pairs(conv.spec.out_channels) + work.window_words
        filled = (conv.target_columns - pixels) * channels + pixels * (channels - work.lanes)
        row = Parts(scalar_row=1, scalar_fill=filled)
        row.add(Parts(pixel=1, word=words, product=work.products, lane_group=work.lanes / SCALAR_LANES), pixels)
        row["scalar_run" if self.sums_words else "tap_run"] = work.runs * pixels
        row.add(self._elements(), pixels)
        blank = Parts(scalar_row=1, scalar_fill=conv.target_columns * channels)
        return Cost(row, blank, Parts(step=conv.channel_tiles), Parts(word=work.filter_words))

    def _elements(self) -> Parts:
        """Count the elements that the sums of a pixel become, by what each takes."""
        conv, spec = self.conv, self.conv.spec
        is_one_group = spec.out_channels <= SCALAR_LANES
        there = spec.out_channels if is_one_group else self.work.lanes
        is_ragged = not is_one_group and spec.out_channels % SCALAR_LANES > 0
        parts = Parts(element=there, ragged=there * is_ragged, unsure=there * is_ragged * (conv.channel_tiles > 1))
        if how := spec.requantize:
            parts["scaled"] = there
            parts["scaled_even"] = there * (how.rounding == "even")
            parts["held"] = there * (how.clamp is not None)
            parts["looked_up"] = there * (spec.activation == TABLE)
        return parts

    def traffic(self) -> Cost:
        """Count all that it reads and writes."""
        conv, work, cost = self.conv, self.work, Cost()
        cost.row[source_cache(conv.number)] += conv.columns * work.source_elements * conv.source_bytes
        cost.row[filter_cache(conv.number)] += conv.columns * work.weights * conv.filter_bytes
        cost.once[filter_cache(conv.number)] += work.filter_macs
        name, elements = target_cache(conv.number, len(conv.chain.conv)), conv.out_blocks * CHANNEL_BLOCK
        for rows in (cost.row, cost.blank_row):
            rows[name] += conv.target_columns * elements * ELEMENT_BYTES[conv.chain.output_dtype(conv.index)]
        return cost


def _share_of_pairs(channels: int) -> float:
    """Return the share of the pairs of lanes that have a channel, where there is one group of lanes.

    >>> [_share_of_pairs(channels) for channels in (1, 3, 8, 9)]
    [0.25, 0.5, 1.0, 1.0]
    """
    return min(ceil(channels / WORD_LANES) * WORD_LANES / SCALAR_LANES, 1.0)
