"""How large every cache of the host kernels is, from the shapes and the plan alone: the closed form.

The output's rows are dealt to `threads` bands, as evenly as they come; each has caches of its own, as large as the
widest band needs them. Rows are those of `hexconv.analyze.rolling`, of each band. Where the bands' first stripes hand
rows up, all bands' caches lie in one buffer; else each thread allocates one band's.

Seams. A band's own rows of a tensor begin where the first row of the band's output, carried back through the convs,
begins: `* stride - padding.top` per conv, 0 at least. The band above reads on for `reach - stride` rows. Handed up they
are where no first stripe but the last band's reads past its own rows, and each but the first band's makes as many as
are read from above. There is a buffer for the rows of all seams of every intermediate that has some.

Filters. All of them: an element for every tap and input channel of whole blocks of 32 output channels. Biases: whole
blocks, where there is one.

Input cache. Only where the first conv has padding: rows as wide as the padded input, pixels of the logical channels.

Intermediates. Rows as wide as the padded input of their reader, pixels of whole blocks of 32 channels.
"""

from itertools import pairwise
from math import ceil, prod

from hexconv.analyze.footprint import PredictedCache
from hexconv.analyze.rolling import rolled_rows
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK


def host_footprints(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache of a float32 chain with `kernel = "host"`, in the order in which they are allocated.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> [(cache.name, cache.bytes) for cache in host_footprints(chain, Plan(kernel="host", threads=2))]
    [('filter1_cache', 589824), ('filter2_cache', 589824), ('intermediate1', 634880), ('seam1', 63488)]
    """
    caches = []
    for index, conv in enumerate(chain.conv):
        channels = _whole_blocks(conv.out_channels)
        elements = channels * prod(conv.kernel) * chain.shapes[index][3]
        caches.append(PredictedCache(f"filter{index + 1}_cache", "filter", "float32", (elements,)))
        if conv.bias:
            caches.append(PredictedCache(f"bias{index + 1}_cache", "offset", "float32", (channels,)))
    rows, seams = _band_rows(chain, plan), _seam_rows(chain, plan)
    bands = len(_bands(chain, plan)) if seams else 1
    pad = chain.conv[0].padding
    if any((pad.top, pad.left, pad.bottom, pad.right)):
        elements = bands * rows[0] * _padded_columns(chain, 0) * chain.input[3]
        caches.append(PredictedCache("input_cache", "input", "float32", (elements,)))
    for tensor in range(1, len(chain.conv)):
        elements = bands * rows[tensor] * _line(chain, tensor)
        caches.append(PredictedCache(f"intermediate{tensor}", "intermediate", "float32", (elements,)))
    for tensor, kept in seams.items():
        elements = (bands - 1) * kept * _line(chain, tensor)
        caches.append(PredictedCache(f"seam{tensor}", "intermediate", "float32", (elements,)))
    return tuple(caches)


def _bands(chain: Chain, plan: Plan) -> list[tuple[int, int]]:
    """First row of the output and one past the last, of every band."""
    height = chain.shapes[-1][1]
    count = min(plan.threads, height)
    return list(pairwise([band * height // count for band in range(count + 1)]))


def _seam_rows(chain: Chain, plan: Plan) -> dict[int, int]:
    """Per intermediate, rows that a band hands up; nothing where none are read twice, or bands are too short."""
    kept = {tensor: chain.conv[tensor].reach[0] - chain.conv[tensor].stride[0] for tensor in range(1, len(chain.conv))}
    kept = {tensor: rows for tensor, rows in kept.items() if rows > 0}
    bands = _bands(chain, plan)
    ends = [_first_stripe(chain, min(first + plan.h_split * ROW_BLOCK, last)) for first, last in bands]
    edges = [_own_rows(chain, first) for first, _ in bands]
    for tensor in range(1, len(chain.conv)):
        height = chain.shapes[tensor][1]
        for above, below in pairwise(range(len(bands))):
            handed = min(edges[below][tensor] + kept.get(tensor, 0), height)
            if ends[above][tensor] > edges[below][tensor] or min(ends[below][tensor], height) < handed:
                return {}
    return kept if len(bands) > 1 else {}


def _own_rows(chain: Chain, first: int) -> list[int]:
    """Per tensor, the first row of its own that a band computes."""
    rows = [first]
    for conv in reversed(chain.conv):
        rows.insert(0, max(rows[0] * conv.stride[0] - conv.padding.top, 0))
    return rows


def _first_stripe(chain: Chain, end: int) -> list[int]:
    """Per tensor, one past the last row that a band's first stripe reads of it, bottom padding included."""
    ends = [end]
    for index in range(len(chain.conv) - 1, -1, -1):
        conv = chain.conv[index]
        end = max(min(ends[0], chain.shapes[index + 1][1]), 0)
        ends.insert(0, (end - 1) * conv.stride[0] + conv.reach[0] - conv.padding.top)
    return ends


def _band_rows(chain: Chain, plan: Plan) -> list[int]:
    """Per tensor, the most rows that a stripe of any band reads."""
    held = [rolled_rows(chain, plan.h_split * ROW_BLOCK, first, last)[0] for first, last in _bands(chain, plan)]
    return [max(rows) for rows in zip(*held, strict=True)]


def _line(chain: Chain, tensor: int) -> int:
    """Elements of a row of an intermediate's cache."""
    return _padded_columns(chain, tensor) * _whole_blocks(chain.shapes[tensor][3])


def _padded_columns(chain: Chain, index: int) -> int:
    pad = chain.conv[index].padding
    return pad.left + chain.shapes[index][2] + pad.right


def _whole_blocks(channels: int) -> int:
    return ceil(channels / CHANNEL_BLOCK) * CHANNEL_BLOCK
