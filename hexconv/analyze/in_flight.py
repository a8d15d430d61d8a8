"""How many copies of each tensor are under way at once, from the shapes and the plan alone: the closed form.

A copy is what is started and waited for as one: what a step copies of a tensor, or one slab that is read into a ring.

`buffering = "single"`, and the host kernel: none, everything waits. With `"double"`, between its start
and its wait,

- a cache of two slots has the copy that a step needs and the next one, or the copies of the last two outputs;
- a cache of one slot has one;
- a ring that is read ahead is filled whole before the first step waits, and no more is under way ever after: a step
  starts no more slabs than are read ahead, and no more than those are under way then.
"""

from hexconv.analyze.footprint import ahead_slabs, doubled_caches, stripe_slabs
from hexconv.analyze.rows_footprint import rows_in_flight
from hexconv.kernel import is_in_rows
from hexconv.spec import Chain, Plan, nest_of
from hexconv.spec.names import copied_arguments


def copies_in_flight(chain: Chain, plan: Plan) -> dict[str, int]:
    """The most copies of each tensor that have started and that nothing has waited for.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128)
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> copies_in_flight(chain, Plan(filters="resident", buffering="double"))
    {'input': 2, 'filter1': 1, 'filter2': 1, 'output': 2}
    """
    tensors = copied_arguments(len(chain.conv))
    if is_in_rows(chain, plan):
        return rows_in_flight(chain, plan)
    if plan.buffering == "single" or nest_of(chain, plan) != "blocks":
        return dict.fromkeys(tensors, 0)
    doubled = doubled_caches(chain, plan)
    in_flight = {name: 2 if f"{name}_cache" in doubled else 1 for name in tensors}
    ahead = ahead_slabs(chain, plan)
    return {**in_flight, "input": stripe_slabs(chain, plan)[0] + ahead} if ahead else in_flight
