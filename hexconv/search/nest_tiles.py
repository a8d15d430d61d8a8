"""What rows, steps and filters of a nest of rows take under one k_split, whatever its stripes are.

Convs that are alike (`hexconv.search.alike`) take the same, and their figures are computed once.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any, TypeVar

from hexconv.analyze.cache import DTYPE_BYTES, PredictedCache
from hexconv.analyze.copy_packets import input_parts, on_filter
from hexconv.analyze.nest_packets import on_conv
from hexconv.analyze.output_packets import on_output
from hexconv.analyze.packet_parts import Parts, Spent
from hexconv.analyze.rows import PlannedRows
from hexconv.analyze.rows_footprint import footprint_of_filter, footprints_of_conv, footprints_of_input
from hexconv.kernel import output_layout
from hexconv.kernel.depthwise import is_depthwise
from hexconv.search.alike import number_of, once
from hexconv.spec import Plan
from hexconv.spec.extents import REMEMBERED

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
Figure = TypeVar("Figure")


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


def prices(spent: Spent, priced: Priced) -> list[float]:
    """Price a row with elements, a row without, a step, what happens once, and rows that are made together."""
    return [priced(parts) for parts in spent.parts]
