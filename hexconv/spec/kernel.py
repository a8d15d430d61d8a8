"""Which kernel a chain gets: the one that its plan asks for, where that serves it."""

from hexconv.spec.chain import Chain
from hexconv.spec.plan import Plan


def kernel_of(chain: Chain, plan: Plan) -> str:
    """`"plain"` or `"hvx"`.

    >>> from hexconv.spec.conv import Conv2d
    >>> kernel_of(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), Plan(kernel="hvx"))
    'plain'
    """
    return "hvx" if plan.kernel == "hvx" and not hvx_refusal(chain) else "plain"


def hvx_refusal(chain: Chain) -> str:
    """Why the HVX kernels don't serve a chain; empty if they do."""
    if not chain.is_integer:
        return f"hvx serves uint8 and int8 chains, this one is {chain.dtype}"
    for index, conv in enumerate(chain.conv):
        if conv.groups != 1:
            return f"hvx serves convs of one group; chain.conv[{index}] has {conv.groups}"
        if conv.requantize and conv.requantize.shift > 0:
            # sums would have to saturate while they are shifted left, which HVX has no instruction for
            shift = conv.requantize.shift
            return f"hvx serves requantisation with a shift of 0 or less; that of chain.conv[{index}] is {shift}"
    return ""
