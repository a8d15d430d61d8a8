"""What the packets of a nest of rows are spent on, by shapes and plan alone: counts of parts, without a price.

A machine's file prices each part in packets (`hexconv.search.machine`); the model is the sum. Parts of a run:

    multiply1..4  packets in which the trips of the inner loop find room, by blocks of channels of the tile: of their
                  multiplications, two each, of their loads of vectors, one each, and of all their loads, two each
    turn1..4      of these, one trip for each time that the loop is entered: LLVM starts and ends it apart
    apart1..4     in the same trips, runs of the filter beside the first: of blocks that don't lie side by side
    tile, run     tiles, and inner loops that are entered
    sum           vectors of sums that start, and end
    whole         of these, those that leave as they are
    scale         of these, those that are scaled by a multiplier
    away, even    of these, those that are rounded away from zero, and half to even
    inside        of these, those that are corrected for the filter's zero point by sums in the tile
    initial       vectors of what differs by channel that a tile loads: offsets, multipliers, shifts
    overlapped    of these, those of tiles that start while the one before ends
    splat         corrections that are spread over a vector
    narrow        vectors of bytes that are made of sums
    row           rows of tiles
    lane          products of two vectors, of convs whose lanes are channels
    quad          vectors of 4 pixels of these that are loaded and shuffled
    half          words of these that are made of two
    tap           vectors of their taps that are loaded
    laid          of their taps, each in each place of a word that it has, those that are laid out
    blank_row     rows of the fringe
    fill          vectors of the fringe
    window        vectors that are summed for the filter's zero point
    deal          of these, pairs whose lanes are folded
    windows       vectors of 32 columns that come of that
    correction    vectors of corrections that are summed from these
    column        corrections that are summed one by one
    offset        vectors of filters that are summed for the input's zero point
    split         vectors of int16 whose bytes are set apart
    across        vectors that are loaded, moved from lane to lane or stored where lanes are pixels
    step          steps of convs
    line          runs of bytes that the kernel copies itself
    vector        vectors of the input in these
    unit          what is left behind vectors, as many bytes at a time as their address allows
    filter        vectors of filters in these
    output        vectors of the output in these
    word          instructions of scalar code that multiply 8 bytes
    product       products that scalar code takes one by one
    scalar_run    loops of these that are entered
    element       elements that it makes of sums
    blank         doublewords of the input's padding
    store         stores that widen pixels of the input to doublewords
    start         copies that the engine is asked for
    group         groups of these, each waited for

All but what a run does once is of a row, of a step or of a filter that is staged. How often there is one is a matter of
stripes and halos; what is spent on one, of tiles of channels (`Spent`).
"""

from math import ceil

from hexconv.analyze.copy_packets import on_filter, on_input, on_output
from hexconv.analyze.depthwise_packets import on_depthwise_tiles, on_rows_together, on_taps
from hexconv.analyze.packet_parts import Parts, Spent
from hexconv.analyze.rows import VECTOR_WORDS, PlannedRows, planned_rows
from hexconv.analyze.tile_packets import on_pixels, on_tile
from hexconv.kernel.depthwise import is_depthwise
from hexconv.kernel.hvx.pixels import PixelLanes
from hexconv.kernel.hvx.tiles import VECTOR_BLOCKS, VECTOR_BYTES, tile_pixels
from hexconv.spec import Chain, Plan

SCALAR_PARTS = ("word", "scalar_run", "product", "element")
"""Of convs that no HVX kernel serves."""


def nest_parts(chain: Chain, plan: Plan) -> Parts:
    """How often each part of the module's text occurs in a run."""
    planned, parts = planned_rows(chain, plan), Parts()
    for tensor, spent in enumerate([on_input(planned), *(on_conv(planned, i) for i in range(len(chain.conv)))]):
        rows, stored = planned.logical_rows(tensor), planned.stored_rows(tensor)
        steps, together = planned.step_count(tensor), planned.rows_together(tensor)
        for each, times in zip(spent.parts, (rows, stored - rows, steps, planned.bands.count, *together), strict=True):
            parts.add(each, times)
    for index in range(len(chain.conv)):
        parts.add(on_filter(planned, index), planned.filter_stagings(index))
    output = on_output(planned)
    parts.add(output.step, planned.step_count(-1))
    parts.add(output.once)
    return parts


def on_conv(planned: PlannedRows, index: int) -> Spent:
    """What a conv takes."""
    if planned.kernels[index] == "plain":
        return _by_scalar_code(planned, index)
    row, blank, tiles, lanes = Parts(), Parts(), planned.tiles(index), planned.pixels(index)
    row.add(_tiles_of_pixels(planned, index, lanes) if lanes else {})
    row.add(on_depthwise_tiles(planned, index))
    first, end = planned.extents[index + 1].valid_columns
    for blocks, times in tiles.items():
        row.add(_tiles(planned, index, blocks, end - first) if planned.multiplies_tiles(index) else {}, times)
        filled, all_vectors = _filled_vectors(planned, index, blocks)
        row.add({"fill": filled, "row": 1}, times)
        blank.add({"fill": all_vectors, "blank_row": 1}, times)
    row.add(_windows(planned, index) if planned.sums_windows_ahead(index) else {}, tiles.total())
    if index == 0 and planned.source_bytes > 1:
        row["split"] = tiles.total() * planned.chain.conv[0].stride[0] * planned.row_bytes(0) / VECTOR_BYTES
    vectors = planned.multiplied_vectors(index)
    once = Parts(offset=vectors) if planned.source_zero(index) else Parts()
    once.add(on_taps(planned, index) if is_depthwise(planned.chain, index) else {})
    step = Parts(step=planned.channel_tiles(index))
    if lanes:
        once["across"] += vectors
        old = lanes.planes.rows - lanes.planes.new_rows
        step["across"] = tiles.total() * old * lanes.planes.laid
    return Spent(row, blank, step, once, on_rows_together(planned, index))


def _tiles(planned: PlannedRows, index: int, blocks: int, columns: int) -> Parts:
    """The tiles of a row, for one tile of channels."""
    parts = Parts()
    whole, rest = divmod(columns, tile_pixels(blocks))
    parts.add(on_tile(planned, index, blocks, tile_pixels(blocks)), whole)
    parts.add(on_tile(planned, index, blocks, rest) if rest else {})
    return parts


def _tiles_of_pixels(planned: PlannedRows, index: int, lanes: PixelLanes) -> Parts:
    """The tiles of a row of all channels where lanes are pixels, and the planes that they read."""
    parts = Parts(across=planned.tiles(index).total() * lanes.planes.new_rows * lanes.planes.laid)
    for tile, times in lanes.tiles:
        parts.add(on_pixels(planned, index, lanes, tile), times)
    return parts


def _by_scalar_code(planned: PlannedRows, index: int) -> Spent:
    """What a conv without HVX takes."""
    (first, end), work = planned.extents[index + 1].valid_columns, planned.scalar(index)
    row, once = Parts(row=1), Parts(word=work.filter_words)
    row.add(
        {
            "word": work.words + work.window_words,
            "scalar_run": work.runs,
            "product": work.products,
            "element": work.lanes,
        },
        end - first,
    )
    return Spent(row, Parts(blank_row=1), Parts(step=planned.channel_tiles(index)), once)


def _filled_vectors(planned: PlannedRows, index: int, blocks: int) -> tuple[int, int]:
    """Vectors of the fringe in a row with elements, and of a row without, for one tile of channels."""
    tensor, in_blocks = planned.extents[index + 1], planned.makes_blocks(index)
    together = planned.forms.channel_units[index + 1]
    pixels = VECTOR_BLOCKS // together if planned.chain.conv[index].requantize else 1
    columns = planned.source_columns(index + 1)
    first, end = tensor.valid_columns
    starts = range(ceil(end / pixels) * pixels if in_blocks else 0, columns, pixels)
    filled = len(starts) if in_blocks else sum(at < first or at + pixels > end for at in starts)
    return filled * blocks // together, columns // pixels * blocks // together


def _windows(planned: PlannedRows, index: int) -> Parts:
    """The sums of the windows of a row of outputs."""
    conv, (first, end) = planned.chain.conv[index], planned.extents[index + 1].valid_columns
    pixel_bytes = planned.forms.activations[index].physical_shape[-1]
    leaf = max(pixel_bytes // VECTOR_BYTES, 1)
    leaves = VECTOR_WORDS * pixel_bytes // VECTOR_BYTES // leaf
    groups, rest = divmod(planned.source_columns(index) * pixel_bytes // VECTOR_BYTES // leaf, leaves)
    parts = Parts(window=planned.row_bytes(index) // VECTOR_BYTES * conv.kernel[0], windows=groups + (rest > 0))
    parts["deal"] = groups * (leaves - 1) + _pairs(leaves, rest)
    if conv.stride[1] == 1:
        parts["correction"] = ceil((end - first) / VECTOR_WORDS) * conv.kernel[1]
    else:
        parts["column"] = (end - first) * conv.kernel[1]
    return parts


def _pairs(leaves: int, there: int) -> int:
    """Pairs in a tree over leaves, of which the first ones are there.

    >>> [_pairs(8, there) for there in (0, 1, 5, 8)]
    [0, 3, 6, 7]
    """
    if there <= 0 or leaves == 1:
        return 0
    return 1 + _pairs(leaves // 2, there) + _pairs(leaves // 2, there - leaves // 2)
