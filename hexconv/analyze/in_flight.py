"""How many copies of each tensor are under way at once, from the shapes and the plan alone: the closed form.

A copy is what is started and waited for as one: the part of a tensor that a step copies, or one slab that is read into
a ring buffer.

With `buffering = "single"` no copy is under way: each is waited for at once. With `"double"`,
these are under way between their start and their wait:

- for a cache of two slots, the copy that a step needs and the next one, or the copies of the last two outputs;
- for a cache of one slot, one copy;
- for a ring buffer that is read ahead, the slabs that are read before the first step waits, or those that a step reads
  beside the ones read ahead of it;
- for any other ring buffer, one copy for each step that only reads, and the one after these.
"""

from hexconv.analyze.planned import Planned
from hexconv.spec.names import copied_arguments, copied_caches


def copies_in_flight(planned: Planned) -> dict[str, int]:
    """The largest number of copies of each tensor that have started and that nothing has waited for yet.

    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> copies_in_flight(Planned(chain, Plan(filters="resident", buffering="double")))
    {'input': 2, 'filter1': 1, 'filter2': 1, 'output': 2}
    """
    convs = len(planned.chain.conv)
    tensors, caches = copied_arguments(convs), copied_caches(convs)
    if planned.plan.buffering == "single" or planned.nest == "bands":
        return dict.fromkeys(tensors, 0)
    nest = planned.rows if planned.nest == "rows" else planned.blocks
    in_flight = {name: 2 if cache in nest.doubled else 1 for name, cache in zip(tensors, caches, strict=True)}
    return {**in_flight, "input": nest.reads_in_flight}
