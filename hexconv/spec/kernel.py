"""Which kernel a chain gets: the one that its plan asks for, where that serves it.

A case file that states no plan at all leaves the choice to us. It then gets the fastest kernel that is legal where it
runs:

    uint8, int8, int16    on Hexagon hvx where that serves the chain, else plain; elsewhere plain
    float32          on this machine (llvm) host, with all of its processors; elsewhere plain
    float16          plain

A file that states a plan, be it one knob, or none under the heading, means the documented strategy unless it names
another kernel: its knobs are that strategy's.
"""

import os
from typing import Literal

from hexconv.spec.chain import Chain
from hexconv.spec.plan import MOST_THREADS, Kernel, Plan
from hexconv.spec.room import sums_refusal

Target = Literal["llvm", "hexagon"]


def kernel_of(chain: Chain, plan: Plan) -> Kernel:
    """The kernel that computes a chain: what the plan asks for, or `"plain"` where that doesn't serve it.

    >>> from hexconv.spec.conv import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))
    >>> kernel_of(chain, Plan(kernel="hvx")), kernel_of(chain, Plan(kernel="host"))
    ('plain', 'host')
    """
    return "plain" if refusal(chain, plan.kernel) else plan.kernel


def fastest_plan(chain: Chain, target: Target | None) -> Plan:
    """The plan of a chain for which none was stated; without a target, all defaults.

    >>> from hexconv.spec.conv import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))
    >>> [fastest_plan(chain, target).kernel for target in ("llvm", "hexagon", None)]
    ['host', 'plain', 'plain']
    """
    if target == "llvm" and not refusal(chain, "host"):
        return Plan(kernel="host", threads=min(os.cpu_count() or 1, MOST_THREADS))
    if target == "hexagon" and not refusal(chain, "hvx"):
        return Plan(kernel="hvx")
    return Plan()


def refusal(chain: Chain, kernel: Kernel) -> str:
    """Why a kernel doesn't serve a chain; empty if it does. The plain kernel serves all."""
    grouped = [index for index, conv in enumerate(chain.conv) if conv.groups != 1]
    if kernel != "plain" and grouped:
        return f"{kernel} serves convs of one group; chain.conv[{grouped[0]}] has {chain.conv[grouped[0]].groups}"
    return {"plain": "", "hvx": _hvx_refusal(chain), "host": _host_refusal(chain)}[kernel]


def _hvx_refusal(chain: Chain) -> str:
    if not chain.is_integer:
        return f"hvx serves uint8, int8 and int16 chains, this one is {chain.dtype}"
    for index, conv in enumerate(chain.conv):
        if conv.requantize and conv.requantize.shift > 0:
            # sums would have to saturate while they are shifted left, which HVX has no instruction for
            shift = conv.requantize.shift
            return f"hvx serves requantisation with a shift of 0 or less; that of chain.conv[{index}] is {shift}"
    return sums_refusal(chain, "hvx")


def _host_refusal(chain: Chain) -> str:
    return "" if chain.dtype == "float32" else f"host serves float32 chains, this one is {chain.dtype}"
