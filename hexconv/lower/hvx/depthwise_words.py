"""Load the words of pixels that tiles of a depthwise conv multiply (`hexconv.kernel.depthwise_words`)."""

from collections.abc import Mapping

from tvm import tirx

from hexconv.kernel.depthwise_words import WORD_PIXELS, Use
from hexconv.kernel.hvx.tiles import VECTOR_BYTES
from hexconv.lower.hvx import across, vector
from hexconv.lower.hvx.tile import put, value_in
from hexconv.schedule.block import Block

PIXEL_BYTES = 32


class RowWords:
    """The words that a tile reads of one row of the source; each is loaded and put together once."""

    def __init__(
        self,
        block: Block,
        source: tirx.Buffer,
        byte: tirx.Expr,
        apart: int,
        carried: Mapping[int, tirx.Buffer] | None = None,
    ) -> None:
        """Say where the words come from.

        Args:
            block: the block to emit into.
            source: the buffer that holds the row.
            byte: the byte where the tile's first window begins, for 32 channels.
            apart: the distance in bytes to a second tile that shares the vectors; 0 if there is only one tile.
            carried: the registers in which the tile before left words, by the number of 4 pixels.
        """
        self._block, self._source, self._byte, self._apart = block, source, byte, apart
        self._carried = carried or {}
        self._found: dict[int, tirx.Expr] = {}

    def of(self, use: Use) -> tirx.Expr:
        """Return the word of each channel that a product reads."""
        quad, rest = divmod(use.pixel, WORD_PIXELS)
        if not rest:
            return self.of_quad(quad)
        if use.pixel not in self._found:
            low, high = self.of_quad(quad), self.of_quad(quad + 1)
            value = vector.upper_halves(low, high) if use.variant.turned else self._middle(low, high)
            self._found[use.pixel] = self._block.bind("words", value, vector.VECTOR)
        return self._found[use.pixel]

    def of_quad(self, quad: int) -> tirx.Expr:
        """Return the word of each channel that holds pixels `4 * quad` to `4 * quad + 3`."""
        pixel = quad * WORD_PIXELS
        if pixel not in self._found:
            self._found[pixel] = self._taken_over(quad) if quad in self._carried else self._loaded(quad)
        return self._found[pixel]

    def hand_on(self, quads: int) -> None:
        """Leave words to the next tile, whose window begins `quads` times 4 pixels further right."""
        for quad, register in self._carried.items():
            put(self._block, register, self.of_quad(quad + quads))

    def _taken_over(self, quad: int) -> tirx.Expr:
        return self._block.bind("carried", value_in(self._carried[quad]), vector.VECTOR)

    def _loaded(self, quad: int) -> tirx.Expr:
        """Load 4 pixels of 32 channels; two shuffles make a word of each channel."""
        once = self._block.bind("shuffled", across.shuffle_bytes(self._pixels(quad)), vector.VECTOR)
        return self._block.bind("words", across.shuffle_bytes(once), vector.VECTOR)

    def _middle(self, low: tirx.Expr, high: tirx.Expr) -> tirx.Expr:
        """Put the last 2 pixels of a word before the first 2 of the next one."""
        right = self._block.bind("right", vector.shift_right_logical(low, 16), vector.VECTOR)
        return vector.shift_left_add(right, high, 16)

    def _pixels(self, quad: int) -> tirx.Expr:
        """Load 4 pixels of 32 channels; or, for two tiles, 4 pixels of 16 channels of each, pixel by pixel."""
        byte = self._byte + quad * VECTOR_BYTES
        here = self._block.bind("pixels", vector.load(self._source, byte), vector.VECTOR)
        if not self._apart:
            return here
        there = self._block.bind("pixels", vector.load(self._source, byte + self._apart), vector.VECTOR)
        both = across.lower(across.exchange(there, here, PIXEL_BYTES // 2))
        return self._block.bind("both", both, vector.VECTOR)
