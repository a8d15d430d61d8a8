"""How much a chain computes, from its shapes alone."""

from math import prod

from hexconv.spec import Chain


def needed_macs(chain: Chain) -> int:
    """Multiply-accumulates of the logical outputs of every conv, each once.

    >>> from hexconv.spec import Conv2d
    >>> needed_macs(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2, kernel=(3, 3)),)))
    2592
    """
    sums = zip(chain.conv, chain.shapes, chain.shapes[1:], strict=False)
    return sum(prod(output) * prod(conv.kernel) * source[3] for conv, source, output in sums)
