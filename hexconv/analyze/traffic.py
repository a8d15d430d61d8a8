"""The bytes that the plain kernel moves and its MACs, from the shapes and the plan alone: the closed form.

Everything follows from the steps of every conv (`hexconv.analyze.steps`).

Input. Each step of the input read copies the logical elements of its slabs: padding and fringe are written, not read.

Filters. Each step of a conv stages all of its packed filter, one channel tile after the other, fringe included. A step
past the end of the tensor stages it too, though it computes nothing, as in the listings of the source document.
Resident filters are staged once. With ring buffers only steps that make something stage a filter.

Output. Every element of the packed output is written once, its fringe included.

MACs. Each step computes the logical outputs of its slabs; padding that they read is multiplied like anything else.

A vector of biases goes through no cache and is left out.

Sources: the loop nests of seed document 003; it states none of these figures.
"""

from math import prod

from hexconv.analyze.cache import DTYPE_BYTES
from hexconv.analyze.footprint import packed_filter
from hexconv.analyze.needed import Work, macs_per_output
from hexconv.analyze.steps import Steps, tensor_steps
from hexconv.kernel import output_layout
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.extents import ROW_BLOCK
from hexconv.spec.names import conv_name, filter_name


def plain_work(chain: Chain, plan: Plan) -> Work:
    """The bytes that a plan moves and the MACs that it computes.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128)
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> {name: macs // (64 * 64 * 128 * 128) for name, macs in plain_work(chain, Plan()).macs.items()}
    {'conv1': 4, 'conv2': 1}
    """
    extents, steps = tensor_extents(chain), tensor_steps(chain, plan)
    filter_bytes, last = DTYPE_BYTES[chain.dtype_of_filters], len(chain.conv) - 1
    traffic = {"input": _positions(extents[0], steps[0]) * extents[0].channels * DTYPE_BYTES[chain.dtype]}
    for index in range(len(chain.conv)):
        stagings = _filter_stagings(plan, steps[index + 1])
        traffic[filter_name(index + 1)] = stagings * prod(packed_filter(chain, index)) * filter_bytes
    traffic["output"] = prod(output_layout(chain).physical_shape) * DTYPE_BYTES[chain.output_dtype(last)]
    macs = {
        conv_name(i + 1): _positions(extents[i + 1], steps[i + 1]) * extents[i + 1].channels * macs_per_output(chain, i)
        for i in range(len(chain.conv))
    }
    return Work(traffic, macs)


def _filter_stagings(plan: Plan, steps: Steps) -> int:
    """How often the steps of a conv stage all of its filter."""
    if plan.filters == "resident":
        return 1
    return sum(times for step, times in steps.items() if step.slabs or plan.halo == "recompute")


def _positions(tensor: Extents, steps: Steps) -> int:
    """How many logical pixels of a tensor the steps make, repetitions included."""
    first_row, end_row = tensor.valid_rows
    first_column, end_column = tensor.valid_columns
    rows = 0
    for step, times in steps.items():
        low, high = max(step.slabs.start * ROW_BLOCK, first_row), min(step.slabs.stop * ROW_BLOCK, end_row)
        rows += times * max(0, high - low)
    return rows * (end_column - first_column)
