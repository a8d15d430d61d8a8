"""How many parts (`hexconv.analyze.nest_packets`) the copies of the input, of the filters and of the output take."""

from math import gcd, prod

from hexconv.analyze.packet_parts import Parts, Spent
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.hvx.fours import filling_stores
from hexconv.kernel.hvx.tiles import PAIR_BYTES, VECTOR_BYTES
from hexconv.spec.edges import IN_BLOCKS, PIXELS
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, blocks

WORD_BYTES = 4


def on_input(planned: PlannedRows) -> Spent:
    """Count the parts that copying the input into its cache takes."""
    tensor, channels, element = planned.extents[0], planned.chain.input[3], planned.source_bytes
    (first, end), (planes, together) = tensor.valid_columns, _planes(planned)
    pairs = planes * together * element / PAIR_BYTES
    blank = Parts(blank=tensor.columns * pairs)
    row = Parts(blank=(tensor.columns - (end - first)) * pairs)
    row["store"] = (end - first) * filling_stores(channels * element, planes * together * element)
    if planned.plan.buffering == "single":
        row.add(_row_of_input(planned, end - first))
        return Spent(row, blank)
    row["start"] = _starts(planned, end - first)
    if not planned.ahead_rows:
        return Spent(row, blank, Parts(group=1))
    row["group"] = blank["group"] = 1
    return Spent(row, blank)


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
    """Count the parts of a row of the input that the kernel itself copies, `pixels` long."""
    chain, element = planned.chain, planned.source_bytes
    (planes, together), size = _planes(planned), chain.input[3] * planned.source_bytes
    if chain.input_layout == PIXELS:
        return _row_moved(size, planes * together * element, planes, pixels)
    block = CHANNEL_BLOCK * element
    return _row_moved(size, blocks(size, block) * block, blocks(size, block), pixels)


def _planes(planned: PlannedRows) -> tuple[int, int]:
    """Return how many planes of channels the input's cache has, and how many channels one plane holds."""
    _, _, *between, together = planned.forms.activations[0].physical_shape
    return (between[0] if len(between) > 1 else 1), together


def _row_moved(size: int, stored: int, planes: int, pixels: int) -> Parts:
    """Count the parts of a row of the input that the kernel itself copies.

    It copies one run of bytes, or one run for each pixel and plane.

    Args:
        size: the bytes of a pixel.
        stored: the bytes of a pixel in the cache.
        planes: the planes that the bytes of a pixel are dealt to.
        pixels: the pixels of the row.
    """
    if planes == 1 and stored == size:
        return _moved(size * pixels, size)
    (whole, rest), row = divmod(size, stored // planes), Parts()
    row.add(_moved(stored // planes, size), whole * pixels)
    row.add(_moved(rest, size) if rest else {}, pixels)
    return row


def _moved(run: int, step: int) -> Parts:
    """Count the parts of one run of bytes of the input that the kernel copies; runs start `step` bytes apart."""
    vectors, rest = divmod(run, VECTOR_BYTES)
    return Parts(line=1, vector=vectors, unit=rest // gcd(run, step, PAIR_BYTES))


def on_filter(planned: PlannedRows, index: int) -> Parts:
    """Count the parts that it takes to stage all of the filter of conv `index` once."""
    pieces = 1 if planned.plan.filters == "resident" else planned.channel_tiles(index)
    if planned.plan.buffering == "double":
        return Parts(start=pieces, group=pieces)
    return Parts(line=pieces, filter=planned.filter_vectors(index) * planned.filter_bytes)


def on_output(planned: PlannedRows) -> Spent:
    """Count the parts that it takes to copy the output to memory; those of the last conv are not among them."""
    tensor, last = planned.extents[-1], len(planned.chain.conv) - 1
    tiles = planned.channel_tiles(last)
    if planned.plan.buffering == "double":
        return Spent(step=Parts(start=tiles, group=tiles))
    lines = tensor.batch * tensor.row_blocks * tiles * (tensor.column_blocks if tiles > 1 else 1)
    size = prod(tensor.packed_shape) * (planned.source_bytes if planned.chain.conv[last].requantize else WORD_BYTES)
    return Spent(once=Parts(line=lines, output=size // VECTOR_BYTES))
