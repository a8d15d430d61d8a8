"""Scalar code for a conv in a nest of rows: how many channels it takes together, and what it multiplies for a pixel.

Bytes are multiplied word by word: an instruction takes 4 input channels of 2 output channels, 8 products. The zero
points come off the sums, as in the HVX kernels:

    sum((a - za) * (w - zw)) = sum(a * w) - zw * sum(a) - za * sum(w) + n * za * zw

with the sum of the window once for each pixel of a step, and that of the filter once a run. A depthwise conv, and one
over int16, takes its products one by one, zero points off before.
"""

from dataclasses import dataclass
from math import ceil, prod

from hexconv.kernel.depthwise import BYTES, is_depthwise
from hexconv.spec import Chain
from hexconv.spec.extents import CHANNEL_BLOCK

SCALAR_LANES = 8
"""Output channels whose sums are in registers together; what they multiply of the source is loaded once."""
assert CHANNEL_BLOCK % SCALAR_LANES == 0
WORD_CHANNELS = 4
WORD_LANES = 2
"""Output channels of a doubleword of a filter."""


def sums_words(chain: Chain, index: int) -> bool:
    """Whether the products of conv `index` are taken in words."""
    return chain.dtype in BYTES and not is_depthwise(chain, index)


def has_offsets(chain: Chain, index: int) -> bool:
    """Whether something is added to the sums of words that differs by channel: where the source has a zero point."""
    return sums_words(chain, index) and chain.output_zero_point(index) != 0


def scalar_channels(out_channels: int) -> int:
    """Output channels that are computed, those that fill the last lanes up included.

    >>> [scalar_channels(channels) for channels in (1, 8, 33)]
    [8, 8, 40]
    """
    return ceil(out_channels / SCALAR_LANES) * SCALAR_LANES


@dataclass(frozen=True)
class ScalarWork:
    """What scalar code does for a conv: for a pixel, but for the last.

    Attributes:
        lanes: output channels, those that fill the last lanes up included.
        runs: loops over words or products that are entered.
        words: instructions that multiply 8 bytes of the source and of the filter.
        window_words: instructions that sum 4 channels of the source.
        products: that are taken one by one.
        source_elements: that are loaded.
        filter_words: instructions that sum the filter, once.
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
        """Elements of the filter that are loaded."""
        return self.words * WORD_CHANNELS * WORD_LANES + self.products

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return (self.words + self.window_words) * WORD_CHANNELS * WORD_LANES + self.products

    @property
    def filter_macs(self) -> int:
        """Multiply-accumulates that sum the filter."""
        return self.filter_words * WORD_CHANNELS * WORD_LANES


def scalar_work(chain: Chain, index: int, planes: int, words: int, window_sums: int) -> ScalarWork:
    """What scalar code does for conv `index`.

    Args:
        chain: whose convs in groups are depthwise.
        index: of the conv.
        planes: of input channels that don't lie side by side.
        words: of 4 input channels under its window.
        window_sums: how often its windows are summed: for each tile of channels, if the filter has a zero point.
    """
    conv = chain.conv[index]
    lanes, taps = scalar_channels(conv.out_channels), prod(conv.kernel)
    groups = lanes // SCALAR_LANES
    if is_depthwise(chain, index):
        return ScalarWork(lanes, groups * taps, products=lanes * taps, source_elements=lanes * taps)
    if not sums_words(chain, index):
        inputs = taps * chain.shapes[index][3]
        return ScalarWork(lanes, groups * taps, products=lanes * inputs, source_elements=groups * inputs)
    return ScalarWork(
        lanes,
        (groups + window_sums) * taps * planes,
        words=lanes // WORD_LANES * words,
        window_words=window_sums * words,
        source_elements=(groups + window_sums) * words * WORD_CHANNELS,
        filter_words=lanes // WORD_LANES * words if has_offsets(chain, index) else 0,
    )
