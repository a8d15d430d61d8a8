"""Packets of a nest of rows: how often each part of its copies, rows and steps occurs.

The file of a machine prices each part in packets (`hexconv.search.machine`); the model of latency is the sum of counts
times prices. These are the parts of a run:

    setup, conv   what a run begins with, once, and once for each conv
    multiply1..4  the fewest packets that hold the trips of the inner loop, for tiles of 1 to 4 blocks of channels: a
                  packet has room for two multiplications, for one load of a vector, and for two loads in all
    within        the same, in tiles that sum their windows, too
    turn1..4      the packets of one such trip for each time that a loop of three trips or more is entered: LLVM peels
                  its start and end off
    short         what the packets of such a trip lack to 8, for each time that such a loop is entered: its start and
                  end take some, however short the trip is
    twice         inner loops of two trips that are entered
    twice_short   what the packets of such a trip lack to 8
    straight_short  what the packets lack to 8 where runs have one trip, each time; a window of one run has no loop
    apart1..4     in the same trips, runs of the filter after the first, where its blocks don't lie side by side
    tile, run     tiles that are computed, and inner loops that are entered
    sum           vectors of sums that are started and ended
    whole         vectors of sums that are stored as they are
    scale         vectors of sums that are scaled by a multiplier
    away, even    vectors of sums that are rounded with ties away from zero, and with ties to even
    inside        vectors of sums that the tile itself corrects for the filter's zero point
    initial       vectors of values by channel that a tile loads: offsets, multipliers, shifts
    begun         of the trips, those of the words that a tile multiplies while the tile before it ends
    splat         corrections that are spread over a vector
    narrow        vectors of bytes or of int16 that sums are narrowed to
    table         of these, vectors that are looked up in a table
    added         vectors of codes to which those of another tensor are added
    addend        vectors that are loaded for them
    row           rows of tiles
    lane          products of two vectors, in depthwise convs, whose lanes are channels
    own_word      in convs of small groups, the most of: products of two vectors, words that are spread, loads
    own_load      the vectors that these products load
    own_way       operands by which words of small groups are spread, in each row of outputs
    quad          in depthwise convs, vectors of 4 pixels that are loaded and shuffled
    half          in depthwise convs, words that are put together from two
    tap           in depthwise convs, vectors of taps, in all variants, that registers get from the filter
    tap_halved    of these, taps that both halves of a vector get
    lane_fill     in depthwise convs, loops over tiles that go along a row, for rows that are made together
    lane_blank    rows of tiles of the fringe of depthwise convs
    blank_row     the same of all others
    fill          vectors of the fringe, in each row those that one address reaches
    window        vectors of the source that are summed for the filter's zero point
    deal          pairs of such sums whose lanes are folded
    windows       vectors of 32 columns that the folding yields
    correction    vectors of corrections that are summed from these columns
    column        corrections that are summed from these columns one by one
    split         vectors of int16 whose low and high bytes are set apart
    of_pixels     where lanes are pixels, half of the vectors of products
    lane_load     what loads of these vectors and of two of their words each take beyond that, where tiles are low
    lane_row      where lanes are pixels, rows of outputs
    lane_run      where lanes are pixels, passes of a tile over a row of taps
    lane_loop     of these, passes that are loops over several planes
    lane_channel  where lanes are pixels, loops in which some channels of a tile are scaled side by side
    lane_scale, lane_even, lane_away   where lanes are pixels, what `scale`, `even` and `away` are elsewhere
    lane_offset   where lanes are pixels, channels whose sums start from an offset
    dealt         where lanes are pixels, instructions that deal vectors of a row of the source
    merged        where lanes are pixels, instructions that move and merge words that go on from pixel to pixel
    plane         where lanes are pixels, other instructions that lay a row of the source out
    phased        rows of the source that are laid out for a stride along the row
    across        where lanes are pixels, instructions that shuffle and store results
    of_windows    in windows of dense rows, half of the vectors of products
    of_windows1   the same in tiles of one block of channels
    copied        vectors that are loaded and stored to copy dense rows, and to sum the windows of these copies
    step          steps of convs, once for each tile of channels
    read, write   steps in which the kernel itself copies the input, or a tile of channels of the output
    ring_read     of these, steps that copy the input into a ring
    ring_step     steps that store several rows of an intermediate in a ring, but for those of depthwise convs
    ring_made     rows of tiles of these steps where lanes are pixels
    side          sides with padding, in each step that copies the input
    line          runs of bytes that the kernel copies itself, without the copy engine
    pixel_line    such runs of one pixel each, in a loop over the pixels of a row
    pixel_loop    loops over the pixels of a row
    open          of these, runs of which the kernel has to find the length
    vector        vectors of the input in these runs
    unit          copies of the bytes that these vectors leave over, as many at a time as their address allows
    rolled        the same, where they are too many to be unrolled, or an unknown number
    filter        vectors of filters in these runs
    output        vectors of the output that the kernel copies
    output_part   the same in stripes of some rows of a block
    output_line   runs of bytes of the output in blocks
    cut           runs of the input of which the kernel finds the length, in planes of 32 channels without fringe
    cut_unit      copies of the bytes of these runs
    word          instructions of scalar code that multiply 8 bytes
    product       products that scalar code computes one by one
    scalar_run    inner loops of scalar code over words that are entered
    tap_run       inner loops of scalar code over products that are entered
    scalar_row    rows of a tensor that scalar code makes
    scalar_fill   elements of the fringe that scalar code stores
    pixel         pixels that scalar code makes
    lane_group    groups of 8 channels of these pixels
    element       elements that scalar code makes of sums
    scaled        of these, elements that are scaled
    scaled_even   elements that are rounded with ties to even
    held          elements that are held between two codes
    looked_up     elements that are looked up in a table
    ragged        elements of convs whose last group has fewer than 8 channels
    unsure        of these, elements of which a step doesn't know whether its last group is the conv's
    strip_read, strip_write   steps in which the kernel copies strips, whose ends it finds
    strip_row     rows and planes of the input that it copies then
    strip_output  vectors of an output in blocks that it copies then
    strip_asked, strip_started, strip_handed   the same where the engine copies: steps, rows and planes, tiles of output
    strip_pair    doublewords of padding of the input, in strips that begin or end outside of the image
    edge_pair     the same of intermediates
    blank         vectors of the input's padding that are stored, and those of fringe that are further away
    blank_pair    doublewords of this padding, and of rows of pixels that have more bytes than the input's
    filled        runs of padding and fringe of the input, in each of its rows
    store         stores of its bytes
    start         copies that the copy engine is asked for, of all rows of a step in one, of filters, and of outputs
    row_start     the same, of each row and plane of channels of the input
    padded_start  the same, where padding lies between rows
    block_start   the same, of an input in blocks of columns
    group         groups of such copies, each of which is waited for
    ring_row      rows that are asked for one by one, since a ring holds them
    asked, handed steps in which the engine is asked for the input, or for a tile of channels of the output
    ring_handed   of these, tiles of output that are made of rings
    block_handed  blocks of columns of these tiles, of each row where a stripe is some rows of a block
    asked_side    sides with padding, in each step that the engine is asked for

Except for what a run does once, parts belong to a row, to a step, or to a filter that is staged. Stripes and halos say
how many rows, steps and stagings there are; the form of a conv says how many parts one of them takes
(`hexconv.kernel.form`).
"""

from collections import Counter
from math import ceil, gcd, prod

from hexconv.analyze.row_nest import PlannedRows
from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.kept_columns import kept_runs_of
from hexconv.kernel.tiles import PAIR_BYTES, VECTOR_BYTES, WORD_BYTES
from hexconv.spec.chain import IN_BLOCKS, PIXELS
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK, blocks

UNROLLED = 16
"""How many copies of a loop LLVM unrolls, so that they need no loop."""


def on_kept(planned: PlannedRows, tensor: int) -> Parts:
    """Count the parts of a row of a tensor: all strips but the first restore its runs, all but the last save them."""
    strips, parts = planned.strips, Parts()
    if not strips or not (runs := kept_runs_of(strips, planned.layouts, tensor)):
        return parts
    element_bytes = planned.source_bytes if tensor == 0 else 1  # bytes of an intermediate lie apart
    lanes = runs.lanes(element_bytes)
    copies = runs.run_elements // lanes
    how = "filter" if lanes * element_bytes == VECTOR_BYTES else "unit" if copies <= UNROLLED else "rolled"
    parts.add({"line": 1, how: copies}, 2 * runs.count * (strips.count - 1) / strips.count)
    return parts


def on_input(planned: PlannedRows, is_double: bool, in_ring: bool, reads_ahead: bool) -> Cost:
    """Count the parts that copying the input into its cache takes.

    Args:
        planned: the nest.
        is_double: whether copies overlap compute.
        in_ring: whether a ring holds the rows, so that one may lie in front of the one before it.
        reads_ahead: whether a ring holds rows that are read ahead.
    """
    tensor, element = planned.extents[0], planned.source_bytes
    (first, end), (planes, together) = tensor.valid_columns, _planes(planned)
    cached, columns = together * element, _stored_columns(planned)
    blank, row = _filled(columns * planes * cached), Parts()
    row.add(_filled_in_row(planned, columns, cached))
    row["filled"] = planes * (end - first < columns)
    row.add(on_kept(planned, 0))
    row.add(_edges(planned, planes * cached))
    sides, in_strips = (
        sum(side > 0 for side in vars(planned.chain.conv[0].padding).values()),
        planned.strips is not None,
    )
    if not is_double:
        in_ring = in_ring and _wraps(planned)
        step = Parts(read=1, ring_read=in_ring, side=sides, strip_read=in_strips)
        if not in_ring and _lies_together(planned):
            row_bytes = (end - first) * cached
            row["vector"] += row_bytes / VECTOR_BYTES
            step.add({"line": 1, "rolled": VECTOR_BYTES / 2 / gcd(row_bytes, PAIR_BYTES)})
        else:
            row.add(_row_of_input(planned, end - first))
        row["strip_row"] = planes * in_strips
        return Cost(row, blank, step)
    by_row, by_step = _starts(planned)
    if in_ring and not reads_ahead and by_step:
        by_row, by_step = Parts(row_start=1), Parts()
    row["ring_row"] = blank["ring_row"] = int(in_ring)
    row["strip_started"] = planes * in_strips
    if not reads_ahead:
        row.add(by_row)
        sides = sides if by_row else 0  # one copy of all rows is merely shorter at the image's ends
        return Cost(row, blank, Parts(group=1, asked=1, asked_side=sides, strip_asked=in_strips, **by_step))
    row.add({**by_row, **by_step, "group": 1, "strip_asked": in_strips})
    blank["group"] = 1
    return Cost(row, blank)


def _wraps(planned: PlannedRows) -> bool:
    """Whether a step's copies go on at the start of a ring: never where one conv has windows that share no rows."""
    first = planned.chain.conv[0]
    reach = (first.kernel[0] - 1) * first.dilation[0] + 1
    return len(planned.chain.conv) > 1 or reach > first.stride[0]


def _lies_together(planned: PlannedRows) -> bool:
    """Whether rows of the input lie one behind the other in memory and in its cache: one run copies all of a step."""
    chain, tensor = planned.chain, planned.extents[0]
    (planes, together), (first, end) = _planes(planned), tensor.valid_columns
    is_dense = chain.input_layout == PIXELS and planes == 1 and together == chain.input[3] and planned.strips is None
    row_bytes = (end - first) * together * planned.source_bytes
    return is_dense and end - first == chain.input[2] and planned.convs[0].plane.row_bytes == row_bytes


def _stored_columns(planned: PlannedRows) -> int:
    """Return the columns of a row of the input's cache: those behind its last window are filled, too.

    What a strip fills depends on where it lies (`_edges`).
    """
    return planned.extents[0].columns if planned.strips else planned.layouts.activations[0].stored_extent("W")


def _edges(planned: PlannedRows, pixel_bytes: int) -> Parts:
    """Count the parts of filling a row of the input outside of the image, on average over all strips.

    How many columns that are depends on the strip, so that loops have trips that nobody knows ahead.
    """
    strips, layout = planned.strips, planned.layouts.activations[0]
    if not strips or strips.keeps or strips.is_inside(0):
        return Parts()
    valid = [strips.valid_columns(0, number) for number in range(strips.count)]
    spare = layout.stored_extent("W") - sum(end - first for first, end in valid) / strips.count
    return Parts(strip_pair=spare * pixel_bytes / PAIR_BYTES)


def _filled(size: int, aligned: int = PAIR_BYTES) -> Parts:
    """Count the stores that fill so many bytes: of whole vectors, of doublewords, then of bytes.

    LLVM stores a doubleword in pieces of `aligned` bytes where no more is known of its address.

    >>> [dict(_filled(size)) for size in (256, 354)]
    [{'blank': 2, 'blank_pair': 0, 'store': 0}, {'blank': 2, 'blank_pair': 12, 'store': 2}]
    >>> dict(_filled(26, 2))
    {'blank': 0, 'blank_pair': 0, 'store': 14}
    """
    vectors, rest = divmod(size, VECTOR_BYTES)
    pairs, stores = divmod(rest, PAIR_BYTES)
    if aligned < PAIR_BYTES:
        pairs, stores = 0, stores + pairs * PAIR_BYTES // aligned
    return Parts(blank=vectors, blank_pair=pairs, store=stores)


def _filled_in_row(planned: PlannedRows, columns: int, pixel_bytes: int) -> Parts:
    """Count the stores that fill a row of the input's cache, of `columns` pixels in each plane, beside its elements.

    Padding to the right of a plane goes on to the left of the next one. Where the last plane has fringe, all of its row
    is filled, and runs go over that; rows of the only plane lie one behind the other: without padding between them, one
    fill is all of a step's.
    """
    (first, end), (planes, together), row = planned.extents[0].valid_columns, _planes(planned), Parts()
    left, right, size = (count * pixel_bytes for count in (first, columns - end, columns))
    aligned, padding = gcd(columns * pixel_bytes, PAIR_BYTES), planned.chain.conv[0].padding
    if not planned.convs[0].form.reads_fringe or planned.chain.input[3] % together == 0:
        row.add(_filled(left + right, aligned), planes)
    elif planes > 1:
        row.add(_filled(left + right, aligned), planes - 2)
        row.add(_filled(right, aligned))
        row.add(_filled(left + size, gcd(pixel_bytes, PAIR_BYTES)))
    elif padding.top or padding.bottom or planned.strips:
        row.add(_filled(size, gcd(pixel_bytes, PAIR_BYTES)))
    else:
        row["blank"] = size / VECTOR_BYTES
    return row


def _starts(planned: PlannedRows) -> tuple[Parts, Parts]:
    """Count the copies that the engine starts for a row of the input, and those for all rows that a step asks for.

    One copy moves all rows where they lie at equal distances, and so do their pixels: in one plane of channels, whose
    pixels lie as the input's do or have no padding beside them. Else each row and plane has a copy of its own, and in
    blocks of columns each block.

    >>> from hexconv.analyze.row_nest import planned_rows
    >>> from hexconv.spec import Chain, Conv2d, Plan, Requantize
    >>> from hexconv.spec.chain import EDGE_LAYOUTS
    >>> conv = Conv2d(out_channels=8, requantize=Requantize(multiplier=1 << 30))
    >>> lying = [Chain(input=(1, 8, 20, 40), dtype="uint8", input_layout=each, conv=(conv,)) for each in EDGE_LAYOUTS]
    >>> [dict(part) for chain in lying for part in _starts(planned_rows(chain, Plan(kernel="hvx", order="h_outer")))]
    [{'block_start': 6}, {}, {}, {'start': 1}, {'row_start': 2}, {}]
    """
    chain, tensor = planned.chain, planned.extents[0]
    (planes, together), (first, end) = _planes(planned), tensor.valid_columns
    of_channels = blocks(chain.input[3], CHANNEL_BLOCK)
    if chain.input_layout == IN_BLOCKS:
        return Parts(block_start=of_channels * blocks(end - first, COLUMN_BLOCK)), Parts()
    is_padded = end - first < _stored_columns(planned)
    if chain.input_layout == PIXELS and planes == 1 and (together == chain.input[3] or not is_padded):
        return Parts(), Parts(start=1)
    starts = planes if chain.input_layout == PIXELS else of_channels
    return Parts(**{"padded_start" if is_padded else "row_start": starts}), Parts()


def _row_of_input(planned: PlannedRows, pixels: int) -> Parts:
    """Count the parts of a row of the input that the kernel itself copies, `pixels` long.

    It copies one run of bytes, or one for each block of columns, or one for each pixel and plane of channels.
    """
    chain, element = planned.chain, planned.source_bytes
    (planes, together), size = _planes(planned), chain.input[3] * planned.source_bytes
    cached, block = together * element, CHANNEL_BLOCK * element
    if chain.input_layout == PIXELS:
        if planes == 1 and cached == size:
            return moved(size * pixels, size)
        return _pixels_moved(size, cached, (size, cached), pixels)
    if cached == block and size % block and not planned.convs[0].form.reads_fringe:
        count, unit = ceil(size / block), gcd(size, block, PAIR_BYTES)
        return Parts(cut=count * pixels, cut_unit=size // unit * pixels)
    if cached != block:
        return _pixels_moved(size, min(cached, block), (block, cached), pixels)
    columns = COLUMN_BLOCK if chain.input_layout == IN_BLOCKS else pixels
    row = Parts()
    row.add(moved(columns * block, block), size // block * ceil(pixels / columns))
    row.add(_moved_in_loop(size % block, (block, block), pixels) if size % block else {})
    return row


def _planes(planned: PlannedRows) -> tuple[int, int]:
    """Return how many planes of channels the input's cache has, and how many channels one plane holds."""
    _, _, *between, together = planned.layouts.activations[0].physical_shape
    return (between[0] if len(between) > 1 else 1), together


def _pixels_moved(size: int, run: int, steps: tuple[int, int], pixels: int) -> Parts:
    """Count the parts of pixels that the kernel copies in runs of bytes.

    Args:
        size: the bytes of a pixel.
        run: the bytes of a run, but for the last one of a pixel.
        steps: the bytes from pixel to pixel, at the source and at the target.
        pixels: how many there are.
    """
    (whole, rest), row = divmod(size, run), Parts()
    row.add(_moved_in_loop(run, steps, pixels), whole)
    row.add(_moved_in_loop(rest, steps, pixels) if rest else {})
    return row


def _moved_in_loop(run: int, steps: tuple[int, ...], trips: int) -> Parts:
    """Count the parts of a loop over short runs of bytes, one for each pixel of a row."""
    parts = Parts(pixel_loop=1)
    parts.add(moved(run, *steps), trips)
    parts["pixel_line"] = parts.pop("line")
    return parts


def moved(run: int, *steps: int) -> Parts:
    """Count the parts of one run of bytes that the kernel copies; runs start `steps` bytes apart."""
    vectors, rest = divmod(run, VECTOR_BYTES)
    units = rest // gcd(run, *steps, PAIR_BYTES)
    return Parts(line=1, vector=vectors, **{"unit" if units <= UNROLLED else "rolled": units})


def on_filter(planned: PlannedRows, index: int, is_resident: bool, is_double: bool) -> Parts:
    """Count the parts that it takes to stage all of the filter of conv `index` once, in one piece or tile by tile."""
    pieces = 1 if is_resident else planned.channel_tiles(index)
    if is_double:
        return Parts(start=pieces, group=pieces)
    return Parts(line=pieces, filter=prod(planned.layouts.filters[index].physical_shape) // VECTOR_BYTES)


def on_output(planned: PlannedRows, is_double: bool) -> Cost:
    """Count the parts that it takes to copy the output to memory; those of the last conv are not among them."""
    last = len(planned.chain.conv) - 1
    tensor, tiles = planned.extents[-1], planned.channel_tiles(last)
    in_rows = planned.chain.output_layout != IN_BLOCKS
    rows, in_strips = tensor.batch * tensor.rows, planned.strips is not None
    is_part = planned.plan.stripe_rows < ROW_BLOCK
    if is_double:
        step = Parts(group=tiles, handed=tiles, strip_handed=tiles * in_strips)
        if in_rows:
            return Cost(step=step, once=Parts(start=rows * _runs_written(planned).total()))
        if not is_part:
            return Cost(step=Parts(start=tiles, **step))
        starts = tensor.batch * tensor.row_blocks * ROW_BLOCK * tiles
        return Cost(step=step, once=Parts(start=starts, block_handed=starts * tensor.column_blocks))
    step, once = Parts(write=tiles, strip_write=tiles * in_strips), Parts()
    if in_rows:
        once.add(_row_written(planned), rows)
        return Cost(step=step, once=once)
    if is_part:
        step["output_line"] = tensor.column_blocks * tensor.channel_blocks
    else:
        once["output_line"] = tensor.batch * tensor.row_blocks * tiles * (tensor.column_blocks if tiles > 1 else 1)
    vectors = prod(tensor.packed_shape) * _result_bytes(planned) // VECTOR_BYTES
    once["strip_output" if in_strips else "output_part" if is_part else "output"] = vectors
    return Cost(step=step, once=once)


def _result_bytes(planned: PlannedRows) -> int:
    """Return the bytes of an element of the output."""
    return planned.source_bytes if planned.chain.conv[-1].requantize else WORD_BYTES


def _runs_written(planned: PlannedRows) -> Counter[int]:
    """Return how many runs of bytes of a pixel, or of a block's row, a row of the output has, by their channels."""
    tensor = planned.extents[-1]
    together = CHANNEL_BLOCK if planned.chain.output_layout != PIXELS else planned.layouts.channel_units[-1]
    whole, rest = divmod(tensor.channels, together)
    return Counter({together: whole, rest: 1} if rest else {together: whole})


def _row_written(planned: PlannedRows) -> Parts:
    """Count the parts of a row of the output that the kernel itself copies, in pixels or in blocks of channels.

    In pixels it copies a run of bytes for each pixel and block of channels, unless a pixel is all that a block holds.
    The kernel finds out how many bytes a run has where the last tile has fewer channels.
    """
    tensor, size, runs, row = planned.extents[-1], _result_bytes(planned), _runs_written(planned), Parts()
    pixels = tensor.valid_columns[1] - tensor.valid_columns[0]
    if planned.chain.output_layout != PIXELS:
        row.add(moved(pixels * CHANNEL_BLOCK * size, CHANNEL_BLOCK * size), runs.total())
        return row
    if tensor.channels == planned.layouts.channel_units[-1]:
        return moved(pixels * tensor.channels * size, tensor.channels * size)
    for channels, times in runs.items():
        row.add(_moved_in_loop(channels * size, (tensor.channels * size,), pixels), times)
    tiles = planned.channel_tiles(len(planned.chain.conv) - 1)
    row["open"] = pixels * runs.total() if len(runs) > 1 and tiles > 1 else 0
    return row


def on_set_up(planned: PlannedRows) -> Parts:
    """Count the parts that a run takes once, whatever its plan is."""
    return Parts(setup=1, conv=len(planned.chain.conv))


def on_conv(planned: PlannedRows, index: int) -> Cost:
    """Count the parts that conv `index` takes, for a row, a blank row, a step, and once."""
    cost = planned.convs[index].form.packets()
    for rows in (cost.row, cost.blank_row):
        rows.add(on_kept(planned, index + 1))
        if filled := planned.filled_share(index + 1):
            rows.add({"edge_pair": filled / PAIR_BYTES})
    return cost
