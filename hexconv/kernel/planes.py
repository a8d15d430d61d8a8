"""The source of a conv in its cache as planes of channels, and its rows as planes where lanes are pixels.

A plane has a word of 4 bytes for each lane, so that one unaligned load fetches all that a tap multiplies: 4 channels of
every pixel, or of every second pixel where the stride is 2.

    planes[4 channels, phase]:  lane i is these channels of pixel stride * i + phase

Where a pixel has less than 4 channels, words go on with the pixels behind it: a row of 7 taps of 3 channels is 6 words
instead of 7, one of 5 taps of 1 channel 2 words instead of 5. A plane then has 4 bytes from some byte of a pixel on:

    3 channels, stride 1:  r0 g0 b0 r1 | g1 b1 r2 g2 | b2 r3 g3 b3, and again for taps 4, 5, ..

An input of 1 to 3 channels is dense: its pixels lie side by side without a byte between them. Loads of 32 pixels are
spread to words, a pixel each, before anything else.

A source in blocks of 4 channels (`hexconv.kernel.channel_blocks`) lies in such planes already. With stride 1 its cache
is multiplied as it is, and nothing is laid out.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

from hexconv.kernel.tiles import LANES, VECTOR_BYTES, WORD_CHANNELS
from hexconv.layout import Layout
from hexconv.spec import Conv2d
from hexconv.spec.extents import REMEMBERED


@dataclass(frozen=True)
class Plane:
    """A source as `count` planes: in each plane, a pixel's channels lie side by side.

    Attributes:
        count: the number of planes.
        bytes: bytes from one plane of a row to the next.
        pixel_bytes: bytes from one pixel to the next.
        columns: pixels of a row.
        low_bytes: bytes from the high bytes of int16 elements to their low bytes; 0 where elements are bytes.
    """

    count: int
    bytes: int
    pixel_bytes: int
    columns: int
    low_bytes: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes from one row to the next."""
        return self.count * self.bytes

    @property
    def words(self) -> int:
        """Words of 4 channels in a pixel; the word of a dense pixel is not full."""
        return ceil(self.pixel_bytes / WORD_CHANNELS)

    @property
    def is_dense(self) -> bool:
        """Whether pixels of 1 to 3 bytes lie side by side, as in an input of few channels: they fill no words."""
        return self.pixel_bytes < WORD_CHANNELS

    @property
    def is_of_words(self) -> bool:
        """Whether a plane has a word of every pixel and nothing else, as planes of convs with pixels as lanes have."""
        return self.pixel_bytes == WORD_CHANNELS


@lru_cache(REMEMBERED)
def plane_in(layout: Layout, unit: int, halves: bool = False) -> Plane:
    """How a cache with a layout lies whose axis C counts `unit` channels a step."""
    columns = layout.stored_extent("W")
    channels = next(output.extent for output in layout.outputs if output.name == "C")
    count, pixel = (1, channels) if len(layout.outputs) == len("NHWC") else (channels, unit)
    row = columns * pixel
    return Plane(count, 2 * row, pixel, columns, row) if halves else Plane(count, row, pixel, columns)


@dataclass(frozen=True)
class Read:
    """A word that a window multiplies, and where it lies in the planes of a row.

    Attributes:
        plane: the number of its plane, among the planes that one trip of the loop multiplies.
        lanes: the lanes from the first output's lane to this word.
        taps: for each of its bytes, (column of taps, channel); bytes past the window are left out.
    """

    plane: int
    lanes: int
    taps: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Merged:
    """A plane whose words go on from pixel to pixel: bytes from `byte` of pixel `first` on, `stride` pixels a lane."""

    first: int
    byte: int


@dataclass(frozen=True)
class PixelPlanes:
    """The planes that one conv multiplies.

    Attributes:
        conv: the conv.
        left: the lane of the first output.
        vectors: vectors of 32 outputs in a row of outputs.
        channels: logical channels of the conv's source.
        source: how the source lies in its cache.
    """

    conv: Conv2d
    left: int
    vectors: int
    channels: int
    source: Plane

    @property
    def stride(self) -> int:
        """Pixels of the source from one lane to the next."""
        return self.conv.stride[1]

    @property
    def goes_on(self) -> bool:
        """Whether a word goes on from a pixel into the next one; in planes of words, only if that saves words."""
        possible = self.channels < WORD_CHANNELS and self.conv.dilation[1] == 1
        return possible and (not self.source.is_of_words or self._words_of_taps < self.conv.kernel[1])

    @property
    def is_direct(self) -> bool:
        """Whether the source's cache is multiplied as it lies."""
        return self.source.is_of_words and self.stride == 1 and not self.goes_on

    @property
    def words(self) -> int:
        """Words of 4 channels in a pixel of a plane of the source, without words that hold no channel."""
        words = self.source.words
        return min(words, ceil(self.channels / WORD_CHANNELS)) if self.source.count == 1 else words

    @property
    def groups(self) -> int:
        """Words of a pixel that are multiplied: the loop over a row of taps makes one trip for each."""
        return self.source.count * self.words

    @cached_property
    def merged(self) -> tuple[Merged, ...]:
        """The planes of words that go on from pixel to pixel."""
        return tuple(dict.fromkeys(self._merged(word) for word in range(self._words_of_taps))) if self.goes_on else ()

    @property
    def _words_of_taps(self) -> int:
        """Words that the taps of one row fill, side by side."""
        return ceil(self.conv.kernel[1] * self.channels / WORD_CHANNELS)

    def _merged(self, word: int) -> Merged:
        pixel, byte = divmod(word * WORD_CHANNELS, self.channels)
        return Merged(pixel % self.stride, byte)

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """The words that a trip multiplies."""
        (_, taps), dilation, stride = self.conv.kernel, self.conv.dilation[1], self.stride
        if not self.goes_on:
            columns = [(tap, tap * dilation) for tap in range(taps)]
            bytes_of = [tuple((tap, byte) for byte in range(WORD_CHANNELS)) for tap in range(taps)]
            return tuple(Read(at % stride, at // stride, bytes_of[tap]) for tap, at in columns)
        found = []
        for word in range(self._words_of_taps):
            first = word * WORD_CHANNELS
            there = range(first, min(first + WORD_CHANNELS, taps * self.channels))
            plane = self.merged.index(self._merged(word))
            lanes = first // self.channels // stride
            found.append(Read(plane, lanes, tuple(divmod(place, self.channels) for place in there)))
        return tuple(found)

    @property
    def count(self) -> int:
        """The number of planes of a row of the source."""
        return len(self.merged) or self.groups * self.stride

    @property
    def steps(self) -> int:
        """The number of words that a window multiplies."""
        return self.conv.kernel[0] * self.groups * len(self.reads)

    @property
    def chunks(self) -> int:
        """Vectors of 32 lanes that a row of the source fills in a plane."""
        return ceil(self.source.columns / (LANES * self.stride))

    @property
    def loaded_bytes(self) -> int:
        """Bytes from the first byte of a vector that is loaded from the source to that of the next one."""
        return LANES * self.source.pixel_bytes if self.source.is_dense else VECTOR_BYTES

    @property
    def chunk_loads(self) -> int:
        """Vectors that are loaded of a plane of the source for 32 lanes of each phase."""
        return self.stride * self.source.words

    @property
    def read_lanes(self) -> int:
        """Lanes of a row of a plane that tiles read, counted from the start of the row."""
        return self.left + self.vectors * LANES + max(read.lanes for read in self.reads)

    @property
    def read_vectors(self) -> int:
        """Vectors of a row of a plane that tiles read, counted from the start of the row."""
        return ceil(self.read_lanes / LANES)

    @property
    def plane_bytes(self) -> int:
        """Bytes of a row of one plane: they hold all that is laid out and all that tiles read."""
        return self.source.bytes if self.is_direct else max(self.chunks, self.read_vectors) * VECTOR_BYTES

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of all planes."""
        return self.count * self.plane_bytes

    @property
    def rows(self) -> int:
        """Rows of the source that are kept as planes: those of a window."""
        return self.conv.reach[0]

    @property
    def new_rows(self) -> int:
        """Rows of the source that a row of outputs is the first to read, unless it is the first row of a step."""
        return min(self.rows, self.conv.stride[0])

    @property
    def phase_bytes(self) -> int:
        """Bytes of one phase of a row of pixels before its words go on; merging reads one vector past its own."""
        return max(self.chunks, self.read_vectors + 1) * VECTOR_BYTES

    @property
    def bytes(self) -> int:
        """Bytes of all planes, and of one row before its words go on; 0 where nothing is laid out."""
        if self.is_direct:
            return 0
        return self.rows * self.row_bytes + (self.stride * self.phase_bytes if self.goes_on else 0)

    @property
    def laid(self) -> int:
        """Instructions that lay out a row of the source: loads, deals, stores, and shifts of words that go on."""
        if self.is_direct:
            return 0
        pixel, stride, goes_on = self.source.words, self.stride, self.goes_on
        loaded = stride * self.source.count * (pixel + deals(pixel, self.words)) + (stride - 1) * self.groups
        loaded += stride if self.source.is_dense else 0
        stored = self.groups * stride * (2 if goes_on else 1)
        return self.chunks * (loaded + stored) + self.moved

    @property
    def moved(self) -> int:
        """Of these, the instructions that move and merge words that go on from pixel to pixel."""
        return self.read_vectors * sum(2 * len(self.parts(plane)) for plane in self.merged)

    def parts(self, plane: Merged) -> tuple[tuple[int, int, int], ...]:
        """The pieces of the words of a merged plane: (phase, lanes to skip, bytes to move up) of each piece."""
        found = []
        while (moved := len(found) * self.channels - plane.byte) < WORD_CHANNELS:
            lanes, phase = divmod(plane.first + len(found), self.stride)
            found.append((phase, lanes, moved))
        return tuple(found)


def deals(vectors: int, wanted: int) -> int:
    """Count the instructions that deal vectors of whole pixels into one vector for each of the first `wanted` words.

    There are as many vectors as a pixel has words.

    >>> [deals(8, wanted) for wanted in (1, 3, 8)]
    [7, 11, 12]
    """
    if vectors == 1 or not wanted:
        return 0
    half = vectors // 2
    return half + deals(half, ceil(wanted / 2)) + deals(half, wanted // 2)
