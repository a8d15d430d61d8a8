"""Replace what each channel of a chain is given by the constants that the kernels of its convs load instead.

With the packing of filters (`hexconv.run.tensors`) this is all that lays weights out. It is done in numpy, before a
run, and by `build` for the file of weights: no code of a kernel does it.
"""

from collections.abc import Mapping

from hexconv.kernel import forms_of
from hexconv.lower.kernels import LAID_OUT_BY
from hexconv.spec import Chain, Plan, choose_kernels, nest_of
from hexconv.spec.names import numbered
from hexconv.spec.strips import in_strips
from hexconv.spec.vectors import OF_CHANNELS, Array


def laid_out(chain: Chain, plan: Plan, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arguments of a lowered chain by name, in the order of its parameters.

    Args:
        chain: the chain.
        plan: its plan, settled.
        given: the packed input and filters, then biases and vectors, by name and in the order of `chain_module`.
    """
    if nest_of(chain, plan) != "rows":
        return dict(given)
    forms, (nest, of_nest) = forms_of(chain, plan), in_strips(chain, plan)
    constants, replaced = dict[str, Array](), set[str]()
    for index, choice in enumerate(choose_kernels(chain, plan)):
        if lay_out := LAID_OUT_BY.get(choice.used):
            constants |= lay_out(nest, index, forms, of_nest, given)
            replaced |= {numbered(what, index + 1) for what in OF_CHANNELS}
    return {name: array for name, array in given.items() if name not in replaced} | constants
