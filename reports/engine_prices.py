"""`python -m reports.engine_prices`: fits the packets that a thread takes beside the matrix engine to runs.

It draws chains as networks have them, both ends in pixels, under any of the engine's plans, and runs them on the
simulator, whose packets are those of HVX and of the scalar unit. It fits a price to each part
(`hexconv.analyze.engine_parts`); cases of other seeds tell the error. It writes `[beside]` of
`hexconv/search/machines/engine.toml`; every run is kept in `build/engine.journal`. No device timed anything of it.

What threads take to start and to join, `fork`, is told by further cases on one thread and on four: by how many packets
the slowest of four takes more than its shares of what one takes.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import numpy as np

from hexconv.analyze import Planned, needed_macs
from hexconv.analyze.engine_parts import parts_beside_engine
from hexconv.errors import HexconvError, RunFailed
from hexconv.search.machine import BesideEngine, machine_file
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.chain import PIXELS
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.random_chains import Seeded
from reports.kept import Runs
from reports.rates import Stage, robust

FITTED, JUDGED, FORKED = 160, 60, 24
"""How many cases prices are fitted to, how many others tell the error, and how many the price of a fork."""
FORK, THREADS = "fork", 4
MOST_MACS, MOST_WEIGHTS = 12_000_000, 600_000
"""The model of the engine performs about a million multiply-accumulates a second."""
NINE_OF_TEN = 0.9
JOURNAL = Path("build/engine.journal")


def engine_cases(seed: int) -> Iterator[Case]:
    """Yield an endless stream of cases of the matrix engine: one to three convs as networks have them."""
    for number in count():
        draw = Seeded(seed, number)
        try:
            case = Case("drawn", _chain(draw), _plan(draw))
            if needed_macs(case.chain) <= MOST_MACS and all(each.used == "hmx" for each in case.kernels):
                yield case
        except HexconvError:
            continue


def _chain(draw: Seeded) -> Chain:
    dtype: Dtype = draw.one_of("uint8", "uint8", "int8")
    channels = draw.one_of(1, 3, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 512)
    convs, before = list[Conv2d](), channels
    for _ in range(draw.one_of(1, 1, 2, 2, 3)):
        convs.append(_conv(draw, before, dtype, is_first=not convs))
        before = convs[-1].out_channels
    return Chain(
        input=(1, draw.number(7, 28), draw.number(7, 33), channels),
        dtype=dtype,
        filter_dtype="int8",
        zero_point=draw.one_of(0, 100),
        conv=tuple(convs),
        output_layout=PIXELS,
    )


def _conv(draw: Seeded, channels: int, dtype: Dtype, is_first: bool) -> Conv2d:
    size = draw.one_of(1, 3, 3, *([5, 7 if channels <= 8 else 3] if is_first else [1]))
    side, least = draw.one_of(0, size // 2), -128 if dtype == "int8" else 0
    made = draw.one_of(8, 16, 24, 32, 40, 64, 64, 96, 128, 128, 192, 256, 512)
    return Conv2d(
        out_channels=min(made, max(8, MOST_WEIGHTS // (channels * size * size) // 8 * 8)),
        kernel=(size, size),
        stride=draw.one_of((1, 1), (1, 1), (1, 1), (2, 2)) if is_first else (1, 1),
        padding=Padding(top=side, left=side, bottom=side, right=side),
        bias=True,
        requantize=Requantize(
            multiplier=draw.one_of(1518500250, 1518500250, "per_channel"),
            shift=-9,
            zero_point=least + draw.one_of(0, 100, 120),
            rounding=draw.one_of("away", "even"),
            clamp=draw.one_of(None, None, (least + 100, least + 240)),
            engine=draw.one_of("exact", "fast"),
        ),
    )


def _plan(draw: Seeded) -> Plan:
    return Plan(
        kernel="hmx",
        k_split=draw.one_of(1, 2, 4, 8, 16),
        h_split=draw.one_of(1, 1, 2, 4),
        order=draw.one_of("k_outer", "h_outer"),
        halo=draw.one_of("recompute", "roll"),
        filters=draw.one_of("per_tile", "resident"),
        buffering=draw.one_of("single", "single", "double"),
    )


def stages(seed: int, runs: Runs) -> Iterator[Stage]:
    """Yield the parts and the packets of an endless stream of runs; operands that cross a line have none."""
    for case in engine_cases(seed):
        try:
            counted = runs.of(case)
        except RunFailed:
            continue
        assert counted.passed, case.to_toml()
        parts = parts_beside_engine(Planned.of(case).blocks)
        yield Stage.whole({name: float(np.asarray(times).item()) for name, times in parts.items()}, counted.packets)


def forks(seed: int, runs: Runs, prices: Mapping[str, float]) -> Iterator[float]:
    """Yield the packets of a fork in an endless stream of cases on several threads.

    Args:
        seed: of the cases.
        runs: the journal.
        prices: those of all other parts.
    """
    beside = BesideEngine("", 0.0, {part: price for part, price in prices.items() if part != FORK})
    for case in engine_cases(seed):
        alone, several = (replace(case, plan=replace(case.plan, threads=threads)) for threads in (1, THREADS))
        try:
            one, four = runs.of(alone).packets, runs.of(several).critical_packets
        except RunFailed:
            continue
        of_all = parts_beside_engine(Planned.of(alone).blocks)
        slowest = parts_beside_engine(Planned.of(several).blocks, THREADS)
        if times := float(np.asarray(slowest[FORK]).item()):
            assert four, case.to_toml()
            share = float(np.asarray(beside.packets(slowest) / beside.packets(of_all)).item())
            yield (four - share * one) / times


def written(beside: BesideEngine) -> None:
    """Write the table `[beside]` of the engine's file, behind the tables of architectures."""
    file = machine_file("engine")
    text = file.read_text(encoding="utf-8")
    lines = ["[beside]", f"error = {beside.error:.3g}", f'source = "{beside.source}"', "[beside.parts]"]
    lines += [f"{part} = {price:.3g}" for part, price in sorted(beside.parts.items())]
    file.write_text(text[: text.index("[beside]")] + "\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Fit, judge and write."""
    argparse.ArgumentParser(prog="reports.engine_prices", description=__doc__).parse_args(arguments)
    with Runs.opened(JOURNAL) as runs:
        fitted = [*islice(stages(0, runs), FITTED)]
        judged = [*islice(stages(1, runs), JUDGED)]
        prices = robust(fitted)
        prices[FORK] = float(np.median([*islice(forks(2, runs, prices), FORKED)]))
    source = f"fitted to {FITTED} drawn runs on the simulator, the error told by {JUDGED} others; no device timed it"
    beside = BesideEngine(source, 0.0, prices)
    errors = np.abs([beside.packets(stage.occurs) / stage.packets - 1 for stage in judged])
    beside = replace(beside, error=float(np.quantile(errors, NINE_OF_TEN)))
    written(beside)
    print(
        f"nine of ten of {JUDGED} runs within {100 * beside.error:.1f} %, half within {100 * np.median(errors):.1f} %"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
