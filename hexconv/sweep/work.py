"""The work of a case under its plan, recomputed work included: what its run costs on the host."""

from math import prod

from hexconv.analyze.slabs import stripe_slabs
from hexconv.spec import Case, tensor_extents
from hexconv.spec.extents import ROW_BLOCK


def executed_macs(case: Case) -> int:
    """Return the most multiply-adds that the fused nest executes.

    Every step of a conv runs all steps of the conv before it, so work multiplies on the way to the input. Rows count in
    whole blocks, columns and channels as far as they are logical.

    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> one_conv = 64 * 64 * 128 * 128
    >>> executed_macs(Case("baseline", chain, Plan())) / one_conv
    5.0
    >>> executed_macs(Case("split", chain, Plan(k_split=2, h_split=2))) / one_conv
    3.0
    """
    chain, plan = case.chain, case.settled
    extents, slabs = tensor_extents(chain), stripe_slabs(chain, plan)
    block_rows = [*slabs[1:-1], extents[-1].row_blocks]
    total, times = 0, extents[-1].batch
    for index in reversed(range(len(chain.conv))):
        output = extents[index + 1]
        row_macs = min(output.columns, output.logical_columns) * prod(chain.filter_shapes[index])
        total += times * block_rows[index] * ROW_BLOCK * row_macs
        times *= -(-output.channel_blocks // plan.k_split) * -(-block_rows[index] // plan.h_split)
    return total
