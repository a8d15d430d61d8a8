"""Which caches of a nest of rows take turns in one memory: each is read for the last time before the next is written.

A stripe runs its convs one after the other. Where it makes everything anew (`makes_anew`), a tensor is live from the
conv that makes it to the conv that reads it, and a filter during its conv:

    conv     1                    2                          3                          4
    live     input  filter1       intermediate1  filter2     intermediate2  filter3     intermediate3  filter4
             intermediate1        intermediate2              intermediate3              output

So two tensors are live at a time, one of an even number and one of an odd number, and one filter. Three memories serve,
each as large as the largest cache in it: input, intermediate2, ..; intermediate1, intermediate3, ..; all filters.

With double buffering a copy into a second slot starts a step early, and one out of it ends a step late: intermediates
alone take turns then, which nobody copies. Resident filters are all live at all times.
"""

from hexconv.kernel.bands import RowBands
from hexconv.spec import Plan
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache, intermediate, words_cache


def makes_anew(bands: RowBands, plan: Plan, keeps_columns: bool) -> bool:
    """Whether each stripe makes all rows that it reads: no ring and no kept column hands any on to the next one.

    Args:
        bands: the bands of the nest.
        plan: its plan.
        keeps_columns: whether strips keep columns.
    """
    is_whole = bands.spans[-1].rows <= bands.stripe_rows
    return (plan.halo == "recompute" or is_whole) and not keeps_columns


def turns(convs: int, plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Name the caches that take turns in each memory, in the order of their use, where stripes make everything anew.

    Only caches of one type take turns, and only those that lie in VTCM, or only those that lie outside of it.

    >>> turns(3, Plan(kernel="hvx", buffering="single"))[:2]
    (('input_cache', 'intermediate2'), ('intermediate1', 'output_cache'))
    >>> turns(4, Plan(kernel="hvx", buffering="double"))
    (('intermediate2',), ('intermediate1', 'intermediate3'))
    """
    made = [intermediate(number) for number in range(1, convs)]
    if plan.buffering == "double":
        return tuple(made[1::2]), tuple(made[::2])
    tensors = [INPUT_CACHE, *made, OUTPUT_CACHE]
    staged = [name for number in range(1, convs + 1) for name in (filter_cache(number), words_cache(number))]
    filters = [tuple(staged)] if plan.filters == "per_tile" else []
    return tuple(tensors[::2]), tuple(tensors[1::2]), *filters
