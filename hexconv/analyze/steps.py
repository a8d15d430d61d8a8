"""The steps of every conv, from the shapes and the plan alone: where each one starts and which slabs it makes.

A step of a conv makes up to `h_split` slabs (block rows) of its output. The last conv's steps start at slabs 0,
h_split, 2 * h_split, ...; all others follow from what reads their output. A step that starts at slab `a` of a conv's
output reads the stripe of the source that starts at slab `a * stride` (`hexconv.spec.extents`), and this stripe is made
in steps of its own: at its slabs 0, h_split, ... Slabs past the end of the tensor are left out.

How often a step is run again: with the output channels outermost (`order = "k_outer"`) the source of a conv is made
again for each of the conv's channel tiles; with the stripes outermost (`"h_outer"`), or where the conv has one row step
only, once for all of them.

Ring buffers (`halo = "roll"`). A step makes only slabs that are not there yet. When a consumer's slabs below M are
made, the slabs of its source that are there are those below

    0 if M = 0, else M * stride + halo          halo = (reach - 1 - stride) // 8 + 1

and within a stripe also the slabs that the stripe's earlier steps made. A step of the consumer that ends below slab E,
whether it is whole or the rest of a stripe, makes the source's slabs below E * stride + halo, and leaves the others to
later steps. So every slab that is needed is made once.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hexconv.analyze.slabs import halo_slabs, row_steps, stripe_slabs
from hexconv.spec import Chain, Conv2d, Plan, tensor_extents


@dataclass(frozen=True)
class Step:
    """One step of whatever makes a tensor: a conv, or the read of the input.

    Attributes:
        start: the slab at which it starts.
        end: one past its last slab; at or before `start` where the tensor has ended.
        there: slabs of the tensor that have been made before, all below this one; 0 where none are kept.
    """

    start: int
    end: int
    there: int = 0

    @property
    def slabs(self) -> range:
        """The slabs that it makes."""
        return range(max(self.start, self.there), self.end)


Steps = Counter[Step]
"""The steps that make a tensor, each with the number of times that it is run."""


def tensor_steps(chain: Chain, plan: Plan) -> tuple[Steps, ...]:
    """The steps that make the input cache and every conv's output, in order.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=32, kernel=(3, 3))
    >>> steps = tensor_steps(Chain(input=(1, 36, 36, 32), conv=(conv, conv)), Plan(h_split=2))
    >>> [(list(step.slabs), times) for step, times in steps[1].items()]
    [([0, 1], 1), ([2], 1), ([2, 3], 1), ([4], 1)]
    """
    output, h_split = tensor_extents(chain)[-1], plan.h_split
    starts = range(0, output.row_blocks, h_split)
    rolls = plan.halo == "roll"
    first = (Step(start, min(start + h_split, output.row_blocks), start if rolls else 0) for start in starts)
    steps = [Counter(dict.fromkeys(first, output.batch))]
    for index in reversed(range(len(chain.conv))):
        steps.append(_source_steps(chain, plan, index, steps[-1]))
    return tuple(reversed(steps))


def _source_steps(chain: Chain, plan: Plan, index: int, steps: Steps) -> Steps:
    """The steps that make what conv `index` reads, over all of its own steps."""
    channel_tiles = -(-tensor_extents(chain)[index + 1].channel_blocks // plan.k_split)
    again = channel_tiles if plan.order == "k_outer" and row_steps(chain, plan, index) > 1 else 1
    made: Steps = Counter()
    for step, times in steps.items():
        for inner in _stripe(chain, plan, index, step):
            made[inner] += times * again
    return made


def _stripe(chain: Chain, plan: Plan, index: int, step: Step) -> Iterator[Step]:
    """The steps that make the stripe that one step of conv `index` reads; the input is read in a single step."""
    conv = chain.conv[index]
    slabs, last = stripe_slabs(chain, plan)[index], tensor_extents(chain)[index].row_blocks
    size = plan.h_split if index else slabs
    first = step.start * conv.stride[0]
    left = made_before(conv, step.there)
    for start in range(first, first + slabs, size):
        if plan.halo == "roll":
            there = max(left, start if start > first else 0)
            yield Step(start, min(start + size, made_before(conv, step.end), last), there)
        else:
            yield Step(start, min(start + size, first + slabs, last))


def made_before(conv: Conv2d, there: int) -> int:
    """How many slabs of a conv's source have been made once its own first `there` slabs are made.

    >>> made_before(Conv2d(out_channels=1, kernel=(3, 3)), 2), made_before(Conv2d(out_channels=1), 2)
    (3, 2)
    """
    return there * conv.stride[0] + halo_slabs(conv) if there else 0
