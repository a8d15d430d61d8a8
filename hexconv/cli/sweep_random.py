"""What `hexconv sweep --random N` does: it draws cases over the whole scope, and checks them."""

from collections.abc import Iterable, Iterator

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from hexconv.cli.answers import print_json
from hexconv.cli.progress import bar, tenths
from hexconv.sweep.judging import judge_all
from hexconv.sweep.random_case import random_case
from hexconv.sweep.sweep import Sweep, case_file
from hexconv.sweep.verdict import Verdict


def sweep_random(count: int, seed: int, workers: int, json: bool) -> int:
    """Check random cases: cache sizes and sharing against TVM, results against numpy.

    Args:
        count: how many cases to draw.
        seed: the seed of the draw.
        workers: how many processes run at a time.
        json: print JSON instead.

    Returns:
        1 if a case disagrees, else 0.
    """
    cases = [random_case(seed, index) for index in range(count)]
    verdicts = judge_all(cases, workers)
    shown = _with_progress(verdicts, len(cases))
    result = Sweep.of(shown if json else _printed(shown))
    if json:
        print_json(result)
    else:
        print(f"{result.checked} checked, {result.disagree} disagree")
    return 1 if result.disagree else 0


def _with_progress(verdicts: Iterable[Verdict], total: int) -> Iterator[Verdict]:
    """Yield the same verdicts, and count them on standard error."""
    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with bar(*columns, is_kept=True) as progress:
        yield from progress.track(tenths(verdicts, "checking", total), total)


def _printed(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """Yield the same verdicts, and print each case that does not agree as soon as it is known."""
    for verdict in verdicts:
        if verdict.outcome != "agrees":
            print(f"# {verdict.outcome}", case_file(verdict), sep="\n", flush=True)
        yield verdict
