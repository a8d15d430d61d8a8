"""The parts of a nest of rows that copies take: of the input, of filters, of the output."""

from math import gcd, prod

from hexconv.analyze.packet_parts import Parts, Spent
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.hvx.tiles import PAIR_BYTES, VECTOR_BYTES

WORD_BYTES = 4


def on_input(planned: PlannedRows) -> Spent:
    """What the input takes."""
    tensor, channels = planned.extents[0], planned.chain.input[3]
    first, end = tensor.valid_columns
    stored, size = planned.forms.activations[0].physical_shape[-1], channels * planned.source_bytes
    pairs = stored * planned.source_bytes / PAIR_BYTES
    blank = Parts(blank=tensor.columns * pairs)
    row = Parts(blank=(tensor.columns - (end - first)) * pairs)
    row["store"] = (end - first) * _stores(size % PAIR_BYTES) if stored != channels else 0
    if planned.plan.buffering == "single":
        pixels = end - first
        row.add(*((_moved(size * pixels), 1) if stored == channels else (_moved(size), pixels)))
        return Spent(row, blank)
    row["start"] = 1
    if not planned.ahead_rows:
        return Spent(row, blank, Parts(group=1))
    row["group"] = blank["group"] = 1
    return Spent(row, blank)


def _moved(size: int) -> Parts:
    """A run of the input that the kernel copies."""
    vectors, rest = divmod(size, VECTOR_BYTES)
    return Parts(line=1, vector=vectors, unit=rest // gcd(size, PAIR_BYTES))


def _stores(first: int) -> int:
    """Stores of 1, 2 or 4 bytes from a byte of a doubleword to its end.

    >>> [_stores(first) for first in (1, 2, 3, 4, 7)]
    [3, 2, 2, 1, 1]
    """
    return (PAIR_BYTES - first).bit_count()


def on_filter(planned: PlannedRows, index: int) -> Parts:
    """What it takes to stage all of a filter."""
    pieces = 1 if planned.plan.filters == "resident" else planned.channel_tiles(index)
    if planned.plan.buffering == "double":
        return Parts(start=pieces, group=pieces)
    return Parts(line=pieces, filter=planned.filter_vectors(index) * planned.filter_bytes)


def on_output(planned: PlannedRows) -> Spent:
    """What it takes to copy the output, beside what its conv takes."""
    tensor, last = planned.extents[-1], len(planned.chain.conv) - 1
    tiles = planned.channel_tiles(last)
    if planned.plan.buffering == "double":
        return Spent(step=Parts(start=tiles, group=tiles))
    lines = tensor.batch * tensor.row_blocks * tiles * (tensor.column_blocks if tiles > 1 else 1)
    size = prod(tensor.packed_shape) * (planned.source_bytes if planned.chain.conv[last].requantize else WORD_BYTES)
    return Spent(once=Parts(line=lines, output=size // VECTOR_BYTES))
