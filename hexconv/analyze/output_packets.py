"""How many parts (`hexconv.analyze.nest_packets`) the copies of the output take."""

from collections import Counter
from dataclasses import replace
from math import prod

from hexconv.analyze.copy_packets import moved
from hexconv.analyze.packet_parts import Parts, Spent
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.hvx.tiles import VECTOR_BYTES
from hexconv.spec.edges import IN_BLOCKS, PIXELS
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK

WORD_BYTES = 4


def on_output(planned: PlannedRows) -> Spent:
    """Count the parts that it takes to copy the output to memory; those of the last conv are not among them."""
    last = len(planned.chain.conv) - 1
    tensor, tiles = planned.extents[-1], planned.channel_tiles(last)
    in_rows = planned.chain.output_layout != IN_BLOCKS
    rows = tensor.batch * tensor.rows
    if planned.plan.buffering == "double":
        groups = Spent(step=Parts(group=tiles, start=0 if in_rows else tiles))
        return replace(groups, once=Parts(start=rows * _runs_written(planned).total())) if in_rows else groups
    step, once = Parts(write=tiles), Parts()
    if in_rows:
        once.add(_row_written(planned), rows)
        return Spent(step=step, once=once)
    if planned.plan.stripe_rows < ROW_BLOCK:
        step["line"] = tensor.column_blocks * tensor.channel_blocks
    else:
        once["line"] = tensor.batch * tensor.row_blocks * tiles * (tensor.column_blocks if tiles > 1 else 1)
    vectors = prod(tensor.packed_shape) * _result_bytes(planned) // VECTOR_BYTES
    once["output"] = vectors
    return Spent(step=step, once=once)


def _result_bytes(planned: PlannedRows) -> int:
    """Return the bytes of an element of the output."""
    return planned.source_bytes if planned.chain.conv[-1].requantize else WORD_BYTES


def _runs_written(planned: PlannedRows) -> Counter[int]:
    """Return how many runs of bytes of a pixel, or of a block's row, a row of the output has, by their channels."""
    tensor = planned.extents[-1]
    together = CHANNEL_BLOCK if planned.chain.output_layout != PIXELS else planned.forms.channel_units[-1]
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
    if tensor.channels == planned.forms.channel_units[-1]:
        return moved(pixels * tensor.channels * size, tensor.channels * size)
    for channels, times in runs.items():
        row.add(moved(channels * size, tensor.channels * size), times * pixels)
    tiles = planned.channel_tiles(len(planned.chain.conv) - 1)
    row["open"] = pixels * runs.total() if len(runs) > 1 and tiles > 1 else 0
    return row
