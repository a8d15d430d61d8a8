"""How many parts (`hexconv.analyze.nest_packets`) the copies of the input and of the filters take."""

from math import ceil, gcd

from hexconv.analyze.kept_packets import on_kept
from hexconv.analyze.packet_parts import UNROLLED, Parts, Spent
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.depthwise import is_depthwise
from hexconv.kernel.hvx.blocks import filling_stores
from hexconv.kernel.hvx.tiles import PAIR_BYTES, VECTOR_BYTES
from hexconv.spec.edges import IN_BLOCKS, PIXELS
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, blocks


def on_input(planned: PlannedRows) -> Spent:
    """Count the parts that copying the input into its cache takes."""
    return input_parts(planned, reads_ahead=planned.ahead_rows > 0)


def input_parts(planned: PlannedRows, reads_ahead: bool) -> Spent:
    """Count these parts; `reads_ahead` says whether a ring holds rows of the input that are read ahead."""
    tensor, channels, element = planned.extents[0], planned.chain.input[3], planned.source_bytes
    (first, end), (planes, together) = tensor.valid_columns, _planes(planned)
    cached = together * element
    blank, row = _filled(tensor.columns * planes * cached), Parts()
    row.add(_filled((tensor.columns - (end - first)) * cached), planes)
    row.add(on_kept(planned, 0))
    if not is_depthwise(planned.chain, 0):
        row["store"] += (end - first) * filling_stores(channels * element, planes * cached)
    if planned.plan.buffering == "single":
        row.add(_row_of_input(planned, end - first))
        sides = sum(side > 0 for side in vars(planned.chain.conv[0].padding).values())
        return Spent(row, blank, Parts(read=1, side=sides))
    row["block_start" if planned.chain.input_layout == IN_BLOCKS else "start"] = _starts(planned, end - first)
    if not reads_ahead:
        return Spent(row, blank, Parts(group=1))
    row["group"] = blank["group"] = 1
    return Spent(row, blank)


def _filled(size: int) -> Parts:
    """Count the stores that fill so many bytes: of whole vectors and doublewords, then of bytes.

    >>> [dict(_filled(size)) for size in (256, 354)]
    [{'blank': 2, 'store': 0}, {'blank': 14, 'store': 2}]
    """
    vectors, rest = divmod(size, VECTOR_BYTES)
    return Parts(blank=vectors + rest // PAIR_BYTES, store=rest % PAIR_BYTES)


def _starts(planned: PlannedRows, pixels: int) -> int:
    """Count the copies that the engine starts for a row: one for each block of channels, and of columns if there are.

    >>> from hexconv.analyze.rows import planned_rows
    >>> from hexconv.spec import Chain, Conv2d, Plan, Requantize
    >>> from hexconv.spec.edges import EDGE_LAYOUTS
    >>> conv = Conv2d(out_channels=8, requantize=Requantize(multiplier=1 << 30))
    >>> lying = [Chain(input=(1, 8, 20, 40), dtype="uint8", input_layout=each, conv=(conv,)) for each in EDGE_LAYOUTS]
    >>> [_starts(planned_rows(chain, Plan(kernel="hvx", order="h_outer")), 20) for chain in lying]
    [6, 1, 2]
    """
    chain = planned.chain
    if chain.input_layout == PIXELS:
        return _planes(planned)[0]
    of_columns = blocks(pixels, COLUMN_BLOCK) if chain.input_layout == IN_BLOCKS else 1
    return blocks(chain.input[3], CHANNEL_BLOCK) * of_columns


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
    if cached == block and size % block:
        count, unit = ceil(size / block), gcd(size, block, PAIR_BYTES)
        return Parts(cut=count * pixels, cut_unit=size // unit * pixels)
    if cached != block:
        return _pixels_moved(size, min(cached, block), (block, cached), pixels)
    columns = COLUMN_BLOCK if chain.input_layout == IN_BLOCKS else pixels
    row = Parts()
    row.add(moved(columns * block, block), size // block * ceil(pixels / columns))
    return row


def _planes(planned: PlannedRows) -> tuple[int, int]:
    """Return how many planes of channels the input's cache has, and how many channels one plane holds."""
    _, _, *between, together = planned.forms.activations[0].physical_shape
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
    row.add(moved(run, *steps), whole * pixels)
    row.add(moved(rest, *steps) if rest else {}, pixels)
    return row


def moved(run: int, *steps: int) -> Parts:
    """Count the parts of one run of bytes that the kernel copies; runs start `steps` bytes apart."""
    vectors, rest = divmod(run, VECTOR_BYTES)
    units = rest // gcd(run, *steps, PAIR_BYTES)
    return Parts(line=1, vector=vectors, **{"unit" if units <= UNROLLED else "rolled": units})


def on_filter(planned: PlannedRows, index: int) -> Parts:
    """Count the parts that it takes to stage all of the filter of conv `index` once."""
    pieces = 1 if planned.plan.filters == "resident" else planned.channel_tiles(index)
    if planned.plan.buffering == "double":
        return Parts(start=pieces, group=pieces)
    return Parts(line=pieces, filter=planned.filter_vectors(index) * planned.filter_bytes)
