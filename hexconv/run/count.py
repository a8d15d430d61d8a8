"""Count the bytes moved and the MACs done: run the loops and guards of a lowered module on this machine."""

import numpy as np
import tvm

from hexconv.lower import Lowered
from hexconv.lower.counting import Counts, counting_module, counts_of
from hexconv.lower.host_code import compile_for_host
from hexconv.run.host import TARGET

QUICKLY_BUILT = tvm.target.Target({**TARGET.export(), "opt-level": 1})
"""This machine, with code of optimisation level 1, which turns loops that only count into products. A higher level
takes twice the time to compile and gains nothing in a run."""


def count(lowered: Lowered) -> Counts:
    """Run every loop of a lowered module, each statement replaced by a counter.

    The figures depend on shapes alone, so one run without data is exact for all.
    """
    module = counting_module(lowered)
    counters = tvm.runtime.tensor(np.zeros(module["main"].params[0].shape[0].value, np.int64))
    compile_for_host(module, QUICKLY_BUILT)["main"](counters)
    return counts_of(lowered, [int(runs) for runs in counters.numpy()])
