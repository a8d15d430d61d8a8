"""Convs whose lanes are output channels, behind a dense input: an input of 1 to 3 channels, its pixels side by side.

In a dense row the bytes under a row of a window are one run: 21 bytes for 7 taps of 3 channels, 6 words instead of one
for each tap. The first byte of a window lies anywhere, but a scalar load takes aligned doublewords. So a row is copied
as often as windows that follow each other begin at other places of a doubleword, each time from the next window on:

    copies of a row, windows 6 bytes apart:   windows 0, 4, 8, ..  |  1, 5, 9, ..  |  2, 6, ..  |  3, 7, ..

    tile:    for rows of taps: for words: sums of pixels x 32 channels += dot4(weights, word)

If the filter has a zero point, every window is summed, once for all channels: rows of taps first, as halfwords that
hold the even bytes and as halfwords that hold the sums of two neighbours; then the halfwords under a window.

    halfwords of even bytes + halfwords of pairs:     window of 21 bytes = 10 pairs + 1 even byte

Windows whose first byte is odd are summed from the second copy, in which it is even.

The alternative is pixels as lanes (`hexconv.kernel.pixels`); the way of fewer packets is used
(`hexconv.kernel.lanes`).
"""

from dataclasses import dataclass
from math import ceil, gcd

from hexconv.kernel.planes import PixelPlanes
from hexconv.kernel.tiles import MOST_BLOCKS, PAIR_BYTES, VECTOR_BYTES, WORD_CHANNELS
from hexconv.spec import Conv2d
from hexconv.spec.extents import CHANNEL_BLOCK

MOST_WINDOW = 257
"""The most bytes of a window whose sum a halfword holds: 65535 is 257 times 255."""
MOST_SUMS = 16
"""The sums that a tile keeps in registers."""
HALFWORD_BYTES = 2


@dataclass(frozen=True)
class DenseRows:
    """One conv that multiplies windows of dense rows.

    Attributes:
        conv: the conv.
        first: the column of the first output, in stored columns.
        columns: the columns of a row of outputs.
        planes: the words under a row of a window, and the source.
    """

    conv: Conv2d
    first: int
    columns: int
    planes: PixelPlanes

    @property
    def blocks(self) -> int:
        """Blocks of 32 output channels."""
        return ceil(self.conv.out_channels / CHANNEL_BLOCK)

    @property
    def apart(self) -> int:
        """Bytes from a window to the next one."""
        return self.conv.stride[1] * self.planes.channels

    @property
    def window_bytes(self) -> int:
        """Bytes under a row of a window."""
        return self.conv.kernel[1] * self.planes.channels

    @property
    def words(self) -> int:
        """Words under a row of a window; the last one may hold bytes that the window doesn't."""
        return ceil(self.window_bytes / WORD_CHANNELS)

    @property
    def steps(self) -> int:
        """Words under a window."""
        return self.planes.steps

    @property
    def copies(self) -> int:
        """Copies of a row, so that each window begins at a doubleword of one of them."""
        return PAIR_BYTES // gcd(PAIR_BYTES, self.apart)

    @property
    def copy_vectors(self) -> int:
        """Vectors of a copy: windows of the first one reach as far as those of the others, and sums as far as both."""
        words = ceil(self.words * WORD_CHANNELS / PAIR_BYTES) * PAIR_BYTES
        return ceil(((self.columns - 1) * self.apart + words) / VECTOR_BYTES)

    @property
    def copy_bytes(self) -> int:
        """Bytes from one copy of a row to the next one."""
        return self.copy_vectors * VECTOR_BYTES

    def left(self, copy: int) -> int:
        """The byte of a row of the source at which a copy begins."""
        return (self.first + copy) * self.apart

    def copied(self, copy: int) -> int:
        """Vectors of a copy that hold bytes of the row; those behind it are left as they are."""
        there = self.planes.source.bytes - self.left(copy)
        return min(self.copy_vectors, max(ceil(there / VECTOR_BYTES), 0))

    @property
    def copied_vectors(self) -> int:
        """Vectors that a row of the source is copied in."""
        return sum(self.copied(copy) for copy in range(self.copies))

    @property
    def rows(self) -> int:
        """Rows of the source that are kept in copies: those of a window."""
        return self.planes.rows

    @property
    def new_rows(self) -> int:
        """Rows of the source that a row of outputs is the first to read, unless it is the first row of a step."""
        return self.planes.new_rows

    @property
    def phases(self) -> int:
        """Copies from which windows are summed: two where the first bytes of windows are odd and even by turns."""
        return 1 + self.apart % HALFWORD_BYTES

    @property
    def pairs(self) -> int:
        """Pairs of bytes under a row of a window that are summed."""
        return self.window_bytes // HALFWORD_BYTES

    @property
    def has_odd_byte(self) -> bool:
        """Whether a window has a byte more than its pairs."""
        return self.window_bytes % HALFWORD_BYTES == 1

    @property
    def row_bytes(self) -> int:
        """Bytes of all copies of a row."""
        return self.copies * self.copy_bytes

    @property
    def halfwords_bytes(self) -> int:
        """Bytes of the halfwords of one kind; windows are summed from halfwords past those of a copy, too."""
        return self.copy_bytes + VECTOR_BYTES * ceil((self.pairs + 1) * HALFWORD_BYTES / VECTOR_BYTES)

    @property
    def corrections_byte(self) -> int:
        """The byte behind all copies, and behind halfwords of pairs and of even bytes, where sums of windows begin."""
        return self.rows * self.row_bytes + 2 * self.halfwords_bytes

    def bytes(self, sums_windows: bool) -> int:
        """Bytes of all copies and, where windows are summed, of halfwords and sums."""
        sums = 2 * self.halfwords_bytes + self.phases * self.copy_bytes
        return self.rows * self.row_bytes + sums * sums_windows

    @property
    def summed(self) -> int:
        """Vectors that are loaded and stored to sum the windows of a row of outputs."""
        halfwords = self.conv.kernel[0] + 1 + self.has_odd_byte
        windows = self.pairs + self.has_odd_byte + 1
        return self.phases * self.copy_vectors * (halfwords + windows)

    @property
    def laid(self) -> int:
        """Vectors that are loaded and stored to copy a row of the source."""
        return 2 * self.copied_vectors

    def tiles(self, blocks: int) -> tuple[tuple[int, int], ...]:
        """(pixels of a tile, how many of these a row has) for tiles of `blocks` blocks of channels."""
        pixels = tile_pixels(blocks)
        whole, rest = divmod(self.columns, pixels)
        return tuple((size, times) for size, times in ((pixels, whole), (rest, 1)) if size and times)


def tile_pixels(blocks: int) -> int:
    """Pixels of a tile of `blocks` blocks of channels: a power of two, so that copies come in turn in every tile.

    >>> [tile_pixels(blocks) for blocks in (1, 2, 3, 4)]
    [16, 8, 4, 4]
    """
    return MOST_SUMS // blocks if blocks != MOST_BLOCKS - 1 else MOST_SUMS // MOST_BLOCKS


def serves_dense(planes: PixelPlanes) -> bool:
    """Whether windows of dense rows can be multiplied as runs: taps lie side by side, and halfwords hold their sums."""
    conv = planes.conv
    window = conv.kernel[0] * conv.kernel[1] * planes.channels
    return planes.source.is_dense and conv.dilation[1] == 1 and window <= MOST_WINDOW
