"""The bytes that the plain kernel reads and writes in its caches: traffic where a cache lies outside of VTCM.

The plain kernel reads an element of the source and one of the filter for each multiply-accumulate, and writes all of
each block that it makes; where its sums are its results, it reads and writes one for each multiply-accumulate, too.
"""

from math import prod

from hexconv.analyze.cache import DTYPE_BYTES
from hexconv.analyze.footprint import BLOCK, has_accumulator
from hexconv.analyze.steps import tensor_steps
from hexconv.analyze.touched import Bytes
from hexconv.analyze.traffic import plain_work
from hexconv.spec import Chain, Plan, tensor_extents
from hexconv.spec.names import conv_name, filter_cache, source_cache, target_cache


def plain_touched(chain: Chain, plan: Plan) -> Bytes:
    """The bytes that the plain kernel reads and writes in each cache in a run."""
    macs, total, steps = plain_work(chain, plan).macs, Bytes(), tensor_steps(chain, plan)
    for index, tensor in enumerate(tensor_extents(chain)[1:]):
        products = macs[conv_name(index + 1)]
        target = target_cache(index + 1, len(chain.conv))
        slabs = sum(times * len(step.slabs) for step, times in steps[index + 1].items())
        elements = slabs * tensor.column_blocks * tensor.channel_blocks * prod(BLOCK)
        sum_bytes = DTYPE_BYTES[chain.accumulator_dtype]
        total[source_cache(index + 1)] += products * DTYPE_BYTES[chain.dtype]
        total[filter_cache(index + 1)] += products * DTYPE_BYTES[chain.dtype_of_filters]
        if has_accumulator(chain, index):
            total[target] += elements * DTYPE_BYTES[chain.output_dtype(index)]
        else:
            total[target] += (2 * products + elements) * sum_bytes
    return total
