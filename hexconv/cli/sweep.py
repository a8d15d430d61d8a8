"""`hexconv sweep`: many cases, checked in parallel."""

import os
from collections.abc import Iterable, Iterator
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.progress import track

from hexconv.cli.app import app
from hexconv.cli.cases import print_json
from hexconv.sweep import Sweep, Verdict, case_file, judge_all, random_case

Count = Annotated[int, Parameter(validator=Number(gte=1))]
Seed = Annotated[int, Parameter(validator=Number(gte=0))]


@app.command
def sweep(*, random: Count, seed: Seed = 0, workers: Count | None = None, json: bool = False) -> int:
    """Check random cases over the whole scope: cache sizes and sharing against TVM, results against numpy.

    Each case that disagrees is printed as a case file. Exits 1 if there is one.

    Args:
        random: how many cases to draw.
        seed: of the draw; case i of a seed is the same whatever the number of cases.
        workers: processes at a time; by default one per CPU.
        json: print JSON instead.
    """
    cases = [random_case(seed, index) for index in range(random)]
    verdicts = judge_all(cases, workers or os.cpu_count() or 1)
    shown = _with_progress(verdicts, len(cases))
    result = Sweep.of(shown if json else _printed(shown))
    if json:
        print_json(result)
    else:
        print(f"{result.checked} checked, {result.disagree} disagree")
    return 1 if result.disagree else 0


def _with_progress(verdicts: Iterable[Verdict], total: int) -> Iterable[Verdict]:
    """A bar on standard error while somebody looks."""
    console = Console(stderr=True)
    return track(verdicts, "checking", total, console=console, disable=not console.is_terminal)


def _printed(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """Each case that does not agree, printed as soon as it is known."""
    for verdict in verdicts:
        if verdict.outcome != "agrees":
            print(f"# {verdict.outcome}", case_file(verdict), sep="\n", flush=True)
        yield verdict
