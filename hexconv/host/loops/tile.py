"""The inner kernel: a tile of pixels by vectors of output channels, its sums in registers.

    for taps: for input channels: for pixel: for vector: sums[pixel, vector] += activation * filter vector

One outer product per input channel: its filter vectors are loaded once for all pixels, each of its activations is
broadcast once for all vectors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.host.loops import vector
from hexconv.host.loops.filters import Filter
from hexconv.host.loops.stage import Lines
from hexconv.schedule.block import Block, Number

UNROLL = 4
"""The number of input channels in the body of the innermost loop."""


@dataclass(frozen=True)
class Tile:
    """A tile of sums, `sums[pixel][vector]`: buffers of one vector each, which LLVM keeps in registers.

    Attributes:
        sums: the sums of each pixel, row by row.
        columns: the columns of the tile.
        lanes: the lanes of a vector.
    """

    sums: tuple[tuple[tirx.Buffer, ...], ...]
    columns: int
    lanes: int

    @property
    def pixels(self) -> int:
        """The number of pixels in all rows of the tile."""
        return len(self.sums)

    @property
    def places(self) -> list[tuple[int, int]]:
        """The (row, column) of each pixel in the tile."""
        return [divmod(pixel, self.columns) for pixel in range(self.pixels)]

    @property
    def vectors(self) -> int:
        """The number of vectors of output channels in the tile."""
        return len(self.sums[0])

    def value(self, pixel: int, part: int) -> tirx.Expr:
        """Return the sums of one pixel and one vector of channels."""
        return vector.load(self.sums[pixel][part], 0, self.lanes)

    def put(self, block: Block, pixel: int, part: int, value: tirx.Expr) -> None:
        """Set the sums of one pixel and one vector of channels."""
        vector.store(block, self.sums[pixel][part], 0, value, self.lanes)


@dataclass(frozen=True)
class Operands:
    """The operands of a tile, and where they start.

    Attributes:
        source: the activations, flat.
        lines: where their pixels lie.
        origin: the element of `source` at which the window of the tile's first pixel starts.
        filter: the filter and its cache.
        first_filter: the element of the cache at which the filter of the tile's channels starts.
    """

    source: tirx.Buffer
    lines: Lines
    origin: Number
    filter: Filter
    first_filter: Number


def allocate_tile(block: Block, rows: int, columns: int, vectors: int, lanes: int) -> Tile:
    """Allocate the registers of a tile."""
    sums = tuple(
        tuple(vector.register(block, f"{pixel}_{part}", lanes) for part in range(vectors))
        for pixel in range(rows * columns)
    )
    return Tile(sums, columns, lanes)


def start(block: Block, tile: Tile, first: Callable[[int], tirx.Expr]) -> None:
    """Set the sums of every pixel to `first(vector)`."""
    for part in range(tile.vectors):
        value = first(part)
        for pixel in range(tile.pixels):
            tile.put(block, pixel, part, value)


def reduce(block: Block, tile: Tile, operands: Operands) -> None:
    """Add every tap and input channel; where pixels lie side by side, a row of taps is one run of channels."""
    stage, lines = operands.filter.stage, operands.lines
    (height, width), dilation = stage.conv.kernel, stage.conv.dilation
    dense = dilation[1] == 1 and lines.pixel == stage.in_channels
    runs, length = (1, width * stage.in_channels) if dense else (width, stage.in_channels)

    def run(at: Block, row: tirx.Expr, tap: tirx.Expr) -> None:
        down, right = dilation[0] * lines.row, dilation[1] * lines.pixel
        element = at.bind("element", operands.origin + row * down + tap * right)
        weight = at.bind("weight", operands.first_filter + (row * runs + tap) * (length * tile.vectors * tile.lanes))
        _run(at, tile, operands, element, weight, length)

    block.loop("row", height, lambda at, row: at.loop("tap", runs, lambda inner, tap: run(inner, row, tap)))


def _run(block: Block, tile: Tile, operands: Operands, element: tirx.Expr, weight: tirx.Expr, length: int) -> None:
    """Add a run of channels, several in each trip of its loop."""
    trips, rest = divmod(length, UNROLL)

    def several(at: Block, first: Number, count: int) -> None:
        for channel in range(count):
            _add_channel(at, tile, operands, element, weight, first + channel)

    block.loop("channels", trips, lambda at, number: several(at, number * UNROLL, UNROLL))
    several(block, trips * UNROLL, rest)


def _add_channel(
    block: Block, tile: Tile, operands: Operands, element: tirx.Expr, weight: tirx.Expr, channel: Number
) -> None:
    """Add one input channel of one tap."""
    down, right = operands.filter.stage.conv.stride
    filters = _filters(block, tile, operands, weight + channel * (tile.vectors * tile.lanes))
    for pixel, (row, column) in enumerate(tile.places):
        apart = row * down * operands.lines.row + column * right * operands.lines.pixel
        loaded = tirx.BufferLoad(operands.source, [element + channel + apart])
        activation = block.bind("activation", vector.filled(loaded, tile.lanes), f"float32x{tile.lanes}")
        for part, weights in enumerate(filters):
            total = vector.multiply_add(activation, weights, tile.value(pixel, part), tile.lanes)
            tile.put(block, pixel, part, total)


def _filters(block: Block, tile: Tile, operands: Operands, element: Number) -> Sequence[tirx.Expr]:
    """Load the filter vectors of one input channel."""
    cache, lanes = operands.filter.cache, tile.lanes
    loads = [vector.load(cache, element + part * lanes, lanes) for part in range(tile.vectors)]
    return [block.bind("weights", load, f"float32x{lanes}") for load in loads]
