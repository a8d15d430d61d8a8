"""Which rows of every tensor each stripe of the output makes and holds, as the stripes move down the image."""

from dataclasses import dataclass

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.planned import Planned
from hexconv.analyze.row_step import RowStep
from hexconv.spec import Chain, Plan, tensor_extents
from hexconv.spec.extents import ROW_BLOCK, slabs_read


@dataclass(frozen=True)
class Held:
    """The rows of one tensor that are held while one stripe of the output is made.

    Attributes:
        start: the first row that is read for the stripe.
        end: one past the last row that is read for the stripe.
        made: the first row that is made, or copied in, for this stripe; the rows above it are held already.
    """

    start: int
    end: int
    made: int


def stripes(chain: Chain, plan: Plan) -> tuple[tuple[Held, ...], ...]:
    """For every stripe of one image's output, the rows held of the input, of each intermediate and of the output.

    The host kernel has bands instead of stripes, so it yields nothing.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> first, second, *_ = stripes(chain, Plan(order="h_outer", halo="roll"))
    >>> [(held.start, held.made, held.end) for held in second]
    [(16, 24, 32), (8, 16, 24), (8, 8, 16)]
    """
    planned = Planned(chain, plan)
    if planned.nest == "bands":
        return ()
    rows = [extents.rows for extents in tensor_extents(chain)]
    if planned.nest == "rows":
        made = [[step for steps in threads for step in steps.each] for threads in planned.rows.steps]
        return tuple(
            tuple(_held_by_band(*each) for each in zip(stripe, planned.rows.cache_rows, rows, strict=True))
            for stripe in zip(*made, strict=True)
        )
    blocks = planned.blocks
    return tuple(
        tuple(
            _held(first * ROW_BLOCK, end * ROW_BLOCK, there * ROW_BLOCK, last)
            for (first, end, there), last in zip(stripe, rows, strict=True)
        )
        for stripe in (_stripe(blocks, start) for start in range(0, blocks.extents[-1].row_blocks, plan.h_split))
    )


def _held_by_band(step: RowStep, cache_rows: int, last: int) -> Held:
    """The rows of a tensor that a thread holds once it has made the rows of a step."""
    first, end = step.band
    made_end = min(step.end, end)
    return _held(max(made_end - cache_rows, first), made_end, max(step.start, first), last)


def _held(start: int, end: int, there: int, rows: int) -> Held:
    start, end = min(start, rows), min(end, rows)
    return Held(start, end, min(max(start, there), end))


def _stripe(planned: PlannedBlocks, start: int) -> tuple[tuple[int, int, int], ...]:
    """For one stripe of the output, the first slab and one past the last of each tensor, and how many were there."""

    def read(index: int, made: tuple[int, int, int]) -> tuple[int, int, int]:
        (first, end, there), conv = made, planned.chain.conv[index]
        last = min(slabs_read(conv, end), planned.extents[index].row_blocks)
        return max(first, there) * conv.stride[0], last, slabs_read(conv, there) if there else 0

    end = min(start + planned.plan.h_split, planned.extents[-1].row_blocks)
    return planned.chain.backwards((start, end, start if planned.rings else 0), read)
