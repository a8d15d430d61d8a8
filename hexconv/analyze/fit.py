"""Whether a plan's caches fit VTCM. If they don't, the result says by how much, why, and which change would help.

The demand comes from the closed form. It is the sum of the plan's merged allocations that lie in VTCM, each rounded up
to whole granules of 2 KiB and held for the whole run. If no allocation lies in VTCM, it is what the demand would be if
all did. Nothing is lowered or built to find it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from hexconv.analyze.block_grid import crosses_lines
from hexconv.analyze.caches import PredictedAllocation
from hexconv.analyze.planned import Planned
from hexconv.kernel.engine import LINE_BYTES, vtcm_taken
from hexconv.spec import Case, Chain, Plan, tensor_extents
from hexconv.spec.capacities import CAPACITIES_BYTES, capacity_of, granules_bytes
from hexconv.spec.knobs import KNOBS, MOST_VTCM_BYTES, acts
from hexconv.spec.strips import why_no_strips

NO_LEVER = "no smaller split, no lower stripe, no narrower strip and no architecture"
IN_ONE_LINE = (
    'lower stripes, halo = "roll", fewer channels a tile or filters = "per_tile" make caches that fit into one'
)
MOST_TRIED = 64
"""Splits up to this are looked at one by one."""
ROWS_OF_BLOCKS = (4, 2, 1)
"""The heights of stripes that any layout of the output allows, below a block of 8 rows."""


@dataclass(frozen=True)
class Term:
    """One allocation.

    Attributes:
        holds: the caches that share it.
        bytes: its bytes.
        vtcm_bytes: the bytes of VTCM that it takes, in granules of 2 KiB.
    """

    holds: tuple[str, ...]
    bytes: int
    vtcm_bytes: int


@dataclass(frozen=True)
class Lever:
    """A change of the plan that makes it fit: new values of knobs, the bytes it then needs, and the bytes there are."""

    knobs: dict[str, int | str]
    demand_bytes: int
    capacity_bytes: int

    def __str__(self) -> str:
        """The knobs as a case file states them."""
        return " with ".join(f"{knob} = {json.dumps(value)}" for knob, value in self.knobs.items())


@dataclass(frozen=True)
class Fit:
    """Demand against capacity.

    Attributes:
        arch: the architecture whose VTCM is meant.
        demand_bytes: the bytes of VTCM that the plan takes.
        capacity_bytes: the bytes of VTCM that the architecture has.
        terms: the allocations that the demand is the sum of, largest first.
        levers: changes of the plan that make it fit; empty if it fits, or if no such change helps.
        crosses_lines: whether operands of the matrix engine would lie on both sides of a line, where a device faults.
    """

    arch: str
    demand_bytes: int
    capacity_bytes: int
    terms: tuple[Term, ...]
    levers: tuple[Lever, ...]
    crosses_lines: bool = False

    @property
    def fits(self) -> bool:
        """Whether the caches fit, and lie where their kernel can read them."""
        return self.gap_bytes <= 0 and not self.crosses_lines

    @property
    def gap_bytes(self) -> int:
        """How many bytes the demand exceeds the capacity by; negative if there is room left."""
        return self.demand_bytes - self.capacity_bytes

    def __str__(self) -> str:
        """The result in one line: demand, capacity, what takes how much, and which changes make it fit."""
        verdict = f"{self.gap_bytes} too many" if self.gap_bytes > 0 else f"{-self.gap_bytes} to spare"
        terms = ", ".join(f"{'/'.join(term.holds)} {term.vtcm_bytes}" for term in self.terms)
        levers = " or ".join(map(str, self.levers)) or NO_LEVER
        advice = f"; {levers} brings it under" if self.gap_bytes > 0 else ""
        if self.crosses_lines:
            advice += f"; operands of the matrix engine lie on both sides of a line of {LINE_BYTES}: {IN_ONE_LINE}"
        return f"{self.demand_bytes} of {self.arch}'s {self.capacity_bytes} bytes of VTCM, {verdict} ({terms}){advice}"


def vtcm_fit(chain: Chain, plan: Plan) -> Fit:
    """Compare what a plan's caches take with the VTCM of its architecture.

    Raises:
        InputError: the size of the architecture's VTCM is not known, and the plan doesn't state it.
    """
    planned, capacity = Planned(chain, plan), capacity_of(plan)
    terms = vtcm_terms(planned)
    demand = vtcm_demand(planned)
    levers = tuple(_levers(planned, demand, capacity)) if demand > capacity else ()
    crosses = plan.kernel == "hmx" and bool(crosses_lines(planned.blocks).any())
    return Fit(plan.arch, demand, capacity, terms, levers, crosses)


def vtcm_demand(planned: Planned) -> int:
    """Return the bytes of VTCM that a plan takes; the matrix engine's caches leave gaps in front of its lines."""
    rooms = [granules_bytes(memory.bytes, memory.copies) for memory in _counted(planned)]
    return int(vtcm_taken(rooms, planned.plan.kernel))


def _counted(planned: Planned) -> list[PredictedAllocation]:
    """The allocations that lie in VTCM; all if none lies there."""
    return [each for each in planned.allocations if each.is_in_vtcm or not planned.plan.uses_vtcm]


def misfit(case: Case) -> Fit | None:
    """Return by how much a case's plan exceeds VTCM; None where it fits, or uses none."""
    plan = case.settled
    fit = vtcm_fit(case.chain, plan) if plan.uses_vtcm else None
    return fit if fit and not fit.fits else None


def vtcm_terms(planned: Planned) -> tuple[Term, ...]:
    """The allocations of a plan that lie in VTCM, largest first; all allocations if none lies there."""
    memories = _counted(planned)
    terms = [Term(memory.holds, memory.bytes, granules_bytes(memory.bytes, memory.copies)) for memory in memories]
    if gaps := vtcm_demand(planned) - sum(term.vtcm_bytes for term in terms):
        terms.append(Term(("gaps before lines of 256 KiB",), gaps, gaps))
    return tuple(sorted(terms, key=lambda term: -term.vtcm_bytes))


def _levers(planned: Planned, demand: int, capacity: int) -> Iterator[Lever]:
    """Changes that make a plan fit: one slot instead of two, filters by the tile, smaller steps, or a larger VTCM.

    Each change is one knob. For a split it is the largest smaller value that fits; both splits change together only if
    neither is enough alone. Lower stripes of rows and narrower strips of columns, where the kernel has them, are looked
    at if no split is enough.
    """
    chain, plan = planned.chain, planned.plan
    for name, knob in KNOBS.items():
        if knob.smallest is not None and getattr(plan, name) != knob.smallest:
            yield from _first_that_fits(chain, [replace(plan, **{name: knob.smallest})], capacity, name)
    smaller_k, smaller_h = _smaller(plan.k_split), _smaller(plan.h_split)
    alone = (
        *_first_that_fits(chain, [replace(plan, k_split=k) for k in smaller_k], capacity, "k_split"),
        *_first_that_fits(chain, [replace(plan, h_split=h) for h in smaller_h], capacity, "h_split"),
    )
    pairs = [] if alone else sorted(product(smaller_k, smaller_h), key=lambda pair: -pair[0] * pair[1])
    both = [replace(plan, k_split=k, h_split=h) for k, h in pairs]
    splits = alone or tuple(_first_that_fits(chain, both, capacity, "k_split", "h_split"))
    yield from splits or _less_of_the_image(chain, plan, capacity)
    yield from _more_vtcm(plan, demand)


def _less_of_the_image(chain: Chain, plan: Plan, capacity: int) -> Iterator[Lever]:
    """The highest of the lower stripes that fits, and the widest of the narrower strips."""
    lower = [rows for rows in ROWS_OF_BLOCKS if rows < plan.stripe_rows] if acts("rows", plan.kernel or "plain") else []
    yield from _first_that_fits(chain, [replace(plan, rows=rows, h_split=1) for rows in lower], capacity, "rows")
    if not acts("w_split", plan.kernel or "plain"):
        return
    width = plan.w_split or tensor_extents(chain)[-1].column_blocks
    narrower = [width for width in _smaller(width) if not why_no_strips(chain, width, plan.column_halo)]
    yield from _first_that_fits(chain, [replace(plan, w_split=width) for width in narrower], capacity, "w_split")


def _more_vtcm(plan: Plan, demand: int) -> Iterator[Lever]:
    """The bytes that the plan takes, if it states how many there are; else the smallest architecture with as many."""
    if plan.vtcm_bytes is not None:
        yield from [Lever({"vtcm_bytes": demand}, demand, demand)] if demand <= MOST_VTCM_BYTES else []
        return
    larger = [(size, arch) for arch, size in CAPACITIES_BYTES.items() if size >= demand]
    for size, arch in sorted(larger, key=lambda entry: entry[0])[:1]:
        yield Lever({"arch": arch}, demand, size)


def _smaller(split: int) -> list[int]:
    """The values below a split that are tried, largest first: all of them, or powers of two for a large split.

    >>> _smaller(4), _smaller(100)
    ([3, 2, 1], [64, 32, 16, 8, 4, 2, 1])
    """
    if split <= MOST_TRIED:
        return list(range(split - 1, 0, -1))
    return [1 << power for power in range((split - 1).bit_length() - 1, -1, -1)]


def _first_that_fits(chain: Chain, plans: list[Plan], capacity: int, *knobs: str) -> Iterator[Lever]:
    """The first of `plans` that fits, as a change of `knobs`; nothing if none fits."""
    for plan in plans:
        needed = sum(term.vtcm_bytes for term in vtcm_terms(Planned(chain, plan)))
        if needed <= capacity:
            yield Lever({knob: getattr(plan, knob) for knob in knobs}, needed, capacity)
            return
