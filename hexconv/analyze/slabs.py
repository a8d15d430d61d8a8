"""Count the slabs of 8 rows that a nest of blocks holds of every tensor, and the steps in which it makes them.

Stripes. A conv that computes `step` block rows writes 8 * step rows, 0 .. 8 * step - 1 of its step, and reads

    rows 0 .. (8 * step - 1) * stride + (kernel - 1) * dilation         relative to where the step starts

and a step that starts at a block row of the output starts at a block row of the input (`hexconv.spec.extents`), so the
stripe that it reads holds

    slabs = ((8 * step - 1) * stride + (kernel - 1) * dilation) // 8 + 1

slabs of 8 rows, or the whole tensor if that is less. For 1x1 with stride 1 that is `step`. A 3x3 kernel reads 2 rows
more than it writes, its halo, and these open one more slab: step 2 reads rows 0 .. 17, slabs 0, 1 and 2. This is why
the document's 3x3 caches have h_split + 1 = 3 slabs. Stride 2 reads twice the rows: 31 + 2 rows, 5 slabs.

Steps of earlier convs. The slabs of an intermediate are again computed h_split at a time (fewer if it has fewer), and
the stripe behind them follows by the same formula with step = min(h_split, slabs).
"""

from functools import lru_cache

from hexconv.spec import Chain, Conv2d, Plan, tensor_extents
from hexconv.spec.extents import REMEMBERED, ROW_BLOCK


def ahead_slabs(chain: Chain, plan: Plan) -> int:
    """How many slabs of the input a ring buffer holds besides its stripe: those that are read ahead.

    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> ahead_slabs(chain, Plan(h_split=2, order="h_outer", halo="roll", buffering="double"))
    2
    """
    steps_over = any(halo_slabs(conv) < 0 for conv in chain.conv)
    if plan.buffering == "single" or plan.halo != "roll" or steps_over:
        return 0
    slabs = stripe_slabs(chain, plan)
    step = min(plan.h_split, slabs[1])
    return min(step * chain.conv[0].stride[0], tensor_extents(chain)[0].row_blocks - slabs[0])


@lru_cache(REMEMBERED)
def stripe_slabs(chain: Chain, plan: Plan) -> tuple[int, ...]:
    """How many slabs of 8 rows are held of each tensor: of the input, every intermediate, and the output."""
    extents = tensor_extents(chain)
    slabs = [min(plan.h_split, extents[-1].row_blocks)]
    for conv, source in zip(reversed(chain.conv), reversed(extents[:-1]), strict=True):
        step = min(plan.h_split, slabs[-1])
        slabs.append(min(slabs_read(conv, step), source.row_blocks))
    return tuple(reversed(slabs))


def row_steps(chain: Chain, plan: Plan, index: int) -> int:
    """How many steps of `h_split` slabs conv `index` takes: over the output, or over the stripe that is read next.

    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> row_steps(chain, Plan(h_split=2), 0), row_steps(chain, Plan(h_split=2), 1)
    (2, 4)
    """
    last = index == len(chain.conv) - 1
    slabs = tensor_extents(chain)[-1].row_blocks if last else stripe_slabs(chain, plan)[index + 1]
    return -(-slabs // plan.h_split)


def halo_slabs(conv: Conv2d) -> int:
    """How many slabs of the source two successive steps of a conv both read: its halo.

    A negative number counts the slabs between the two steps that neither reads.

    >>> halo_slabs(Conv2d(out_channels=1, kernel=(3, 3))), halo_slabs(Conv2d(out_channels=1))
    (1, 0)
    """
    return (conv.reach[0] - 1 - conv.stride[0]) // ROW_BLOCK + 1


def slabs_read(conv: Conv2d, step: int) -> int:
    """How many slabs of 8 rows a conv reads to write `step` slabs.

    >>> slabs_read(Conv2d(out_channels=1, kernel=(3, 3)), 2), slabs_read(Conv2d(out_channels=1, stride=(2, 2)), 2)
    (3, 4)
    """
    return (conv.rows_read(ROW_BLOCK * step) - 1) // ROW_BLOCK + 1
