"""One conv over a range of rows: corrections, then tiles, group by group."""

from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest

from tvm import tirx

from hexconv.schedule.block import Block, Number, int32
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.conv import Conv, Tiles, tile_pixels, tile_rows
from hexconv.schedule.hvx.filters import first_byte
from hexconv.schedule.hvx.stage import CHANNELS, Group
from hexconv.schedule.hvx.tile import (
    Operands,
    Tile,
    Words,
    allocate_tile,
    filter_vector,
    load_words,
    raise_sums,
    reduce,
    result,
    start,
    value,
)
from hexconv.schedule.hvx.windows import Windows, correct_row
from hexconv.schedule.hvx.write import stores
from hexconv.spec.narrowing import FixedPoint

FIRST_WORDS = 2  # of a tile that are multiplied while the one before it is narrowed
TILES_OF_STEP = 4  # tiles with a multiplier that one step of the loop computes

Initial = Callable[[int, int], tirx.Expr]
"""What the sums of a pixel and a block of channels start from."""


def convolve(block: Block, conv: Conv, begin: Number, end: Number) -> None:
    """Rows `begin` to `end` of the conv's output, all channels."""
    if conv.windows:
        _correct(block, conv, conv.windows, begin, end)
    for group in conv.groups:
        if conv.stage.is_ragged(group):
            for number in range(group.count):
                _group(block, conv, group, int32(number), begin, end)
        else:
            block.loop(
                "group", group.count, lambda at, number, group=group: _group(at, conv, group, number, begin, end)
            )


def _correct(block: Block, conv: Conv, windows: Windows, begin: Number, end: Number) -> None:
    """The corrections of all rows, before the tiles that start from them."""
    stage = conv.stage

    def row(at: Block, index: tirx.Expr) -> None:
        top = at.bind("top", (index + begin) * stage.stride[0] - stage.padding[0] - conv.source_base)
        correct_row(at, stage, conv.planes, conv.source, top, windows, index)

    block.loop("row", end - begin, row, part=f"{conv.name}: zero point of the filter, by pixel")


def _group(block: Block, conv: Conv, group: Group, number: Number, begin: Number, end: Number) -> None:
    """All tiles of one group: the whole ones of every row, then those at the rows' ends."""
    for row in tile_rows(conv.stage.out_size[1], tile_pixels(group.blocks)):
        tiles = Tiles(conv, group, number, row, begin, end)
        tile = allocate_tile(block, conv.stage, row.pixels, group.blocks, conv.sums_windows_in_tiles)
        operands = Operands(conv.source, conv.planes, conv.filters, first_byte(conv.stage, conv.planes, group, number))
        if conv.overlaps_tiles and group.blocks > 2:
            _overlapped(block, tiles, tile, operands)
        else:
            _one_by_one(block, tiles, tile, operands)


def _part(tiles: Tiles) -> str:
    """What a loop over tiles is called in a listing."""
    blocks, pixels = tiles.group.blocks, tiles.row.pixels
    return f"{tiles.conv.name}: tiles of {pixels} pixels by {blocks} blocks of 32 channels"


def _one_by_one(block: Block, tiles: Tiles, tile: Tile, operands: Operands) -> None:
    """before: nothing; after: for tile: start, reduce, store."""

    def one(at: Block, index: tirx.Expr) -> None:
        y, x = tiles.place(at, index)
        start(at, tile, _no_sum if tiles.conv.low_bytes else _initial(at, tiles, y, x))
        reduce(at, _bare(tile) if tiles.conv.filter_low_bytes else tile, operands, tiles.origin(y, x))
        _reduce_low(at, tiles, tile, operands, y, x)
        sums = [[result(tile, pixel, part) for part in range(tile.blocks)] for pixel in range(tile.pixels)]
        for store in stores(tiles, y, x, sums):
            store(at)

    block.loop("tile", tiles.count, one, part=_part(tiles))


def _no_sum(_pixel: int, _part: int) -> tirx.Expr:
    return vector.splat(0)


def _reduce_low(block: Block, tiles: Tiles, tile: Tile, operands: Operands, y: tirx.Expr, x: tirx.Expr) -> None:
    """Behind the high bytes the low ones, where elements have both.

    (256 a + b) (256 v + w) = 256 (256 a v + a w + b v) + b w, where v and w are the filter's, if that has both too.
    Windows are sums of activations alone: those passes count whose filter is the low half, or the whole.
    """
    conv, high = tiles.conv, tiles.origin(y, x)
    if not conv.low_bytes:
        return
    low, of_filter = [byte + conv.low_bytes for byte in high], operands
    if conv.filter_low_bytes:
        of_filter = replace(operands, first_filter=operands.first_filter + conv.filter_low_bytes)
        raise_sums(block, _bare(tile), _no_sum)
        reduce(block, tile, of_filter, high)
        reduce(block, _bare(tile), operands, low)
    raise_sums(block, tile, _initial(block, tiles, y, x))
    reduce(block, tile, of_filter, low)


def _bare(tile: Tile) -> Tile:
    """The tile without the sums of its windows."""
    return replace(tile, windows=())


def _initial(block: Block, tiles: Tiles, y: tirx.Expr, x: tirx.Expr) -> Initial:
    """Offsets by channel and corrections by pixel."""
    conv, group = tiles.conv, tiles.group
    offsets = [vector.splat(conv.stage.offset)] * group.blocks
    if conv.offsets is not None:
        places = [(tiles.number * group.blocks + group.first_block + part) * CHANNELS for part in range(group.blocks)]
        loads = [tirx.BufferLoad(conv.offsets, [tirx.Ramp(place, 1, CHANNELS)]) for place in places]
        offsets = [block.bind("offset", load, vector.VECTOR) for load in loads]
    if conv.windows is None:
        return lambda _pixel, part: offsets[part]
    at = (y - tiles.begin) * conv.windows.width + x
    words = [tirx.BufferLoad(conv.windows.corrections, [at + pixel]) for pixel in range(tiles.row.pixels)]
    if conv.offsets is None:
        whole = [block.bind("initial", vector.splat(word + conv.stage.offset), vector.VECTOR) for word in words]
        return lambda pixel, _part: whole[pixel]
    splats = [block.bind("correction", vector.splat(word), vector.VECTOR) for word in words]
    return lambda pixel, part: splats[pixel] + offsets[part]


def _overlapped(block: Block, tiles: Tiles, tile: Tile, operands: Operands) -> None:
    """Software pipelining over tiles, by hand: LLVM does it within a tile only.

    before:  for tile: start; reduce; store
    after:   first words of tile 0
             for tile: reduce the rest; store, and first words of the next tile (of the last one again, at the end)
    """

    def one(at: Block, index: tirx.Expr) -> None:
        y, x = tiles.place(at, index)
        reduce(at, tile, operands, tiles.origin(y, x), skip_words=FIRST_WORDS)
        _reduce_low(at, tiles, tile, operands, y, x)
        sums = [
            [at.bind("sum", value(tile, pixel, part), vector.VECTOR) for part in range(tile.blocks)]
            for pixel in range(tile.pixels)
        ]
        following = at.bind("following", tirx.Min(index + 1, tiles.count - 1))
        _store_and_start(at, tiles, tile, operands, following, stores(tiles, y, x, sums))

    def several(at: Block, index: tirx.Expr) -> None:
        for number in range(step):
            one(at, at.bind("index", index * step + number))

    def all_tiles(at: Block) -> None:
        _start_tile(at, tiles, tile, operands, int32(0))
        at.loop(
            "tile", tirx.floordiv(tiles.count, int32(step)) if step > 1 else tiles.count, several, part=_part(tiles)
        )

    unrolls = isinstance(tiles.conv.stage.narrowing, FixedPoint) and tiles.row.count % TILES_OF_STEP == 0
    step = TILES_OF_STEP if unrolls else 1
    block.when(tiles.count > 0, all_tiles)


def _store_and_start(
    block: Block,
    tiles: Tiles,
    tile: Tile,
    operands: Operands,
    following: tirx.Expr,
    written: list[Callable[[Block], None]],
) -> None:
    """Store a tile and start the next one, in the order that fills packets best.

    With shifts, narrowing is short and goes where the multiplications leave room. A multiplier takes both pipes
    of HVX for two packets per sum: then what narrows and what starts alternate, narrowing one ahead, so that the shifts
    and stores behind each multiplier find packets to go into.
    """
    words, initial = _first_operands(block, tiles, tile, operands, following)
    starts = [
        lambda part=part: _start_block(block, tile, operands, words, initial, part) for part in range(tile.blocks)
    ]
    narrows = [lambda store=store: store(block) for store in written]
    if isinstance(tiles.conv.stage.narrowing, FixedPoint):
        lead, *rest = narrows
        order = [lead, *(step for pair in zip_longest(rest, starts) for step in pair if step)]
    else:
        order = starts + narrows
    for step in order:
        step()


def _start_tile(block: Block, tiles: Tiles, tile: Tile, operands: Operands, index: tirx.Expr) -> None:
    """The first words of a tile, into its sums."""
    words, initial = _first_operands(block, tiles, tile, operands, index)
    for part in range(tile.blocks):
        _start_block(block, tile, operands, words, initial, part)


def _first_operands(
    block: Block, tiles: Tiles, tile: Tile, operands: Operands, index: tirx.Expr
) -> tuple[Words, Initial | None]:
    y, x = tiles.place(block, index)
    [origin] = tiles.origin(y, x)
    words = load_words(block, tile, operands, operands.planes[0], origin, FIRST_WORDS)
    from_zero = tiles.conv.starts_at_zero or tiles.conv.low_bytes
    return words, None if from_zero else _initial(block, tiles, y, x)


def _start_block(
    block: Block, tile: Tile, operands: Operands, words: Words, initial: Initial | None, part: int
) -> None:
    """One block of channels; sums that start at zero start with a multiplication that doesn't add."""
    weights = [filter_vector(block, tile, operands, int32(step), part) for step in range(FIRST_WORDS)]
    for pixel in range(tile.pixels):
        first, second = words[pixel]
        once = vector.dot4_add(initial(pixel, part), weights[0], first) if initial else vector.dot4(weights[0], first)
        total = vector.dot4_add(once, weights[1], second)
        block.store(tile.sums[pixel][part], tirx.Ramp(0, 1, vector.WORDS), total)
