"""The work of a case under its plan, recomputed work included: what its run costs on the host."""

from math import prod

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.spec import Case
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
    plan = case.settled
    planned = PlannedBlocks(case.chain, plan)  # as if no stripe rolled
    slabs = [*planned.slabs[1:-1], planned.extents[-1].row_blocks]
    total, times = 0, planned.extents[-1].batch
    for index in reversed(range(len(slabs))):
        output = planned.extents[index + 1]
        row_macs = min(output.columns, output.logical_columns) * prod(case.chain.filter_shapes[index])
        total += times * slabs[index] * ROW_BLOCK * row_macs
        times *= planned.channel_tiles[index] * planned.row_steps[index]
    return total
