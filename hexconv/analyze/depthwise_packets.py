"""The parts of a nest of rows that depthwise convs take: products of lanes, and the words of pixels that they need."""

from hexconv.analyze.packet_parts import Parts
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.depthwise import (
    MOST_HELD,
    TILE_PIXELS,
    TILE_ROWS,
    WORD_PIXELS,
    is_depthwise,
    quads_read,
    source_rows,
    taps_of,
    tile_uses,
    variants,
)
from hexconv.spec import Conv2d


def on_rows_together(planned: PlannedRows, index: int) -> tuple[Parts, ...]:
    """What so many neighbouring rows of a conv share: words of their source, and taps; nothing unless depthwise."""
    if not is_depthwise(planned.chain, index):
        return tuple(Parts() for _ in TILE_ROWS)
    return tuple(_shared(planned, index, rows) for rows in TILE_ROWS)


def on_taps(planned: PlannedRows, index: int) -> Parts:
    """What it takes to lay out the taps of all channels."""
    conv = planned.chain.conv[index]
    taps = sum(len(list(taps_of(conv, variant))) for variant in variants(conv))
    return Parts(laid=conv.kernel[0] * taps * planned.extents[index + 1].channel_blocks)


def _shared(planned: PlannedRows, index: int, rows: int) -> Parts:
    """What some rows of all channels share."""
    conv, tensor = planned.chain.conv[index], planned.extents[index + 1]
    first, end = tensor.valid_columns
    whole, rest = divmod(end - first, TILE_PIXELS)
    read, taps = len(source_rows(conv.kernel[0], conv.stride[0], conv.dilation[0], rows)), _taps(conv)
    parts = Parts(tap=taps if taps <= MOST_HELD else taps * (whole + (rest > 0)))
    for pixels, times in ((TILE_PIXELS, whole), (rest, 1)):
        parts.add(_words(conv, pixels), read * times)
    shared = Parts()
    shared.add(parts, tensor.channel_blocks)
    return shared


def _taps(conv: Conv2d) -> int:
    """Vectors of taps of 32 channels."""
    return conv.kernel[0] * len(variants(conv))


def _words(conv: Conv2d, pixels: int) -> Parts:
    """What words of one row of the source take, for a tile of so many outputs of a row."""
    halves = {use.pixel for uses in tile_uses(conv, pixels) for use in uses if use.pixel % WORD_PIXELS}
    return Parts(quad=quads_loaded(conv, pixels), half=len(halves))


def quads_loaded(conv: Conv2d, pixels: int) -> int:
    """Vectors of 4 pixels that some neighbouring outputs load of a row.

    >>> quads_loaded(Conv2d(out_channels=8, kernel=(3, 3)), 4), quads_loaded(Conv2d(out_channels=8, kernel=(3, 3)), 0)
    (2, 0)
    """
    found = set[int]()
    for use in (use for uses in tile_uses(conv, pixels) for use in uses):
        quad, rest = divmod(use.pixel, WORD_PIXELS)
        found |= {quad, quad + 1} if rest and quad + 1 < quads_read(conv, pixels) else {quad}
    return len(found)
