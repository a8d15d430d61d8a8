"""Values of a nest of rows along each axis of the space, memoised by conv signature: all heights of stripes, all tiles.

The words of a plan and its stripes decide how often rows are made, steps run and filters staged
(`hexconv.analyze.row_stripes`). Its words and k_split decide how much one row, step or filter takes
(`hexconv.search.row_axes`). One thing depends on both: where stripes stand inside of channel tiles, the rows that the
last conv reads are made once for each of its tiles.

Convs that are alike (`hexconv.search.row_axes`) take the same, and their figures are computed once.

What a conv takes depends on the conv, on the columns of what it reads and makes, and on how both lie: on nothing else
of its chain, and not on how many rows or images there are. Convs of other cuts of a chain, in strips of other widths
and under other k_splits often agree in all of that.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count
from math import prod
from typing import Any, TypeVar

import numpy as np

from hexconv.analyze.caches import DTYPE_BYTES, PredictedCache
from hexconv.analyze.exact import Integers, integer_type
from hexconv.analyze.nest_packets import input_parts, on_conv, on_filter, on_output
from hexconv.analyze.row_footprint import footprint_of_filter, footprints_of_conv, footprints_of_input
from hexconv.analyze.row_nest import PlannedRows, planned_rows
from hexconv.analyze.row_stripes import RowsOfChain, StripeCounts, stripe_counts
from hexconv.kernel import output_layout
from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.depthwise import is_depthwise
from hexconv.layout import Layout
from hexconv.search.space import Space
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import REMEMBERED, ROW_BLOCK

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


OF_STRIPES = ("input", "intermediate", "output")
"""The roles of caches that hold the rows of a stripe."""
KEPT = "kept"
"""The role of caches that hold columns of all rows of a tensor."""
OF_FILTERS = ("filter", "words")
"""The roles of caches that hold a whole filter where filters are resident, and a tile of it where they aren't."""

Way = tuple[bool, bool]
"""A way to copy: whether filters are resident, and whether copies overlap compute."""
WAYS: tuple[Way, ...] = ((False, False), (False, True), (True, False), (True, True))

Priced = Callable[[Parts], float]


@lru_cache(REMEMBERED)
def _turned(plan: Plan, **knobs: Any) -> Plan:
    """Return a plan with other knobs; all strips of a chain ask for the same ones."""
    return replace(plan, **knobs)


@dataclass(frozen=True)
class Tiles:
    """What a nest takes under one k_split.

    Attributes:
        planned: a plan with that k_split, with single buffering, and filters that are staged tile by tile.
    """

    planned: PlannedRows

    def of_k_split(self, k_split: int) -> "Tiles":
        """Return what the nest takes under another k_split."""
        return Tiles(replace(self.planned, plan=_turned(self.planned.plan, k_split=k_split)))

    def is_depthwise(self, index: int) -> bool:
        """Whether lanes of conv `index` are its channels."""
        return is_depthwise(self.planned.chain, index)

    def channel_tiles(self, index: int) -> int:
        """Return how many channel tiles conv `index` has."""
        return self.planned.channel_tiles(index)

    def filter_bytes(self, index: int) -> int:
        """The bytes that staging the whole filter of conv `index` moves."""
        return prod(self.planned.forms.filters[index].physical_shape)

    @property
    def output_bytes(self) -> int:
        """The bytes of the output."""
        planned = self.planned
        written = output_layout(planned.chain, planned.strips.outputs if planned.strips else None)
        return prod(written.physical_shape) * DTYPE_BYTES[planned.chain.output_dtype(len(planned.chain.conv) - 1)]

    def row_macs(self, index: int) -> int:
        """The multiply-accumulates of a row of conv `index`."""
        return self._once("row macs", index, lambda: self.planned.macs_of_row(index))

    def staging_macs(self, index: int) -> int:
        """The multiply-accumulates that sum the filter of conv `index`, in all threads."""
        return self._once("staging macs", index, lambda: self.planned.staging_macs(index))

    def prices(self, index: int, priced: Priced) -> list[float]:
        """Price a row with elements of conv `index`, a row without, a step, what happens once, and rows together."""
        return self._once(priced, index, lambda: prices(on_conv(self.planned, index), priced))

    def filter_prices(self, index: int, priced: Priced) -> dict[Way, float]:
        """Price staging the whole filter of conv `index`, for each way to copy."""
        return self._once(("filter", priced), index, lambda: self._filter_prices(index, priced))

    def _filter_prices(self, index: int, priced: Priced) -> dict[Way, float]:
        return {way: priced(on_filter(self._copied(*way), index)) for way in WAYS}

    def output_prices(self, is_double: bool, priced: Priced) -> tuple[float, float]:
        """Price a step that copies some of the output, and what copies of the output take once."""
        spent = on_output(self._copied(is_double=is_double))
        return priced(spent.step), priced(spent.once)

    def input_prices(self, is_double: bool, reads_ahead: bool, priced: Priced) -> list[float]:
        """Price rows and steps of the input, as in `prices`.

        Args:
            is_double: whether copies overlap compute.
            reads_ahead: whether a ring holds rows of the input that are read ahead.
            priced: returns the packets of parts.
        """
        return prices(input_parts(self._copied(is_double=is_double), reads_ahead), priced)

    def caches_of_input(self) -> "Caches":
        """Return the caches of the input, as in `caches`."""
        return _caches(footprints_of_input(self._in_vtcm), self.planned, 0)

    def caches(self, index: int) -> "Caches":
        """Return all caches that a plan may have of the filter of conv `index`, of what it makes, and of its kernel."""
        return self._once("caches", index, lambda: self._caches(index))

    def _caches(self, index: int) -> "Caches":
        found = _caches(footprints_of_conv(self._in_vtcm, index), self.planned, index + 1)
        resident = footprint_of_filter(self._copied(is_resident=True), index)
        key = next(key for key, held in found.items() if held.cache.role in OF_FILTERS)
        return found | {key: replace(found[key], resident=(resident.bytes, resident.copies))}

    @cached_property
    def _in_vtcm(self) -> PlannedRows:
        """A plan with all caches that there may be, with one slot each: kernels copy by themselves."""
        return replace(self.planned, plan=_turned(self.planned.plan, storage="vtcm"))

    @cached_property
    def _copied_so(self) -> dict[Way, PlannedRows]:
        """What `_copied` has returned."""
        return {(False, False): self.planned}

    def _copied(self, is_resident: bool = False, is_double: bool = False) -> PlannedRows:
        """Return the same plan with resident filters, or with copies that overlap compute."""
        way = is_resident, is_double
        if way not in self._copied_so:
            filters = "resident" if is_resident else "per_tile"
            plan = _turned(self.planned.plan, filters=filters, buffering="double" if is_double else "single")
            self._copied_so[way] = replace(self.planned, plan=plan)
        return self._copied_so[way]

    def _once(self, what: Hashable, index: int, compute: Callable[[], Figure]) -> Figure:
        """Return a figure of conv `index`, which is computed once for all convs that are alike."""
        return once(what, self._alike[index], compute)

    @cached_property
    def _alike(self) -> list[int]:
        """For each conv the number that it has in common with all that are alike."""
        return [number_of(self.planned, index) for index in range(len(self.planned.chain.conv))]


@dataclass(frozen=True)
class Held:
    """A cache of a conv, or one like it of another conv, whose name and number say nothing then.

    Attributes:
        cache: the cache: its role, and the type of its elements.
        bytes: its bytes, or the bytes of one of its rows if it has rows.
        copies: how many threads have one of their own.
        resident: bytes and copies where filters are resident.
    """

    cache: PredictedCache
    bytes: int
    copies: int
    resident: tuple[int, int]


Caches = dict[tuple[str, str, int], Held]
"""Caches by role, by the type of their elements, and by their place among those that have the same."""


def _caches(caches: Iterable[PredictedCache], planned: PlannedRows, tensor: int) -> Caches:
    """Return some caches of a tensor; those that have rows as one of their rows."""
    rows = dict.fromkeys(OF_STRIPES, planned.cache_rows[tensor]) | {KEPT: planned.extents[tensor].rows}
    found: Caches = {}
    for cache in caches:
        place = sum(key[:2] == (cache.role, cache.dtype) for key in found)
        bytes = cache.bytes // rows.get(cache.role, 1)
        found[cache.role, cache.dtype, place] = Held(cache, bytes, cache.copies, (bytes, cache.copies))
    return found


def prices(cost: Cost, priced: Priced) -> list[float]:
    """Price a row with elements, a row without, a step, what happens once, and rows that are made together."""
    return [priced(parts) for parts in cost.parts]


@dataclass(frozen=True)
class NestAxes:
    """A chain over a plan space in which all plans have a nest of rows, and stripes of one kind.

    Arrays have the shape [words, H, K], or broadcast to it: H counts heights of stripes, K counts `k_splits`.
    """

    chain: Chain
    space: Space

    @cached_property
    def tiles(self) -> list[Tiles]:
        """What rows, steps and filters take, [K], with stripes of one height.

        Stripes are either rows or blocks of 8 rows: all of a space are of one kind.
        """
        stripe = {"rows": self.space.rows[0]} if self.space.rows else {"h_split": 1}
        words = replace(self.space.words[0], order="h_outer", halo="recompute", column_halo="recompute")
        if self.space.words[0].column_halo == "keep":
            words = replace(words, halo="roll", column_halo="keep")
        plan = replace(words, buffering="single", filters="per_tile", storage="global", **stripe)
        first = Tiles(planned_rows(self.chain, replace(plan, k_split=int(self.space.k_splits[0]))))
        return [first, *(first.of_k_split(int(k_split)) for k_split in self.space.k_splits[1:])]

    @property
    def one(self) -> PlannedRows:
        """One plan, for figures that are the same for all."""
        return self.tiles[0].planned

    @property
    def convs(self) -> range:
        """The convs, counted from 0."""
        return range(len(self.chain.conv))

    @property
    def threads(self) -> int:
        """The number of threads, which is the same for every plan."""
        return self.one.bands.count

    @cached_property
    def _ways(self) -> dict[tuple[bool, bool], StripeCounts]:
        """What stripes do in each way that some plan has: whether they roll, and whether copies overlap compute."""
        rows, heights = RowsOfChain.of(self.one), tuple(_stripe_rows(stripe) for stripe in self.space.stripes)
        ways = dict.fromkeys((plan.halo == "roll", plan.buffering == "double") for plan in self.space.words)
        return {way: stripe_counts(rows, heights, *way) for way in ways}

    @cached_property
    def _way_of_words(self) -> Integers:
        """The number of the way that each combination of words has: [words]."""
        numbers = {way: number for number, way in enumerate(self._ways)}
        return np.array([numbers[plan.halo == "roll", plan.buffering == "double"] for plan in self.space.words])

    def rows(self, of: Callable[[StripeCounts], Any]) -> Integers:
        """Return figures [words, H] or [words, ..., H] that depend on stripes."""
        return np.array([of(counts) for counts in self._ways.values()])[self._way_of_words]

    def times(self, of: Callable[[StripeCounts], Any]) -> Integers:
        """Return how often something happens in all images, as in `rows`."""
        return self.rows(of).astype(self.kind) * self.one.extents[-1].batch

    def of_tiles(self, of: Callable[[Tiles], Any]) -> Integers:
        """Return figures [1, 1, K] that depend on channel tiles alone."""
        return np.array([of(tiles) for tiles in self.tiles])[None, None]

    def copies(self, of: Callable[[Tiles], Mapping[Way, Any]]) -> Integers:
        """Return figures [words, 1, K] that depend on channel tiles and on the way to copy, which `of` maps to them."""
        known = [of(tiles) for tiles in self.tiles]
        of_ways = np.array([[each[way] for each in known] for way in WAYS])
        return of_ways[self._copied, None]

    @cached_property
    def _copied(self) -> Integers:
        """The number of the way to copy (`WAYS`) that each combination of words has: [words]."""
        return np.array(
            [WAYS.index((plan.filters == "resident", plan.buffering == "double")) for plan in self.space.words]
        )

    @cached_property
    def kind(self) -> type:
        """The integer type that holds the figures of a plan that repeats everything most often."""
        again, batch = self.tiles[0].channel_tiles(self.convs[-1]), self.one.extents[-1].batch
        counts = self._ways.values()
        most = again * batch
        rows = [most * int(each) for each in np.max([each.logical_rows.max(axis=-1) for each in counts], axis=0)]
        staged = [most * int(each) for each in np.max([each.stagings.max(axis=-1) for each in counts], axis=0)]
        traffic = self.one.input_bytes(rows[0]) + self.tiles[0].output_bytes
        traffic += sum(staged[index + 1] * max(each.filter_bytes(index) for each in self.tiles) for index in self.convs)
        macs = sum(rows[index + 1] * max(each.row_macs(index) for each in self.tiles) for index in self.convs)
        macs += sum(max(each.staging_macs(index) for each in self.tiles) for index in self.convs)
        return integer_type(4 * max(traffic, macs))

    @cached_property
    def again(self) -> Integers:
        """How many times each row is made that the last conv reads."""
        repeats = self.space.flags("order", "k_outer") & (self.rows(lambda counts: counts.stripes) > 1)[..., None]
        tiles = self.of_tiles(lambda tiles: tiles.channel_tiles(self.convs[-1]))
        return np.where(repeats, tiles, 1)

    def repeated(self, tensor: int, times: Integers) -> Integers:
        """Return how often something happens to a tensor [words, H], repetitions included: [words, H, K]."""
        return times[..., None] if tensor == len(self.chain.conv) else times[..., None] * self.again

    def _all_repeated(self, times: Integers) -> Integers:
        """Return how often something happens to every tensor [words, T, H], repetitions included: [T, words, H, K]."""
        every = np.moveaxis(times, 1, 0)[..., None] * self.again
        every[-1] = times[:, -1, :, None]
        return every

    @cached_property
    def cache_rows(self) -> Integers:
        """The rows that the cache of every tensor holds: [words, T, H]."""
        return self.rows(lambda counts: counts.cache_rows)

    @cached_property
    def _made(self) -> tuple[Integers, Integers, Integers]:
        """Of every tensor [T, words, H, K]: rows with elements, rows without elements, and steps."""
        rows = self.times(lambda counts: counts.logical_rows)
        blank = self.times(lambda counts: counts.stored_rows) - rows
        steps = self.times(lambda counts: counts.steps)
        return self._all_repeated(rows), self._all_repeated(blank), self._all_repeated(steps)

    def made(self, tensor: int) -> tuple[Integers, Integers, Integers]:
        """Count rows with elements, rows without elements, and steps of a tensor."""
        rows, blank, steps = self._made
        return rows[tensor], blank[tensor], steps[tensor]

    def together(self, index: int) -> list[Integers]:
        """Count how often rows of conv `index` are made in each way (`WAYS_TOGETHER`); nothing unless it is depthwise.

        Rows of other convs take nothing beside what each row takes, however they are made.
        """
        if not self.tiles[0].is_depthwise(index):
            return []
        times = self.times(lambda counts: counts.together(index))
        return [self.repeated(index + 1, times[:, way]) for way in range(times.shape[1])]

    @cached_property
    def _stagings(self) -> Integers:
        """How often the filter of the conv that makes each tensor is staged: [T, words, H, K]."""
        staged = self._all_repeated(self.times(lambda counts: counts.stagings))
        return np.where(self.space.flags("filters", "resident"), 1, staged)

    def stagings(self, index: int) -> Integers:
        """Count how often the whole filter of a conv is staged."""
        return self._stagings[index + 1]


def _stripe_rows(stripe: dict[str, int]) -> int:
    """Return the rows of a stripe from the knob that states its height."""
    return stripe.get("rows") or stripe["h_split"] * ROW_BLOCK
