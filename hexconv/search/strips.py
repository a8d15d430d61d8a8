"""Which strips of columns a search looks at, and which of them a bound excludes.

Of all widths with the same number of strips the least is taken: its strips share the fewest columns, and its caches
are the smallest, unless a kernel lays a wider row out in fewer bytes. Strips cost traffic, since two neighbours both
read the columns that they share. So a search looks at them where no plan of whole rows fits, or where the best one
moves more than is needed; the widest first, since they read the least.
"""

from collections.abc import Iterator

from hexconv.analyze.needed import needed_work
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import blocks, tensor_extents
from hexconv.spec.knobs import acts
from hexconv.spec.strips import strips_of, why_no_strips


def widths(chain: Chain, plan: Plan) -> Iterator[int]:
    """Yield the widths of strips in blocks of 8 columns, the widest first; none where the chain allows no strips.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 8, 80, 8), output_layout="NHWC", dtype="uint8", conv=(Conv2d(out_channels=8),))
    >>> list(widths(chain, Plan(kernel="hvx")))
    [5, 4, 3, 2, 1]
    """
    every = tensor_extents(chain)[-1].column_blocks
    if not acts("w_split", plan.kernel or "plain") or why_no_strips(chain, 1):
        return
    for count in range(2, every + 1):
        width = blocks(every, count)
        if blocks(every, width) == count:
            yield width


def least_bytes(chain: Chain, w_split: int) -> int:
    """Return a lower bound of the bytes that strips of some blocks of columns move.

    Every strip reads its columns of each row that is needed; filters and output are as for whole rows.
    """
    needed, strips = needed_work(chain).traffic_bytes, strips_of(chain, Plan(kernel="hvx", w_split=w_split))
    assert strips
    valid = [strips.valid_columns(0, number) for number in range(strips.count)]
    all_columns, read = chain.input[2], sum(end - first for first, end in valid)
    others = sum(size for name, size in needed.items() if name != "input")
    # At most all columns are needed, so this is at most the rows that are needed, at whole width.
    rows_bytes = needed["input"] // all_columns
    return others + max(rows_bytes * read, needed["input"])
