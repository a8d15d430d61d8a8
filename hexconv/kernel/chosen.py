"""Choose the layouts of a plan's nest: those of the kernel that the plan settles on."""

from hexconv.kernel.documented import documented_forms
from hexconv.kernel.forms import Forms
from hexconv.kernel.hvx.rows import planned_forms
from hexconv.spec import Chain, Plan, choose_kernels, nest_of
from hexconv.spec.strips import in_strips


def forms_of(chain: Chain, plan: Plan) -> Forms:
    """The layouts of all tensors of a chain in its plan's nest; of strips, where the plan makes strips."""
    if nest_of(chain, plan) != "rows":
        return documented_forms(chain)
    return planned_forms(*in_strips(chain, plan), tuple(choice.used for choice in choose_kernels(chain, plan)))
