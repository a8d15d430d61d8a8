"""Which rows of every tensor each stripe of the output makes and holds, as the stripes move down the image."""

from collections.abc import Iterator
from dataclasses import dataclass

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.planned import Planned
from hexconv.analyze.row_step import RowStep
from hexconv.analyze.rows_steps import RowSteps
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.extents import ROW_BLOCK, slabs_read


@dataclass(frozen=True)
class Held:
    """The rows of one logical tensor that are held while one stripe of the output is made; padding is no row of it.

    Attributes:
        start: the first row that is held.
        end: one past the last row that is held.
        made: the first row that is made, or copied in, for this stripe; the rows above it are held already.
    """

    start: int
    end: int
    made: int


def stripes(chain: Chain, plan: Plan) -> tuple[tuple[Held, ...], ...]:
    """For every stripe of one image's output, the rows held of the input, of each intermediate and of the output.

    Where stripes stream, those of the warm-up come first: they make no row of the output. Threads follow each other.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> first, second, *_ = stripes(chain, Plan(order="h_outer", halo="roll"))
    >>> [(held.start, held.made, held.end) for held in second]
    [(16, 24, 32), (8, 16, 24), (8, 8, 16)]
    """
    planned = Planned(chain, plan)
    stored = _in_rows(planned.rows) if planned.nest == "rows" else _in_blocks(planned.blocks)
    return tuple(tuple(map(_logical, stripe, tensor_extents(chain))) for stripe in stored)


def _in_rows(planned: RowSteps) -> Iterator[tuple[Held, ...]]:
    """Yield the stored rows that a thread holds of each tensor once it has made the rows of a step."""
    made = [[step for steps in threads for step in steps.each] for threads in planned.steps]
    for stripe in zip(*made, strict=True):
        *sources, output = map(_held_by_band, stripe, planned.cache_rows)
        yield (*sources, Held(output.made, output.end, output.made))


def _held_by_band(step: RowStep, cache_rows: int) -> Held:
    """The rows of a tensor that a thread holds once it has made the rows of a step."""
    first, end = step.band
    made_end = min(step.end, end)
    return Held(max(made_end - cache_rows, first), made_end, max(step.start, first))


def _in_blocks(planned: PlannedBlocks) -> Iterator[tuple[Held, ...]]:
    """Yield the stored rows that each stripe of blocks reads and makes of each tensor."""
    for start in range(0, planned.extents[-1].row_blocks, planned.plan.h_split):
        slabs = _stripe(planned, start)
        yield tuple(Held(first * ROW_BLOCK, end * ROW_BLOCK, there * ROW_BLOCK) for first, end, there in slabs)


def _logical(held: Held, tensor: Extents) -> Held:
    """The logical rows among stored rows."""
    first, last = tensor.valid_rows
    start, end, made = (min(max(row, first), last) - first for row in (held.start, held.end, held.made))
    return Held(min(start, end), end, min(max(start, made), end))


def _stripe(planned: PlannedBlocks, start: int) -> tuple[tuple[int, int, int], ...]:
    """For one stripe of the output, the first slab and one past the last of each tensor, and how many were there."""

    def read(index: int, made: tuple[int, int, int]) -> tuple[int, int, int]:
        (first, end, there), conv = made, planned.chain.conv[index]
        last = min(slabs_read(conv, end), planned.extents[index].row_blocks)
        return max(first, there) * conv.stride[0], last, slabs_read(conv, there) if there else 0

    end = min(start + planned.plan.h_split, planned.extents[-1].row_blocks)
    return planned.chain.backwards((start, end, start if planned.rings else 0), read)
