"""One run of a module on this machine."""

import tvm

from hexconv.run.host import Host
from hexconv.run.measurement import Array
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.spec import Case


def output_of(case: Case, module: tvm.IRModule) -> Array:
    """What `module` computes for a case's random tensors: NHWC8h8w32c."""
    chain = case.chain
    wanted = [(output_shape(chain), chain.output_dtype(len(chain.conv) - 1))]
    return Host(calls=1).run(module, packed_arguments(chain, random_tensors(chain)), wanted).outputs[0]
