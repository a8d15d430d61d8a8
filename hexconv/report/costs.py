"""Costs of the plans that the page compares: all plans of a chain, and other splits from tables of sweeps.

Where a tensor has many blocks, the splits are thinned out to powers of two, the case's own and the largest.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hexconv.analyze import needed_macs
from hexconv.analyze.exact import Integers
from hexconv.errors import InputError
from hexconv.search import Figures, Question, Space, evaluate
from hexconv.search.found import front
from hexconv.search.grid import Grid
from hexconv.search.machine import rates
from hexconv.search.space import PARTS_OF_BLOCK, combinations
from hexconv.spec import Case, Plan, tensor_extents
from hexconv.spec.capacities import capacity_of
from hexconv.spec.case import check_regular
from hexconv.spec.knobs import acts

MOST_SPLITS = 8
"""The most blocks of a tensor for which a heat map shows every split."""

MOST_IN_FRONT = 64


@dataclass(frozen=True)
class PlanCost:
    """One plan and what it costs.

    Attributes:
        plan: the plan.
        footprint_bytes: the bytes of all merged allocations, each rounded up to whole granules of VTCM.
        traffic_bytes: the bytes copied between memory and caches.
        recompute: the MACs done over the MACs needed.
        fits: whether the footprint fits the VTCM of the plan's architecture.
    """

    plan: Plan
    footprint_bytes: int
    traffic_bytes: int
    recompute: float
    fits: bool


def own_cost(case: Case) -> PlanCost:
    """Return the cost of a case's own plan.

    >>> from hexconv.spec import Chain, Conv2d
    >>> conv = Conv2d(out_channels=128)
    >>> cost = own_cost(Case("baseline", Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan()))
    >>> cost.footprint_bytes, cost.fits, cost.recompute
    (540672, True, 2.5)
    """
    return next(cost for cost in split_costs(case) if cost.plan == case.settled)


def split_costs(case: Case) -> tuple[PlanCost, ...]:
    """The costs of a case's plan with other splits that its kernel obeys, or with other `rows`, `k_split` fastest."""
    own, (h_splits, k_splits, rows) = case.settled, _axes(case, MOST_SPLITS)
    if own.rows:
        return _costs(case, _figures(_grid(case, Space((replace(own, rows=None),), h_splits[:0], k_splits, rows))))
    return _costs(case, _figures(_grid(case, Space((own,), h_splits, k_splits))))


def chain_costs(case: Case) -> tuple[tuple[PlanCost, ...], tuple[PlanCost, ...]]:
    """The costs of plans of whole rows of a case's chain, and of those that none beats in footprint and traffic."""
    grid = _grid(case, Space(combinations(case.settled), *_axes(case, MOST_IN_FRONT)))
    return _costs(case, _figures(grid)), _costs(case, front(grid, Question(1)))


def _axes(case: Case, most: int) -> tuple[Integers, Integers, tuple[int, ...]]:
    """The values of `h_split`, `k_split` and `rows` to look at, as far as the kernel of a case obeys them."""
    outputs, own = tensor_extents(case.chain)[1:], case.settled
    kernel = own.kernel or "plain"
    h_splits = splits(max(output.row_blocks for output in outputs), own.h_split, most)
    k_splits = splits(max(output.channel_blocks for output in outputs), own.k_split, most)
    rows = {height for height in PARTS_OF_BLOCK if height <= outputs[-1].rows} | {own.rows or 1}
    return (
        np.array(h_splits),
        np.array(k_splits if acts("k_split", kernel) else (own.k_split,)),
        tuple(sorted(rows)) if acts("rows", kernel) else (),
    )


def _grid(case: Case, space: Space) -> Grid:
    return evaluate(case.chain, space, rates(case.settled.arch))


def _figures(grid: Grid) -> Iterator[Figures]:
    return (grid.figures(number) for number in range(grid.space.size))


def _costs(case: Case, plans: Iterable[Figures]) -> tuple[PlanCost, ...]:
    """Return the costs of some plans, beside the MACs that the chain needs and the VTCM of the architecture."""
    needed, capacity = needed_macs(case.chain), capacity_of(case.settled)
    return tuple(
        PlanCost(
            plan=figures.plan,
            footprint_bytes=figures.footprint_bytes,
            traffic_bytes=figures.traffic_bytes,
            recompute=figures.macs / needed if needed else 1.0,  # pools alone have no MACs
            fits=figures.footprint_bytes <= capacity,
        )
        for figures in plans
    )


def splits(blocks: int, own: int, most: int = MOST_SPLITS) -> tuple[int, ...]:
    """Return the splits of `blocks` blocks to look at: all; of more than `most`, powers of two, the last and `own`.

    >>> splits(4, 2), splits(20, 3)
    ((1, 2, 3, 4), (1, 2, 3, 4, 8, 16, 20))
    """
    if blocks <= most:
        return tuple(range(1, blocks + 1))
    return tuple(sorted({own, blocks, *(1 << power for power in range(blocks.bit_length()))}))


SPLITS = ("k_split", "h_split")
FIGURES = ("peak_bytes", "traffic_bytes", "macs", "needed_macs", "macs_per_packet")
NEEDED = ("chain", "status", *SPLITS, *FIGURES)


@dataclass(frozen=True)
class Measured:
    """The measured figures of one plan; None where a sweep has none.

    Attributes:
        footprint_bytes: the bytes that TVM allocated.
        traffic_bytes: the bytes that the lowered module copies, counted in it.
        recompute: the MACs counted in the lowered module over the MACs needed.
        macs_per_packet: the MACs per packet of a run on the simulator.
    """

    footprint_bytes: int | None = None
    traffic_bytes: int | None = None
    recompute: float | None = None
    macs_per_packet: float | None = None


BySplits = Mapping[tuple[int, int], Measured]
"""The measured figures by k_split and h_split."""


Row = Mapping[str, Any]


def read_sweeps(paths: Sequence[Path]) -> tuple[Row, ...]:
    """Read the rows that hold from all tables that a sweep wrote; an empty cell is None.

    Raises:
        InputError: a file can't be read, or is not a table of a sweep.
    """
    return tuple(row for path in paths for row in _read(path) if row["status"] == "holds")


def _read(path: Path) -> list[Row]:
    try:
        check_regular(path)
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"a table that can't be read ({error})", "what 'hexconv sweep' wrote") from None
    if missing := [name for name in NEEDED if name not in frame.columns]:
        raise InputError(str(path), f"no column {missing[0]}", "what 'hexconv sweep' wrote")
    return json.loads(str(frame.to_json(orient="records")))


def measured_splits(case: Case, sweeps: Sequence[Row]) -> BySplits:
    """The figures of a case's chain under plans that differ only in the splits; rows of several targets make one entry.

    Kernels are compared by the one used, not by the one asked for.
    """
    knobs = {knob: value for knob, value in asdict(case.settled).items() if knob not in (*SPLITS, "vtcm_bytes")}
    knobs = {("kernel_used" if knob == "kernel" else knob): value for knob, value in knobs.items()}
    figures: dict[tuple[int, int], dict[str, Any]] = {}
    for row in sweeps:
        if row["chain"] == case.chain.slug and all(row.get(knob, value) == value for knob, value in knobs.items()):
            known = {name: row[name] for name in FIGURES if row[name] is not None}
            figures.setdefault((int(row["k_split"]), int(row["h_split"])), {}).update(known)
    return {splits: _measured(known) for splits, known in figures.items()}


def _measured(known: Row) -> Measured:
    """Return the figures of one plan."""
    macs, needed = known.get("macs"), known.get("needed_macs")
    return Measured(
        footprint_bytes=known.get("peak_bytes"),
        traffic_bytes=known.get("traffic_bytes"),
        recompute=macs / needed if macs and needed else None,
        macs_per_packet=known.get("macs_per_packet"),
    )
