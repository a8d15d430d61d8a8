"""Which kernel a chain gets: the one that its plan asks for, where that serves it."""

from hexconv.spec.chain import Chain
from hexconv.spec.plan import Kernel, Plan


def kernel_of(chain: Chain, plan: Plan) -> Kernel:
    """The kernel that computes a chain: what the plan asks for, or `"plain"` where that doesn't serve it.

    >>> from hexconv.spec.conv import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))
    >>> kernel_of(chain, Plan(kernel="hvx")), kernel_of(chain, Plan(kernel="host"))
    ('plain', 'host')
    """
    return "plain" if refusal(chain, plan.kernel) else plan.kernel


def refusal(chain: Chain, kernel: Kernel) -> str:
    """Why a kernel doesn't serve a chain; empty if it does. The plain kernel serves all."""
    grouped = [index for index, conv in enumerate(chain.conv) if conv.groups != 1]
    if kernel != "plain" and grouped:
        return f"{kernel} serves convs of one group; chain.conv[{grouped[0]}] has {chain.conv[grouped[0]].groups}"
    return {"plain": "", "hvx": _hvx_refusal(chain), "host": _host_refusal(chain)}[kernel]


def _hvx_refusal(chain: Chain) -> str:
    if not chain.is_integer:
        return f"hvx serves uint8 and int8 chains, this one is {chain.dtype}"
    for index, conv in enumerate(chain.conv):
        if conv.requantize and conv.requantize.shift > 0:
            # sums would have to saturate while they are shifted left, which HVX has no instruction for
            shift = conv.requantize.shift
            return f"hvx serves requantisation with a shift of 0 or less; that of chain.conv[{index}] is {shift}"
    return ""


def _host_refusal(chain: Chain) -> str:
    return "" if chain.dtype == "float32" else f"host serves float32 chains, this one is {chain.dtype}"
