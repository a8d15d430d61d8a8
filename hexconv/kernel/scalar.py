"""Rules of scalar code for a conv in a nest of rows: the channels that it computes together, and its work per pixel.

Bytes are multiplied word by word: an instruction takes 4 input channels of 2 output channels, 8 products. The zero
points come off the sums, as in the HVX kernels:

    sum((a - za) * (w - zw)) = sum(a * w) - zw * sum(a) - za * sum(w) + n * za * zw

The window is summed once for each pixel of a step, the filter once per run. A depthwise conv, and a conv over int16,
multiplies element by element and subtracts the zero points first.
"""

from dataclasses import dataclass
from math import ceil, prod

from hexconv.kernel.depthwise import BYTES, is_depthwise
from hexconv.kernel.grouped import own_words_of
from hexconv.kernel.tiles import WORD_CHANNELS
from hexconv.spec import Chain
from hexconv.spec.extents import CHANNEL_BLOCK

SCALAR_LANES = 8
"""Output channels whose sums are in registers together; a word of the source is loaded once for all of them."""
assert CHANNEL_BLOCK % SCALAR_LANES == 0
WORD_LANES = 2
"""Output channels in a doubleword of a packed filter."""


def sums_words(chain: Chain, index: int) -> bool:
    """Whether conv `index` multiplies word by word, not element by element."""
    return chain.dtype in BYTES and not _has_own_inputs(chain, index)


def _has_own_inputs(chain: Chain, index: int) -> bool:
    """Whether each output channel of conv `index` multiplies input channels of its own."""
    return is_depthwise(chain, index) or own_words_of(chain, index) is not None


def has_offsets(chain: Chain, index: int) -> bool:
    """Whether the sums of words get an offset per channel, which the zero point of the source asks for."""
    return sums_words(chain, index) and chain.output_zero_point(index) != 0


def scalar_channels(out_channels: int) -> int:
    """Output channels that are computed, with those that only fill the last lanes.

    >>> [scalar_channels(channels) for channels in (1, 8, 33)]
    [8, 8, 40]
    """
    return ceil(out_channels / SCALAR_LANES) * SCALAR_LANES


def scalar_groups(out_channels: int) -> int:
    """Groups of output channels that are computed together."""
    return scalar_channels(out_channels) // SCALAR_LANES


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


def scalar_work(chain: Chain, index: int, inputs: int, planes: int, words: int, window_sums: int) -> ScalarWork:
    """What scalar code does for conv `index`.

    Args:
        chain: the chain, in which convs have the groups that HVX computes.
        index: the index of the conv, from 0.
        inputs: input channels that an output channel multiplies.
        planes: planes of these channels, which don't lie side by side.
        words: words of 4 input channels that a window multiplies.
        window_sums: how often its windows are summed if the filter has a zero point: for each tile of channels, or for
            some lanes of each tile if their windows differ.
    """
    conv = chain.conv[index]
    lanes, taps = scalar_channels(conv.out_channels), prod(conv.kernel)
    groups = lanes // SCALAR_LANES
    if not sums_words(chain, index):
        elements = taps * inputs
        loaded = (lanes if _has_own_inputs(chain, index) else groups) * elements
        return ScalarWork(lanes, groups * taps, products=lanes * elements, source_elements=loaded)
    return ScalarWork(
        lanes,
        (groups + window_sums) * taps * planes,
        words=lanes // WORD_LANES * words,
        window_words=window_sums * words,
        source_elements=(groups + window_sums) * words * WORD_CHANNELS,
        filter_words=lanes // WORD_LANES * words if has_offsets(chain, index) else 0,
    )
