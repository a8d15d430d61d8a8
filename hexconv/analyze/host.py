"""How large every cache of the host kernels is, from the shapes and the plan alone: the closed form.

The output's rows are dealt to `threads` bands, as evenly as they come; each has caches of its own, as large as the
widest band needs them. Rows are those of `hexconv.analyze.rolling`, of each band.

Filters. All of them: an element for every tap and input channel of whole blocks of 32 output channels. Biases: whole
blocks, where there is one.

Input cache. Only where the first conv has padding: rows as wide as the padded input, pixels of the logical channels.

Intermediates. Rows as wide as the padded input of their reader, pixels of whole blocks of 32 channels.
"""

from itertools import pairwise
from math import ceil, prod

from hexconv.analyze.footprint import PredictedCache
from hexconv.analyze.rolling import StripeRows, rolled_rows, stripe_rows_of
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK


def host_footprints(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache of a float32 chain with `kernel = "host"`, in the order in which they are allocated.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> [(cache.name, cache.bytes) for cache in host_footprints(chain, Plan(kernel="host", threads=2))]
    [('filter1_cache', 589824), ('filter2_cache', 589824), ('intermediate1', 317440)]
    """
    caches = []
    for index, conv in enumerate(chain.conv):
        channels = _whole_blocks(conv.out_channels)
        elements = channels * prod(conv.kernel) * chain.shapes[index][3]
        caches.append(PredictedCache(f"filter{index + 1}_cache", "filter", "float32", (elements,)))
        if conv.bias:
            caches.append(PredictedCache(f"bias{index + 1}_cache", "offset", "float32", (channels,)))
    rows = _band_rows(chain, plan)
    if has_input_cache(chain):
        elements = rows[0] * _padded_columns(chain, 0) * chain.input[3]
        caches.append(PredictedCache("input_cache", "input", "float32", (elements,)))
    for tensor in range(1, len(chain.conv)):
        elements = rows[tensor] * _padded_columns(chain, tensor) * _whole_blocks(chain.shapes[tensor][3])
        caches.append(PredictedCache(f"intermediate{tensor}", "intermediate", "float32", (elements,)))
    return tuple(caches)


def _band_rows(chain: Chain, plan: Plan) -> list[int]:
    """Per tensor, the most rows that a stripe of any band reads."""
    held = [rolled_rows(chain, plan.h_split * ROW_BLOCK, first, last)[0] for first, last in _bands(chain, plan)]
    return [max(rows) for rows in zip(*held, strict=True)]


def band_stripes(chain: Chain, plan: Plan) -> list[StripeRows]:
    """The stripes of all bands of one image."""
    edges = _bands(chain, plan)
    return [rows for edge in edges for rows in stripe_rows_of(chain, plan.h_split * ROW_BLOCK, *edge)]


def _bands(chain: Chain, plan: Plan) -> list[tuple[int, int]]:
    """The first row of the output of every band, and one past its last."""
    height = chain.shapes[-1][1]
    bands = min(plan.threads, height)
    return list(pairwise(band * height // bands for band in range(bands + 1)))


def has_input_cache(chain: Chain) -> bool:
    """Whether the first conv reads a copy of the input with its padding, not the argument itself."""
    pad = chain.conv[0].padding
    return any((pad.top, pad.left, pad.bottom, pad.right))


def _padded_columns(chain: Chain, index: int) -> int:
    pad = chain.conv[index].padding
    return pad.left + chain.shapes[index][2] + pad.right


def _whole_blocks(channels: int) -> int:
    return ceil(channels / CHANNEL_BLOCK) * CHANNEL_BLOCK
