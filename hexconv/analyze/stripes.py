"""Which rows of every tensor each stripe of the output makes and holds, as the stripes move down the image."""

from dataclasses import dataclass

from hexconv.analyze.rows import planned_rows
from hexconv.analyze.rows_steps import RowStep
from hexconv.analyze.slabs import slabs_read
from hexconv.analyze.steps import Step, made_before
from hexconv.kernel import is_in_rows
from hexconv.spec import Chain, Plan, nest_of, tensor_extents
from hexconv.spec.extents import ROW_BLOCK


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
    if nest_of(chain, plan) == "bands":
        return ()
    rows = [extents.rows for extents in tensor_extents(chain)]
    if is_in_rows(chain, plan):
        planned = planned_rows(chain, plan)
        made = [sorted(steps, key=lambda step: (step.band, step.start)) for steps in planned.steps]
        return tuple(
            tuple(_held_by_band(*each) for each in zip(stripe, planned.cache_rows, rows, strict=True))
            for stripe in zip(*made, strict=True)
        )
    return tuple(
        tuple(
            _held(step.start * ROW_BLOCK, step.end * ROW_BLOCK, step.there * ROW_BLOCK, last)
            for step, last in zip(_stripe(chain, plan, start), rows, strict=True)
        )
        for start in range(0, tensor_extents(chain)[-1].row_blocks, plan.h_split)
    )


def _held_by_band(step: RowStep, cache_rows: int, last: int) -> Held:
    """The rows of a tensor that a thread holds once it has made the rows of a step."""
    first, end = step.band
    made_end = min(step.end, end)
    return _held(max(made_end - cache_rows, first), made_end, max(step.start, first), last)


def _held(start: int, end: int, there: int, rows: int) -> Held:
    start, end = min(start, rows), min(end, rows)
    return Held(start, end, min(max(start, there), end))


def _stripe(chain: Chain, plan: Plan, start: int) -> tuple[Step, ...]:
    """One stripe of the output, and the stripes that it is made of, in slabs."""
    extents = tensor_extents(chain)
    steps = [Step(start, min(start + plan.h_split, extents[-1].row_blocks), start if plan.halo == "roll" else 0)]
    for index in reversed(range(len(chain.conv))):
        conv, step = chain.conv[index], steps[0]
        end = min((step.end - 1) * conv.stride[0] + slabs_read(conv, 1), extents[index].row_blocks)
        first = max(step.start, step.there) * conv.stride[0]
        steps.insert(0, Step(first, end, made_before(conv, step.there)))
    return tuple(steps)
