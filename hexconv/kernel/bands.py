"""Bands of rows, one per thread, and which caches of a nest of rows may share memory: lifetimes that don't overlap.

The rows of the output are shared out as evenly as whole rows allow: each band has `rows` of them, and the last band has
the rest and the fringe of its last block. A band runs every stripe of the output that overlaps it, and computes only
its own rows of each. Of every earlier tensor it computes the rows that its rows of the output need. In rows of the
stored tensor these are

    first = band * rows * S         end = (band + 1) * rows * S + M

where `end` is at most the number of rows that there are, and all of them in the last band. S is the product of the
strides of all convs behind the tensor. M is 0 at the output; each conv gives M' = (M - 1) * stride + reach for the
tensor that it reads. Rows at a seam are recomputed: both bands compute them, so no band waits for another one.

A stripe has the same place in every band, and so has every row in its cache: a band needs caches as large as those of
the whole chain.

A stripe runs its convs one after the other. Where it makes everything anew (`makes_anew`), a tensor is live from the
conv that makes it to the conv that reads it, and a filter during its conv:

    conv     1                    2                          3                          4
    live     input  filter1       intermediate1  filter2     intermediate2  filter3     intermediate3  filter4
             intermediate1        intermediate2              intermediate3              output

So two tensors are live at a time, one of an even number and one of an odd number, and one filter. Three memories serve,
each as large as the largest cache in it: input, intermediate2, ..; intermediate1, intermediate3, ..; all filters. A
tensor that a later conv adds is live up to that conv: each tensor takes the first memory whose last tensor was read
before.

With double buffering a copy into a second slot starts a step early, and one out of it ends a step late: intermediates
alone share memory then, which nobody copies. Resident filters are all live at all times.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

from hexconv.kernel.layouts import ACTIVATION_TAG
from hexconv.spec import Chain, Plan, tensor_extents
from hexconv.spec.extents import REMEMBERED, ROW_BLOCK
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache, intermediate, words_cache


@dataclass(frozen=True)
class Span:
    """How the rows of one tensor that a band computes follow from its rows of the output.

    Attributes:
        scale: rows of the tensor from one row of the output to the next.
        more: rows of the tensor that a band computes beyond `scale` for each of its rows of the output.
        rows: the rows of the whole stored tensor.
    """

    scale: int
    more: int
    rows: int


@dataclass(frozen=True)
class RowBands:
    """The bands of a chain.

    Attributes:
        count: the number of bands.
        rows: rows of the output in each band but the last.
        stripe_rows: rows of the output in a stripe.
        spans: the span of every tensor, the input first.
        tops: the stored row of every tensor at which its logical row 0 stands.
    """

    count: int
    rows: int
    stripe_rows: int
    spans: tuple[Span, ...]
    tops: tuple[int, ...]

    def first(self, tensor: int, band: Any) -> Any:
        """The first stored row of a tensor that a band computes; `band` is a number or an expression."""
        return band * (self.rows * self.spans[tensor].scale)

    def end(self, tensor: int, band: int) -> int:
        """One past the last stored row of a tensor that a band computes."""
        span = self.spans[tensor]
        most = (band + 1) * self.rows * span.scale + span.more
        return span.rows if band == self.count - 1 else min(most, span.rows)

    def stripes(self, band: int) -> range:
        """The stripes of the output that overlap a band.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
        >>> bands = row_bands(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan(kernel="hvx", threads=4))
        >>> [(bands.first(1, band), bands.end(1, band), bands.stripes(band)) for band in range(2)]
        [(0, 17, range(0, 2)), (15, 32, range(1, 4))]
        """
        return range(self.first(-1, band) // self.stripe_rows, ceil(self.end(-1, band) / self.stripe_rows))

    def makes_any(self, tensor: int, rows: range) -> bool:
        """Whether any stripe of any band makes one of these stored rows of a tensor.

        >>> from hexconv.spec import Conv2d, Padding
        >>> sparse = Conv2d(out_channels=1, stride=(4, 1), padding=Padding(top=1, bottom=2))
        >>> bands = row_bands(Chain(input=(1, 6, 6, 1), conv=(sparse,)), Plan(kernel="hvx", rows=1))
        >>> [row for row in range(9) if bands.makes_any(0, range(row, row + 1))]
        [0, 4, 8]
        """
        return any(self._makes_any(tensor, rows, band) for band in range(self.count))

    def _makes_any(self, tensor: int, rows: range, band: int) -> bool:
        span, stripes = self.spans[tensor], self.stripes(band)
        first, end = max(rows.start, self.first(tensor, band)), min(rows.stop, self.end(tensor, band))
        starts = (stripe * self.stripe_rows * span.scale for stripe in stripes)
        height = self.stripe_rows * span.scale + span.more
        return any(max(first, start) < min(end, start + height) for start in starts)

    @property
    def most_stripes(self) -> int:
        """The most stripes that a band has."""
        return max(len(self.stripes(band)) for band in range(self.count))


def row_bands(chain: Chain, plan: Plan) -> RowBands:
    """Split a chain into one band per thread of its plan, but no more bands than the output has rows."""
    extents = tensor_extents(chain)
    output = extents[-1]
    rows = ceil(output.rows / plan.threads)
    written = output.rows if chain.output_layout != ACTIVATION_TAG else output.row_blocks * ROW_BLOCK

    def read(index: int, reader: Span) -> Span:
        conv = chain.conv[index]
        return Span(reader.scale * conv.stride[0], conv.rows_read(reader.more), extents[index].rows)

    spans = chain.backwards(Span(1, 0, written), read)
    stripe_rows = min(plan.stripe_rows, written)
    tops = tuple(tensor.top for tensor in extents)
    return RowBands(ceil(output.rows / rows), rows, stripe_rows, spans, tops)


def makes_anew(bands: RowBands, plan: Plan, keeps_columns: bool) -> bool:
    """Whether each stripe makes all rows that it reads: no ring and no kept column hands any on to the next one.

    Args:
        bands: the bands of the nest.
        plan: its plan.
        keeps_columns: whether strips keep columns.
    """
    is_whole = bands.spans[-1].rows <= bands.stripe_rows
    return (plan.halo == "recompute" or is_whole) and not keeps_columns


def turns(chain: Chain, plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Name the caches that share each memory, in the order of their use, where stripes make everything anew.

    Only caches of one type share memory, and only those that lie in VTCM, or only those that lie outside of it.

    >>> from hexconv.spec import Conv2d
    >>> chains = [Chain(input=(1, 8, 8, 8), conv=(Conv2d(out_channels=8),) * convs) for convs in (3, 4)]
    >>> turns(chains[0], Plan(kernel="hvx", buffering="single"))[:2]
    (('input_cache', 'intermediate2'), ('intermediate1', 'output_cache'))
    >>> turns(chains[1], Plan(kernel="hvx", buffering="double"))
    (('intermediate2',), ('intermediate1', 'intermediate3'))
    """
    return _turns(chain, plan.buffering == "double", plan.filters == "per_tile")


@lru_cache(REMEMBERED)
def _turns(chain: Chain, is_double: bool, stages_tiles: bool) -> tuple[tuple[str, ...], ...]:
    """Return `turns` for the two knobs that decide them, so that plans which differ in others share one answer."""
    convs, memories = len(chain.conv), list[list[int]]()
    for tensor in range(convs + 1):
        free = (held for held in memories if max(chain.readers[held[-1]]) < tensor - 1)
        held = next(free, None)
        if held is None:
            memories.append([tensor])
        else:
            held.append(tensor)
    names = [INPUT_CACHE, *(intermediate(number) for number in range(1, convs)), OUTPUT_CACHE]
    if is_double:
        return tuple(tuple(names[tensor] for tensor in held if 0 < tensor < convs) for held in memories)
    tensors = [tuple(names[tensor] for tensor in held) for held in memories]
    staged = [name for number in range(1, convs + 1) for name in (filter_cache(number), words_cache(number))]
    filters = [tuple(staged)] if stages_tiles else []
    return *tensors, *filters
