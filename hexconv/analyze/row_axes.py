"""Values of a nest of rows along each axis of a grid of plans, memoised by conv signature; one plan is a grid of one.

The words of a plan and its stripes decide how often rows are made, steps run and filters staged
(`hexconv.analyze.row_stripes`). Its k_split decides how much one row, step or filter takes. One thing depends on both:
where stripes stand inside of channel tiles, the rows that the last conv reads are made once for each of its tiles.

Convs that are alike take the same, and their figures are computed once. What a conv takes depends on the conv, on the
columns of what it reads and makes, and on how both lie: on nothing else of its chain, and not on how many rows or
images there are. Convs of other cuts of a chain, in strips of other widths and under other k_splits often agree in all
of that.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count
from math import prod
from operator import add
from typing import Any, TypeVar

import numpy as np

from hexconv.analyze.caches import DTYPE_BYTES, PredictedCache
from hexconv.analyze.exact import Integers, integer_type
from hexconv.analyze.nest_packets import on_conv, on_filter, on_input, on_output
from hexconv.analyze.plan_axes import Plans, Way
from hexconv.analyze.row_footprint import caches_of, scratch_of
from hexconv.analyze.row_nest import PlannedRows, planned_rows
from hexconv.analyze.row_stripes import RowsOfChain, StripeCounts, stripe_counts
from hexconv.kernel import output_layout
from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.form import rows_together
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import REMEMBERED

ONCE = 3
"""The place of what happens once, among the prices of a conv (`Tiles.prices`)."""

MOST_REMEMBERED = 1 << 15
"""The number of figures, and of convs that are not alike, that are kept."""

Figure = TypeVar("Figure")
_FIGURES: dict[Hashable, object] = {}
_UNUSED = count()
"""Numbers that no conv has had: a number that was forgotten is not given again, since figures may be kept under it."""


def once(what: Hashable, number: int, compute: Callable[[], Figure]) -> Figure:
    """Memoise a figure by conv signature.

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
    """Return the number of the signature of conv `index`: all on which its figures depend."""
    return _number(_signature(planned, index))


@lru_cache(MOST_REMEMBERED)
def _number(_signature: Hashable) -> int:
    """Number a key: the same number for the same key, while it is remembered."""
    return next(_UNUSED)


def forget() -> None:
    """Forget all memoised figures."""
    _FIGURES.clear()
    _number.cache_clear()


def _signature(planned: PlannedRows, index: int) -> Hashable:
    """Return all on which it depends what conv `index` takes: convs of any chains that agree in it take the same."""
    strips = planned.strips
    return (
        (planned.convs[index].decides, planned.plan.activations, planned.bands.count),
        (strips.count, strips.tensors[index + 1]) if strips and strips.keeps else None,
        planned.filled_share(index + 1),
    )


Priced = Callable[[Parts], Any]
"""Takes the parts of a row, a step or the like to their packets, or to whatever adds up and can be multiplied."""


def as_parts(parts: Parts) -> Parts:
    """Take parts as they are."""
    return parts


CacheSizes = dict[tuple[str, str, int], tuple[PredictedCache, PredictedCache]]
"""Caches by role, by the type of their elements, and by their place among those that have the same: as they are where
filters are staged tile by tile, and where they are resident. Their names and numbers may be those of a conv alike."""


@lru_cache(REMEMBERED)
def _tiled(plan: Plan, k_split: int) -> Plan:
    """Return a plan with other tiles of channels; all pieces and strips of a chain ask for the same ones."""
    return replace(plan, k_split=k_split)


@dataclass(frozen=True)
class Tiles:
    """What a nest takes under one k_split.

    Attributes:
        planned: a plan with that k_split.
    """

    planned: PlannedRows

    def of_k_split(self, k_split: int) -> "Tiles":
        """Return what the nest takes under another k_split."""
        if k_split == self.planned.plan.k_split:
            return self
        return Tiles(replace(self.planned, plan=_tiled(self.planned.plan, k_split)))

    def channel_tiles(self, index: int) -> int:
        """Return how many channel tiles conv `index` has."""
        return self.planned.channel_tiles(index)

    def tiles_of_lanes(self, index: int) -> int:
        """Return how many channel tiles conv `index` has where its lanes are pixels; else none."""
        return self.channel_tiles(index) if self.planned.convs[index].form.has_pixels else 0

    def filter_bytes(self, index: int) -> int:
        """The bytes that staging the whole filter of conv `index` moves."""
        return prod(self.planned.layouts.filters[index].physical_shape)

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

    def touched(self, index: int) -> Cost:
        """The bytes that the kernel of conv `index` reads and writes in each cache."""
        return self.planned.convs[index].form.traffic()

    def prices(self, index: int, priced: Priced) -> list[Any]:
        """Price a row with elements of conv `index`, a row without, a step, what happens once, and rows together."""
        return self._once(priced, index, lambda: [priced(parts) for parts in on_conv(self.planned, index).parts])

    def filter_prices(self, index: int, priced: Priced) -> list[Any]:
        """Price staging the whole filter of conv `index`, for each way to copy (`WAYS`)."""
        return self._once(
            ("filter", priced), index, lambda: [priced(on_filter(self.planned, index, *way)) for way in WAYS]
        )

    def output_prices(self, priced: Priced) -> list[list[Any]]:
        """Price a step that copies some of the output, and what copies take once: without and with overlap."""
        if ("output", priced) not in self._known:
            both = (on_output(self.planned, is_double) for is_double in (False, True))
            self._known["output", priced] = [[priced(spent.step), priced(spent.once)] for spent in both]
        return self._known["output", priced]

    def input_prices(self, priced: Priced) -> list[list[Any]]:
        """Price rows and steps of the input, as in `prices`: without overlap and with it, in rings too; read ahead."""
        if ("input", priced) not in self._known:
            ways = [(is_double, in_ring, False) for is_double in (False, True) for in_ring in (False, True)]
            ways.append((True, True, True))
            costs = (on_input(self.planned, *way) for way in ways)
            self._known["input", priced] = [[priced(parts) for parts in cost.parts] for cost in costs]
        return self._known["input", priced]

    @cached_property
    def _known(self) -> dict[Hashable, Any]:
        """The prices of input and output that were asked for."""
        return {}

    def caches(self, tensor: int) -> CacheSizes:
        """Return all caches that a plan may have of a tensor, of the filter of the conv that makes it, and its scratch.

        Each is that of one thread, with one slot, and with one row where it has rows (`hexconv.analyze.row_footprint`).
        """
        if not tensor:
            return _by_role(self.planned, tensor)
        return self._once("caches", tensor - 1, lambda: _by_role(self.planned, tensor))

    def _once(self, what: Hashable, index: int, compute: Callable[[], Figure]) -> Figure:
        """Return a figure of conv `index`, memoised by the conv's signature."""
        return once(what, self.signatures[index], compute)

    @cached_property
    def signatures(self) -> list[int]:
        """For each conv the number of its signature."""
        return [number_of(self.planned, index) for index in range(len(self.planned.chain.conv))]


def _by_role(planned: PlannedRows, tensor: int) -> CacheSizes:
    """Return the caches of a tensor and the scratch of the conv that makes it."""
    staged, resident = (
        (*caches_of(planned, tensor, is_resident), *(scratch_of(planned, tensor - 1) if tensor else ()))
        for is_resident in (False, True)
    )
    found: CacheSizes = {}
    for of_tile, of_all in zip(staged, resident, strict=True):
        place = sum(key[:2] == (of_tile.role, of_tile.dtype) for key in found)
        found[of_tile.role, of_tile.dtype, place] = of_tile, of_all
    return found


@dataclass(frozen=True)
class CacheColumn:
    """A cache under every k_split: as one thread has it, with one slot, and with one row where it has rows.

    Attributes:
        cache: the cache under the first of them that has it, whose name may be that of a conv alike.
        staged: its bytes where filters are staged tile by tile, [K]; 0 where there is no such cache.
        resident: the same where filters are resident.
        most_bytes: the most of both together, under any of them.
    """

    cache: PredictedCache
    staged: Integers
    resident: Integers
    most_bytes: int


def _columns(every: Sequence[CacheSizes]) -> list[CacheColumn]:
    """Return each cache that is among the caches of some k_split."""
    found: list[CacheColumn] = []
    for key in dict.fromkeys(key for each in every for key in each):
        pairs = [each.get(key) for each in every]
        staged, resident = ([pair[way].bytes if pair else 0 for pair in pairs] for way in (False, True))
        most = max(map(add, staged, resident))
        kind, cache = integer_type(most), next(pair[0] for pair in pairs if pair)
        found.append(CacheColumn(cache, np.array(staged, kind), np.array(resident, kind), most))
    return found


WAYS = ((False, False), (False, True), (True, False), (True, True))
"""The ways to copy: whether filters are resident, and whether copies overlap compute, as the digits of a number."""


@dataclass(frozen=True)
class KSplits:
    """What a nest takes under each k_split, [K]; convs that are alike under all of them share their arrays.

    Attributes:
        tiles: what it takes under one of them.
    """

    tiles: tuple[Tiles, ...]

    @cached_property
    def _alike(self) -> list[int]:
        """For each conv the number of its signatures under all of them."""
        return [_number(numbers) for numbers in zip(*(each.signatures for each in self.tiles), strict=True)]

    def of_conv(self, figure: Callable[..., Any], index: int, *how: Hashable) -> Integers:
        """Return a figure of conv `index`, a method of `Tiles` that its signature decides: [K, ...]."""
        compute = lambda: np.array([figure(each, index, *how) for each in self.tiles])  # noqa: E731
        return once(("k_splits", figure, *how), self._alike[index], compute)

    def caches(self, tensor: int) -> list[CacheColumn]:
        """Return all caches that some of them may have of a tensor, as `Tiles.caches`."""
        if tensor:
            return once(
                "columns", self._alike[tensor - 1], lambda: _columns([each.caches(tensor) for each in self.tiles])
            )
        known = {each.planned.layouts.activations[0]: each for each in self.tiles}
        sizes = {layout: each.caches(0) for layout, each in known.items()}
        return _columns([sizes[each.planned.layouts.activations[0]] for each in self.tiles])


@lru_cache(64)
def _tiles(chain: Chain, plan: Plan, k_splits: tuple[int, ...]) -> KSplits:
    """Return the tiles of a chain, which stripes of all heights share, and runs of steps."""
    first = Tiles(planned_rows(chain, _tiled(plan, k_splits[0])))
    return KSplits(tuple(first.of_k_split(k_split) for k_split in k_splits))


@dataclass(frozen=True)
class NestAxes:
    """A chain over a grid of plans whose nest is kept in rows, with stripes of one kind.

    Arrays have the shape [words, H, K], or broadcast to it: H counts heights of stripes, K counts values of k_split.
    """

    chain: Chain
    plans: Plans

    @cached_property
    def tiles(self) -> tuple[Tiles, ...]:
        """What rows, steps and filters take, [K]."""
        return self.k_splits.tiles

    @cached_property
    def k_splits(self) -> KSplits:
        """The same as arrays."""
        return _tiles(self.chain, self.plans.sample, self.plans.k_splits)

    @cached_property
    def but_for_places(self) -> tuple["NestAxes", Any]:
        """The axes of plans that differ in more than where caches lie, and which of these each is like."""
        plans, alike = self.plans.but_for_places
        return (self if plans is self.plans else replace(self, plans=plans)), alike

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
    def counts(self) -> dict[Way, StripeCounts]:
        """What stripes do in each way that some plan has: whether they roll, and whether copies overlap compute."""
        rows = RowsOfChain.of(self.one.chain, self.one.bands, self.one.plan.threads)
        return {way: stripe_counts(rows, self.plans.heights, *way) for way in self.plans.ways}

    def rows(self, of: Callable[[StripeCounts], Any]) -> Integers:
        """Return figures [words, H] or [words, ..., H] that depend on stripes."""
        return self.plans.of_words({way: of(counts) for way, counts in self.counts.items()})

    def times(self, of: Callable[[StripeCounts], Any]) -> Integers:
        """Return how often something happens in all images, as in `rows`."""
        return self.rows(of).astype(self.kind) * self.one.extents[-1].batch

    def of_tiles(self, of: Callable[[Tiles], Any]) -> Integers:
        """Return figures [1, 1, K] that depend on channel tiles alone."""
        return np.array([of(tiles) for tiles in self.tiles])[None, None]

    def of_conv(self, figure: Callable[..., Any], index: int, *how: Hashable) -> Integers:
        """Return figures [1, 1, K, ...] of a conv that depend on channel tiles alone (`KSplits.of_conv`)."""
        return self.k_splits.of_conv(figure, index, *how)[None, None]

    def filter_copies(self, index: int, priced: Priced) -> Integers:
        """Price staging the whole filter of conv `index`: [words, 1, K]."""
        known = np.transpose(self.k_splits.of_conv(Tiles.filter_prices, index, priced))
        is_resident, is_double = self.plans.flags("filters", "resident"), self.plans.flags("buffering", "double")
        return known[(2 * is_resident + is_double)[:, :, 0]]

    @cached_property
    def kind(self) -> type[Any]:
        """The integer type that holds the figures of a plan that repeats everything most often."""
        again, batch = self.tiles[0].channel_tiles(self.convs[-1]), self.one.extents[-1].batch
        counts = self.counts.values()
        most = again * batch
        rows = [most * int(each) for each in np.max([each.logical_rows.max(axis=-1) for each in counts], axis=0)]
        staged = [most * int(each) for each in np.max([each.stagings.max(axis=-1) for each in counts], axis=0)]
        traffic = self.one.input_bytes(rows[0]) + self.tiles[0].output_bytes
        traffic += sum(staged[index + 1] * self._most(Tiles.filter_bytes, index) for index in self.convs)
        macs = sum(rows[index + 1] * self._most(Tiles.row_macs, index) for index in self.convs)
        macs += sum(self._most(Tiles.staging_macs, index) for index in self.convs)
        return integer_type(4 * max(traffic, macs))

    def _most(self, figure: Callable[..., Any], index: int) -> int:
        """Return the most of a figure of a conv."""
        return int(self.k_splits.of_conv(figure, index).max())

    @cached_property
    def again(self) -> Integers:
        """How many times each row is made that the last conv reads."""
        repeats = self.plans.flags("order", "k_outer") & (self.rows(lambda counts: counts.stripes) > 1)[..., None]
        tiles = self.of_conv(Tiles.channel_tiles, self.convs[-1])
        return np.where(repeats, tiles, 1)

    def repeated(self, tensor: int, times: Integers) -> Integers:
        """Return how often something happens to a tensor [words, H], repetitions included: [words, H, K]."""
        return times[..., None] if tensor == len(self.chain.conv) else times[..., None] * self.again

    def _all_repeated(self, times: Integers) -> list[Integers]:
        """Return how often something happens to every tensor [words, T, H], repetitions included: [T, words, H, K]."""
        every = np.moveaxis(times, 1, 0)[..., None] * self.again
        every[-1] = times[:, -1, :, None]
        return list(every)

    @cached_property
    def cache_rows(self) -> Integers:
        """The rows that the cache of every tensor holds: [words, T, H]."""
        return self.rows(lambda counts: counts.cache_rows)

    @cached_property
    def _made(self) -> tuple[list[Integers], ...]:
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
        if not rows_together(self.one.chain, index).sizes:
            return []
        times = self.times(lambda counts: counts.together(index))
        return [self.repeated(index + 1, times[:, way]) for way in range(times.shape[1])]

    @cached_property
    def _stagings(self) -> list[Integers]:
        """How often the filter of the conv that makes each tensor is staged: [T, words, H, K]."""
        staged = self._all_repeated(self.times(lambda counts: counts.stagings))
        once = self.plans.rolls_in_tiles & self.rows(lambda counts: counts.streams)[..., None]
        staged[-1] = np.where(once, self.threads, staged[-1])
        return [np.where(self.plans.flags("filters", "resident"), 1, each) for each in staged]

    def stagings(self, index: int) -> Integers:
        """Count how often the whole filter of a conv is staged."""
        return self._stagings[index + 1]
