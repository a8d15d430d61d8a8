"""One conv over a range of rows: tiles of pixels, their sums, their way out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.block import Block, int32
from hexconv.schedule.hvx.filters import first_byte, steps
from hexconv.schedule.hvx.requantize import deal_pixels, narrow
from hexconv.schedule.hvx.stage import Group, Plane, Stage
from hexconv.schedule.hvx.tile import Operands, Tile, allocate_tile, filter_vector, load_words, reduce, result, start, value
from hexconv.schedule.hvx.windows import Windows, correct_row

PIXELS_OF_VECTOR = 4  # pixels that narrow to one vector of 32 channels each

# byte of pixel (row, column) of a block of channels: (row, column, group, repetition, part of the group) -> byte
Address = Callable[[tirx.Expr, tirx.Expr, Group, tirx.Expr, int], tirx.Expr]


@dataclass(frozen=True)
class Conv:
    """A conv with its buffers.

    Attributes:
        stage: the conv.
        source: activations, uint8, flat.
        planes: of the source.
        source_base: the row, in the conv's own input with its padding, that row 0 of `source` holds.
        filters: the filter cache.
        groups: of output channels.
        target: where bytes go, uint8, flat.
        address: byte of the target.
        slack: whether 32 pixels past the end of a row are inside the source.
        windows: the corrections of signed filters, where they are made ahead of the tiles.
    """

    stage: Stage
    source: tirx.Buffer
    planes: tuple[Plane, ...]
    source_base: "int | tirx.Expr"
    filters: tirx.Buffer
    groups: tuple[Group, ...]
    target: tirx.Buffer
    address: Address
    slack: bool
    windows: Windows | None


@dataclass(frozen=True)
class Row:
    """A row of tiles: `count` tiles of `pixels` pixels from `first_column` on."""

    first_column: int
    pixels: int
    count: int


def tile_pixels(blocks: int) -> int:
    """Pixels of a tile: as many as make 12 or 16 sums.

    With them two loads a packet feed two vrmpy a packet, and the 32 HVX registers hold the sums, the filter vectors and
    what narrowing needs (24 sums leave LLVM's pipeliner no room with a doubleword per pixel).
    """
    return 4 if blocks > 2 else 8


def tile_rows(columns: int, pixels: int) -> tuple[Row, ...]:
    """The tiles of a row: whole ones, then one with what is left.

    >>> tile_rows(62, 4)
    (Row(first_column=0, pixels=4, count=15), Row(first_column=60, pixels=2, count=1))
    """
    count, rest = divmod(columns, pixels)
    rows = (Row(0, pixels, count), Row(count * pixels, rest, 1))
    return tuple(row for row in rows if row.pixels and row.count)


def convolve(block: Block, conv: Conv, begin: "int | tirx.Expr", end: "int | tirx.Expr") -> None:
    """Rows `begin` to `end` of the conv's output, all channels."""
    if conv.windows:
        _correct(block, conv, conv.windows, begin, end)
    for group in conv.groups:

        def columns(inner: Block, number: tirx.Expr, group: Group = group) -> None:
            for row in tile_rows(conv.stage.out_size[1], tile_pixels(group.blocks)):
                _tiles(inner, conv, group, number, row, begin, end)

        block.loop("group", group.count, columns)


def _correct(block: Block, conv: Conv, windows: Windows, begin: "int | tirx.Expr", end: "int | tirx.Expr") -> None:
    """The corrections of all rows, before the tiles that start from them."""

    def row(at: Block, index: tirx.Expr) -> None:
        top = at.bind("top", (begin + index) * conv.stage.stride[0] - conv.stage.padding[0] - conv.source_base)
        correct_row(at, conv.stage, conv.planes, conv.source, top, windows, index, conv.slack)

    block.loop("row", end - begin, row)


def _initial(block: Block, conv: Conv, tile: Tile, begin: "int | tirx.Expr", y: tirx.Expr, x: tirx.Expr) -> list[tirx.Expr]:
    """What the sums of each pixel start from, in every lane."""
    if not conv.windows:
        return [vector.splat(0)] * tile.pixels
    at = (y - begin) * conv.windows.width + x
    words = [tirx.BufferLoad(conv.windows.corrections, [at + pixel]) for pixel in range(tile.pixels)]
    return [block.bind("initial", vector.splat(word), vector.VECTOR) for word in words]


def carries(conv: Conv, blocks: int) -> bool:
    """Whether a tile's first words are multiplied while the tile before it is narrowed.

    Worth it where the reduction is short; possible where it is one run of doublewords.
    """
    [first, *rest] = conv.planes
    run = conv.stage.kernel[0] == 1 and not rest and first.pixel_bytes % 8 == 0 and first.row_bytes % 8 == 0
    contiguous = conv.stage.kernel[1] == 1 or (conv.stage.dilation[1] == 1 and first.pixel_bytes == first.steps * 4)
    return run and contiguous and (conv.windows is not None or not conv.stage.signed_filter) and blocks > 2 and 4 < steps(conv.stage, conv.planes) <= 128


def _tiles(block: Block, conv: Conv, group: Group, number: tirx.Expr, row: Row, begin: "int | tirx.Expr", end: "int | tirx.Expr") -> None:
    tile = allocate_tile(block, conv.stage, row.pixels, group.blocks, windows=conv.stage.signed_filter and not conv.windows)
    operands = Operands(conv.source, conv.planes, conv.filters, first_byte(conv.stage, conv.planes, group, number))
    tiles = (end - begin) * row.count
    if carries(conv, group.blocks):
        _carried(block, conv, group, number, row, begin, tiles, tile, operands)
        return

    def one(inner: Block, index: tirx.Expr) -> None:
        y, x = _place(inner, row, begin, index)
        initial = _initial(inner, conv, tile, begin, y, x)
        start(inner, tile, lambda pixel, _part: initial[pixel])
        reduce(inner, tile, operands, _origin(inner, conv, y, x))
        sums = [[result(tile, pixel, part) for part in range(tile.blocks)] for pixel in range(tile.pixels)]
        _write(inner, conv, group, number, y, x, sums)

    block.loop("tile", tiles, one)


def _place(block: Block, row: Row, begin: "int | tirx.Expr", index: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
    """(row, column) of the first pixel of a tile."""
    y = block.bind("y", tirx.floordiv(index, int32(row.count)) + begin)
    x = block.bind("x", tirx.floormod(index, int32(row.count)) * row.pixels + row.first_column)
    return y, x


def _origin(block: Block, conv: Conv, y: tirx.Expr, x: tirx.Expr) -> list[tirx.Expr]:
    """Per plane, the byte where the window of output pixel (y, x) starts."""
    top = y * conv.stage.stride[0] - conv.stage.padding[0] - conv.source_base
    left = x * conv.stage.stride[1]
    return [top * plane.row_bytes + left * plane.pixel_bytes + plane.first_byte for plane in conv.planes]


def _write(block: Block, conv: Conv, group: Group, number: tirx.Expr, y: tirx.Expr, x: tirx.Expr, sums: Sequence[Sequence[tirx.Expr]]) -> None:
    """Narrow the sums of a tile and store them."""
    for store in _stores(conv, group, number, y, x, sums):
        store(block)


def _stores(conv: Conv, group: Group, number: tirx.Expr, y: tirx.Expr, x: tirx.Expr, sums: Sequence[Sequence[tirx.Expr]]) -> list[Callable[[Block], None]]:
    """One store of 128 bytes each: 128 channels of a pixel, or 32 channels of four pixels."""

    def pixel_store(pixel: int, at: Block) -> None:
        narrowed = narrow(at, sums[pixel], conv.stage.requantize)
        at.store(conv.target, vector.at(conv.address(y, x + pixel, group, number, 0)), vector.stored(narrowed))

    def block_store(first: int, part: int, at: Block) -> None:
        four = [sums[first + pixel][part] if first + pixel < len(sums) else vector.splat(0) for pixel in range(PIXELS_OF_VECTOR)]
        pixels = deal_pixels(at, narrow(at, four, conv.stage.requantize))
        at.store(conv.target, vector.at(conv.address(y, x + first, group, number, part)), vector.stored(pixels))

    if group.wide:
        return [lambda at, pixel=pixel: pixel_store(pixel, at) for pixel in range(len(sums))]
    firsts = range(0, len(sums), PIXELS_OF_VECTOR)
    return [lambda at, first=first, part=part: block_store(first, part, at) for part in range(group.blocks) for first in firsts]


def _carried(block: Block, conv: Conv, group: Group, number: tirx.Expr, row: Row, begin: "int | tirx.Expr", tiles: "int | tirx.Expr", tile: Tile, operands: Operands) -> None:
    """Tiles whose first two words are multiplied in the block that narrows the tile before."""
    [plane] = conv.planes

    def first_words(at: Block, index: tirx.Expr) -> None:
        y, x = _place(at, row, begin, index)
        [origin] = _origin(at, conv, y, x)
        words = load_words(at, tile, operands, plane, origin, 2)
        initial = _initial(at, conv, tile, begin, y, x) if conv.windows else None
        for part in range(tile.blocks):
            weights = [filter_vector(at, tile, operands, int32(step), part) for step in range(2)]
            for pixel in range(tile.pixels):
                first, second = words[pixel]
                once = vector.dot4_add(initial[pixel], weights[0], first) if initial else vector.dot4(weights[0], first)
                total = vector.dot4_add(once, weights[1], second)
                at.store(tile.sums[pixel][part], tirx.Ramp(0, 1, vector.WORDS), total)

    def one(inner: Block, index: tirx.Expr) -> None:
        y, x = _place(inner, row, begin, index)
        reduce(inner, tile, operands, _origin(inner, conv, y, x), skip_words=2)
        sums = [[inner.bind("sum", value(tile, pixel, part), vector.VECTOR) for part in range(tile.blocks)] for pixel in range(tile.pixels)]
        following = inner.bind("following", tirx.Min(index + 1, tiles - 1))
        first_words(inner, following)
        _write(inner, conv, group, number, y, x, sums)

    def all_tiles(at: Block) -> None:
        first_words(at, int32(0))
        at.loop("tile", tiles, one)

    if isinstance(tiles, int):
        all_tiles(block)
    else:
        block.when(tiles > 0, all_tiles)
