"""Which strips of columns a search looks at, and which of them a bound excludes.

Of all widths with the same number of strips the least is taken: its strips share the fewest columns, or make the fewest
right of the image, and its caches are the smallest, unless a kernel lays a wider row out in fewer bytes. Strips cost
traffic where two neighbours both read the columns that they share, and memory where these are kept. So a search looks
at them where no plan of whole rows fits, where the best one moves more than is needed, and where the least footprint is
asked for; the widest first, since they read the least.
"""

from collections.abc import Iterator

from hexconv.analyze.needed import needed_work
from hexconv.search.space import Strip
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import tensor_extents
from hexconv.spec.knobs import acts
from hexconv.spec.strips import strip_count, strips_as_wide, why_no_strips


def kinds_of_strips(chain: Chain, plan: Plan) -> Iterator[Strip]:
    """Yield the kinds of strips, the widest first; none where the chain allows no strips.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=8, kernel=(1, 3))
    >>> chain = Chain(input=(1, 8, 26, 8), output_layout="NHWC", dtype="uint8", conv=(conv,))
    >>> [(strip.w_split, strip.column_halo) for strip in kinds_of_strips(chain, Plan(kernel="hvx"))]
    [(2, 'recompute'), (2, 'keep'), (1, 'recompute'), (1, 'keep')]
    """
    every = tensor_extents(chain)[-1].column_blocks
    if not acts("w_split", plan.kernel or "plain") or why_no_strips(chain, 1):
        return
    for width in range(every, 0, -1):
        for halo in ("recompute", "keep"):
            strip = Strip(width, halo)
            count = strip_count(chain, width, halo)
            is_least = width == 1 or strip_count(chain, width - 1, halo) > count
            if count > 1 and is_least and not why_no_strips(chain, width, halo):
                yield strip


def least_bytes(chain: Chain, strip: Strip) -> int:
    """Return a lower bound of the bytes that strips of some kind move.

    Every strip reads its columns of each row that is needed; filters and output are as for whole rows.
    """
    needed, strips = needed_work(chain).traffic_bytes, strips_as_wide(chain, strip.w_split, strip.column_halo)
    valid = [strips.valid_columns(0, number) for number in range(strips.count)]
    all_columns, read = chain.input[2], sum(end - first for first, end in valid)
    others = sum(size for name, size in needed.items() if name != "input")
    # At most all columns are needed, so this is at most the rows that are needed, at whole width.
    rows_bytes = needed["input"] // all_columns
    return others + max(rows_bytes * read, needed["input"])
