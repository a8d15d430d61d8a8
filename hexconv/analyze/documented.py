"""What the source documents say: cache sizes in elements, as their TIR allocates them.

The documents write "64kb" where their TIR has 65536 elements of float32; the figures here are the elements.

Sources: seed document 003, "Cache Usage" of its three sections (two convs); its sibling on one conv
(`test_conv2d_blocked.md` of Apache TVM, in its history until 2025), the same three sections.
"""

from hexconv.spec import Chain, Conv2d, Plan

Figures = dict[str, int]
"""Elements by the role of the cache that an allocation holds first: input, filter, intermediate, output."""


def documented_elements(chain: Chain, plan: Plan) -> Figures:
    """The documents' figures for a case, empty if they don't have it."""
    return next((figures for known, split, figures in _KNOWN if known == chain and split == plan), {})


def _pair(kernel: int) -> Chain:
    """64x64x128, two convs of 128 channels."""
    conv = Conv2d(out_channels=128, kernel=(kernel, kernel))
    return Chain(input=(1, 64, 64, 128), conv=(conv, conv))


def _single(kernel: int) -> Chain:
    """64x64x64, one conv of 128 channels."""
    return Chain(input=(1, 64, 64, 64), conv=(Conv2d(out_channels=128, kernel=(kernel, kernel)),))


_ONE, _TWO = Plan(), Plan(k_split=2, h_split=2)
_KNOWN = (
    (_pair(1), _ONE, {"input": 65536, "intermediate": 65536, "filter": 4096}),
    (_pair(1), _TWO, {"input": 131072, "intermediate": 131072, "filter": 8192}),
    (_pair(3), _TWO, {"input": 196608, "intermediate": 196608, "filter": 73728}),
    (_single(1), _ONE, {"input": 32768, "filter": 2048, "output": 16384}),
    (_single(1), _TWO, {"input": 65536, "filter": 4096, "output": 65536}),
    (_single(3), _TWO, {"input": 98304, "filter": 36864, "output": 65536}),
)
