"""Packets of a thread beside the matrix engine: counts of parts, of one plan as of many."""

from itertools import islice

import numpy as np

from hexconv.analyze.block_grid import engine_packets
from hexconv.analyze.engine_parts import parts_beside_engine
from hexconv.analyze.planned import Planned
from hexconv.search.grid import evaluate, figures_of
from hexconv.search.machine import beside_engine, rates
from hexconv.search.space import Space
from hexconv.spec import Case, Plan
from reports.engine_prices import engine_cases

CASES = 30


def counts(case: Case) -> dict[str, float]:
    """Return the parts of a case as numbers."""
    parts = parts_beside_engine(Planned.of(case).blocks)
    return {name: float(np.asarray(times).item()) for name, times in parts.items()}


def test_each_vector_of_the_input_is_read_or_filled() -> None:
    """All that the steps hold of the input: read inside of the image and at its edges, or filled."""
    seen = set[str]()
    for case in islice(engine_cases(5), CASES):
        found, axes = counts(case), Planned.of(case).blocks
        assert min(found.values()) >= 0, case.to_toml()
        vectors = [found.get(name, 0) for name in ("read", "read_near", "read_edge", "filled")]
        if case.plan.buffering == "single" and not found.get("read_byte"):
            tensor = axes.extents[0]
            assert sum(vectors) == int(axes.slabs_made[0].item()) * tensor.column_blocks * tensor.channel_blocks * 16
            seen |= {name for name, times in found.items() if times}
    assert seen >= {"read", "read_near", "read_edge", "filled", "written", "written_near", "written_part", "edge"}


def test_each_packet_of_the_engine_is_in_a_call() -> None:
    """A call has one packet, or the eight that store the bytes of sums; a row of tiles clears them."""
    seen = set[str]()
    for case in islice(engine_cases(7), CASES):
        found, did = counts(case), engine_packets(Planned.of(case).blocks).of_one
        assert found["call"] + 8 * found.get("stored", 0) == did.multiplies + did.stores + did.table_loads
        seen |= {name for name, times in found.items() if times}
    assert "stored" in seen


def test_a_plan_costs_as_much_alone_as_among_others() -> None:
    for case in islice(engine_cases(6), CASES // 3):
        space = Space.of(case.chain, Plan(kernel="hmx"))
        grid = evaluate(case.chain, space, rates("v68"))
        for number in np.random.default_rng(1).integers(0, space.size, 8).tolist():
            alone = figures_of(case.chain, space.plan(number), rates("v68"))
            assert grid.latency_packets[number] == alone.latency_packets


def test_every_price_is_of_a_part_that_occurs() -> None:
    """A part under another name would cost nothing."""
    known = {name for case in islice(engine_cases(5), 3 * CASES) for name in counts(case)}
    assert set(beside_engine().parts) <= known
