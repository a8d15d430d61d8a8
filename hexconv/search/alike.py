"""Find convs that are alike, in all chains that are searched, so that their figures are computed once.

What a conv takes depends on the conv, on the columns of what it reads and makes, and on how both lie: on nothing else
of its chain, and not on how many rows or images there are. Convs of other cuts of a chain, in strips of other widths
and under other k_splits often agree in all of that.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from itertools import count
from typing import TypeVar

from hexconv.analyze.rows import PlannedRows
from hexconv.layout import Layout

MOST_REMEMBERED = 1 << 15
"""The number of figures, and of convs that are not alike, that are kept."""

Figure = TypeVar("Figure")
_FIGURES: dict[Hashable, object] = {}
_UNUSED = count()
"""Numbers that no conv has had: a number that was forgotten is not given again, since figures may be kept under it."""


def once(what: Hashable, number: int, compute: Callable[[], Figure]) -> Figure:
    """Return a figure of a conv, which is computed for the first of all convs that are alike.

    Args:
        what: says which figure it is.
        number: the number of the conv (`number_of`).
        compute: computes the figure.
    """
    key = what, number
    if key not in _FIGURES:
        if len(_FIGURES) >= MOST_REMEMBERED:
            _FIGURES.clear()
        _FIGURES[key] = compute()
    return _FIGURES[key]  # pyright: ignore[reportReturnType]  # `what` says of which type it is


def number_of(planned: PlannedRows, index: int) -> int:
    """Return the number that conv `index` has in common with all convs that are alike."""
    return _number(_what_decides(planned, index))


@lru_cache(MOST_REMEMBERED)
def _number(_decides: Hashable) -> int:
    """Number what decides: the same number for the same, while it is remembered."""
    return next(_UNUSED)


def forget() -> None:
    """Forget all figures: whoever asks again has them computed anew."""
    _FIGURES.clear()
    _number.cache_clear()


def _what_decides(planned: PlannedRows, index: int) -> Hashable:
    """Return all on which it depends what conv `index` takes: convs of any chains that agree in it take the same."""
    chain, forms, conv = planned.chain, planned.forms, planned.chain.conv[index]
    source, target, strips = planned.extents[index], planned.extents[index + 1], planned.strips
    # A step has no more tiles than the conv has blocks of channels. Tiles of groups are cut in a way of their own.
    k_split = planned.plan.k_split if conv.groups > 1 else min(planned.plan.k_split, target.channel_blocks)
    return (
        (conv, planned.kernels[index], k_split, planned.plan.activations, planned.bands.count),
        (index == 0, index == len(chain.conv) - 1, chain.dtype, chain.dtype_of_filters, chain.output_zero_point(index)),
        (source.columns, source.valid_columns, source.channels, target.columns, target.valid_columns),
        tuple((*_row_of(forms.activations[at]), forms.channel_units[at]) for at in (index, index + 1)),
        (forms.row_units[index + 1], forms.filters[index], forms.packings[index]),
        (strips.count, strips.tensors[index + 1]) if strips and strips.keeps else None,
    )


def _row_of(layout: Layout) -> tuple[str, tuple[int, ...]]:
    """Return how a row of a tensor lies; how many rows and images there are does not matter."""
    return layout.name, layout.physical_shape[2:]
