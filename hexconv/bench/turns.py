"""Times tools in turns, and compares them on a machine that other processes use as well."""

import statistics
import time
from collections.abc import Callable, Sequence

Run = Callable[[], object]

Turns = dict[str, list[list[float]]]
"""Milliseconds by tool: a list for each round, with a number for each run."""

SETTLE_SECONDS = 0.02
"""Pause before a turn, until idle threads of the tool before have gone to sleep."""

WARMING_RUNS = 3
TIMED_RUNS = 5
ROUNDS = 10


def in_turns(runs: dict[str, Run], rounds: int = ROUNDS) -> Turns:
    """Time every tool in each round, in an order that is reversed from one round to the next.

    What a tool leaves behind would otherwise be the other's time: its idle threads on the cores (so each turn waits
    until they sleep), and its data in the caches (so each turn starts with runs that aren't timed, which wake the
    tool's own threads as well). In both orders, each tool follows the others as often as they follow it.
    """
    milliseconds: Turns = {name: [] for name in runs}
    for number in range(rounds):
        for name in reversed(runs) if number % 2 else runs:
            time.sleep(SETTLE_SECONDS)
            for _ in range(WARMING_RUNS):
                runs[name]()
            milliseconds[name].append([_timed(runs[name]) for _ in range(TIMED_RUNS)])
    return milliseconds


def together(parts: Sequence[Turns]) -> Turns:
    """Return the turns of several processes, as if one process had taken all of them."""
    return {name: [turn for part in parts for turn in part[name]] for name in parts[0]}


def halves(turns: Turns) -> tuple[Turns, Turns]:
    """Split two or more rounds into the half in which all tools were nearest their quickest turns, and the other half.

    A round is as disturbed as the turn that took the longest in it, beside the same tool's quickest turn. It counts for
    all tools or for none, whichever it disturbed, and whoever did.
    """
    medians = {name: [statistics.median(turn) for turn in rounds] for name, rounds in turns.items()}
    beside_quickest = [[each / min(of_tool) for each in of_tool] for of_tool in medians.values()]
    disturbed = [max(round_) for round_ in zip(*beside_quickest, strict=True)]
    numbers = sorted(range(len(disturbed)), key=lambda number: disturbed[number])
    middle = (len(numbers) + 1) // 2

    def only(kept: list[int]) -> Turns:
        return {name: [rounds[number] for number in kept] for name, rounds in turns.items()}

    return only(sorted(numbers[:middle])), only(sorted(numbers[middle:]))


def median(rounds: list[list[float]]) -> float:
    """Return the median milliseconds of all runs of a tool."""
    return statistics.median(run for turn in rounds for run in turn)


def least(rounds: list[list[float]]) -> float:
    """Return the milliseconds of a tool's quickest run."""
    return min(run for turn in rounds for run in turn)


def ratio_by_round(one: list[list[float]], other: list[list[float]]) -> float:
    """Return the median of the rounds' ratios of medians.

    Two virtual cores may have one real core between them for seconds. Whichever tool has more of its turns in such
    times has the larger median of all runs; turns of one round are mostly on the same side.
    """
    return statistics.median(
        statistics.median(ours) / statistics.median(theirs) for ours, theirs in zip(one, other, strict=True)
    )


def _timed(run: Run) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3
