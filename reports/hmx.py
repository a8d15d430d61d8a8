"""`python -m reports.hmx CASE.toml ...`: runs cases of the matrix engine on the simulator, beside the chain on HVX.

Writes `reports/hmx.csv`. A model performs the engine's packets (`run/simulator/harness/hmx.h`); it was held against
Qualcomm's public one, and nothing of it ran on hardware. The packets that are counted are those that are left to a
thread: HVX code that requantises, the fringe, and the calls.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

import pandas as pd

from hexconv.analyze import Planned, needed_macs
from hexconv.analyze.block_grid import engine_packets
from hexconv.errors import RunFailed
from hexconv.lower import lower_case
from hexconv.run.measure import Run, run_case, runner_of
from hexconv.spec import Case, settled
from hexconv.spec.requantize import Engine
from hexconv.written import whole_file

TABLE = Path("reports/hmx.csv")
SECONDS = 600


@dataclass(frozen=True)
class Row:
    """One case.

    Attributes:
        case: the name of the case.
        requantisation: how sums become results: `exact`, as stated, by HVX, or `fast`, by the engine's own convert.
        is_right: whether every element is numpy's answer, which has the convert's formula where it is `fast`.
        from_exact: the share of the results that are not what exact requantisation gives.
        most_from_exact: by how many codes they differ, at most.
        macs: the multiply-accumulates that are needed, each output once.
        engine_multiplies: the packets of the engine that multiply.
        engine_taps: what they multiply: taps of 64 positions by 32 inputs by 32 outputs.
        engine_stores: the packets that store bytes of sums.
        engine_table_loads: the packets that load a bias table.
        as_predicted: whether all counts of the engine are those of the closed form.
        useful_share: the share of the engine's multiply-accumulates that are needed.
        packets: the packets of one thread beside those of the engine, which it calls.
        hvx_packets: the packets of the same chain on HVX alone, by the plan that hvx has where none is stated.
        traffic_bytes: the bytes that the plan moves, biases and tables included.
        vtcm_bytes: the VTCM in use at a time, clear of its lines of 256 KiB.
    """

    case: str
    requantisation: str
    is_right: bool
    from_exact: float
    most_from_exact: int
    macs: int
    engine_multiplies: int
    engine_taps: int
    engine_stores: int
    engine_table_loads: int
    as_predicted: bool
    useful_share: float
    packets: int
    hvx_packets: int
    traffic_bytes: int
    vtcm_bytes: int


def rows(cases: Sequence[Case]) -> Iterator[Row]:
    """Yield two rows for each case, one for each requantisation; it also runs on HVX."""
    for stated in cases:
        beside = run_of(Case(stated.name, stated.chain, settled(stated.chain, None, "hexagon")))
        yield from (_row(requantised(stated, engine), engine, beside) for engine in get_args(Engine))


def requantised(case: Case, engine: Engine) -> Case:
    """Return a case whose sums become results in one of the two ways."""
    hows = [conv.requantize and replace(conv.requantize, engine=engine) for conv in case.chain.conv]
    convs = (replace(conv, requantize=how) for conv, how in zip(case.chain.conv, hows, strict=True))
    return replace(case, chain=replace(case.chain, conv=tuple(convs)))


def _row(case: Case, engine: Engine, beside: Run) -> Row:
    run = run_of(case)
    planned, needed = Planned.of(case), needed_macs(case.chain)
    assert run.engine, "the engine computes the case"
    assert run.counts, "the simulator counts"
    assert beside.counts, "the simulator counts"
    did = run.engine.packets
    return Row(
        case=case.name,
        requantisation=engine,
        is_right=run.check.passed and run.check.max_abs_error == 0,
        from_exact=round(run.from_exact.share, 4) if run.from_exact else 0.0,
        most_from_exact=run.from_exact.most if run.from_exact else 0,
        macs=needed,
        engine_multiplies=did.multiplies,
        engine_taps=did.taps,
        engine_stores=did.stores,
        engine_table_loads=did.table_loads,
        as_predicted=did == engine_packets(planned.blocks).of_one,
        useful_share=round(needed / did.macs, 4),
        packets=run.counts.packets,
        hvx_packets=beside.counts.packets,
        traffic_bytes=sum(planned.work.traffic_bytes.values()),
        vtcm_bytes=run.engine.placed_bytes,
    )


def run_of(case: Case, engine_words: bool = False) -> Run:
    """Run a case on the simulator, by calls of the model or by the engine's own words.

    Raises:
        RunFailed: the result is wrong.
    """
    runner = runner_of(case, "hexagon", SECONDS, slots=False, engine_words=engine_words)
    run = run_case(case, lower_case(case), runner)
    if not run.check.passed:
        raise RunFailed(f"{case.name} is wrong by {run.check.max_abs_error}")
    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of some cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", metavar="CASE.toml")
    asked = parser.parse_args(arguments)
    found = list(rows([Case.load(path, "hexagon") for path in asked.cases]))
    with whole_file(TABLE) as made:
        pd.DataFrame([asdict(row) for row in found]).to_csv(made, index=False)
    for row in found:
        sys.stdout.write(f"{row.case}, {row.requantisation}: {row.packets} packets, {row.hvx_packets} on HVX alone\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
