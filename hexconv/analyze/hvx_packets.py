"""What the packets of HVX kernels are spent on, from the shapes and the plan alone: counts of parts, without a price.

A machine's file prices each part in packets (`hexconv.search.machine`); the model is the sum. Parts of a run:

    multiply      packets in which the inner loop's multiplications, two each, and its loads, two each, find room
    multiplier    vectors of results that are scaled by a multiplier that is no power of two
    sum           vectors of 32 sums that leave as they are
    half          vectors of results that are stored as halves, int16
    initial       vectors of sums that start from an offset or a correction
    element       elements, or words, of the input that are copied one by one
    filter        vectors of filters that are staged, in each plane of bytes
    offset        vectors of filters that are summed for the input's zero point
    window        vectors that are summed for the filter's zero point
    correction    windows that are summed from these, one by one or 32 at a time
    roll          vectors of caches that stripes move to the top, or that are cleared
    fringe        vectors of the output
    stripe        stripes of every group of channels of a conv

Shifts that narrow, whole vectors of the input and the loops around tiles find room in other packets: priced in a fit,
they cost nothing.
"""

from collections import defaultdict
from math import ceil, prod

from hexconv.analyze.hvx import LANES, VECTOR_BYTES, byte_planes, filter_zero, input_zero
from hexconv.analyze.hvx_work import MOST_BLOCKS, HvxConv, hvx_convs
from hexconv.spec import Chain, Plan, tensor_extents

NARROWED = 4
"""Vectors of sums that narrow to one of bytes."""


Parts = defaultdict[str, float]
"""How often each part occurs."""


def hvx_parts(chain: Chain, plan: Plan) -> Parts:
    """How often each part of the module's text occurs in a run of an integer chain with `kernel = "hvx"`."""
    parts: Parts = defaultdict(float)
    for conv in hvx_convs(chain, plan):
        for blocks in conv.groups:
            for pixels, count in _tiles(conv, blocks):
                _add_tiles(parts, conv, blocks, pixels, count * chain.input[0])
        _add_rows(parts, conv)
    _add_copies(parts, chain, plan)
    return parts


def _tiles(conv: HvxConv, blocks: int) -> list[tuple[int, int]]:
    """Pixels of a tile and how many tiles of one group of channels an image has."""
    most = NARROWED if blocks > 2 else 2 * NARROWED
    whole, rest = divmod(conv.width, most)
    return [(most, whole * conv.rows), (rest, conv.rows if rest else 0)]


def _add_tiles(parts: Parts, conv: HvxConv, blocks: int, pixels: int, tiles: int) -> None:
    """Tiles of one shape."""
    if not tiles:
        return
    planes, of_filters = byte_planes(conv.chain.dtype), byte_planes(conv.chain.dtype_of_filters)
    passes, rows, columns = planes * of_filters, conv.spec.kernel[0], conv.spec.kernel[1]
    for pixel_bytes in conv.source.pixels_bytes:
        dense = conv.spec.dilation[1] == 1
        runs = rows * (1 if dense else columns)
        words = ceil(pixel_bytes / 4) * (columns if dense else 1)
        pair = 2 if words % 2 == 0 and pixel_bytes % 8 == 0 else 1
        multiplied = pair * pixels * (blocks + conv.sums_in_tiles)
        loads = pair * blocks + pixels
        packets = max(multiplied / 2, pair * blocks, loads / 2)
        parts["multiply"] += tiles * passes * runs * (words // pair) * packets
    _add_results(parts, conv, blocks, pixels, tiles)


def _add_results(parts: Parts, conv: HvxConv, blocks: int, pixels: int, tiles: int) -> None:
    """What becomes of the sums of tiles."""
    how, sums = conv.spec.requantize, tiles * pixels * blocks
    starts = conv.spec.bias or input_zero(conv.chain, conv.index) or filter_zero(conv.chain, conv.spec)
    parts["initial"] += sums if starts else 0
    if how is None:
        parts["sum"] += sums
        return
    wide = conv.index < len(conv.chain.conv) - 1 and blocks == MOST_BLOCKS
    vectors = tiles * (pixels if wide else blocks * ceil(pixels / NARROWED))
    is_power = how.multiplier & (how.multiplier - 1) == 0
    parts["multiplier"] += 0 if is_power else vectors
    parts["half"] += vectors if byte_planes(conv.chain.dtype) == 2 else 0


def _add_rows(parts: Parts, conv: HvxConv) -> None:
    """What is summed for a filter's zero point, and what stripes take."""
    images = conv.chain.input[0]
    parts["stripe"] += conv.stripes * images * len(conv.groups)
    parts["window"] += conv.window_vectors * byte_planes(conv.chain.dtype) * images
    if conv.sums_ahead:
        of_row = conv.width if conv.spec.stride[1] > 1 else ceil(conv.width / LANES) * conv.spec.kernel[1]
        parts["correction"] += conv.rows * of_row * images
    if cache := conv.source.cache:
        moves = conv.stripes if conv.stripes > 1 else any(vars(conv.spec.padding).values())
        parts["roll"] += images * moves * cache.bytes // VECTOR_BYTES


def _add_copies(parts: Parts, chain: Chain, plan: Plan) -> None:
    """Copies in and out, and the staging of filters."""
    first, images, channels = hvx_convs(chain, plan)[0], chain.input[0], chain.input[3]
    line_bytes = chain.input[2] * channels * byte_planes(chain.dtype)
    if first.source.cache:
        whole = channels == first.source.pixels_bytes[0]
        parts["element"] += images * first.rows_read * (line_bytes % VECTOR_BYTES // 4 if whole else line_bytes)
    for conv in hvx_convs(chain, plan):
        staged = sum(conv.groups) * conv.words * byte_planes(chain.dtype_of_filters)
        parts["filter"] += staged
        parts["offset"] += staged if input_zero(chain, conv.index) else 0
    parts["fringe"] += prod(tensor_extents(chain)[-1].packed_shape) // VECTOR_BYTES
