"""`hexconv cache`: the closed form beside TVM's allocations, and beside the traffic and MACs that are counted."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from hexconv.analyze import Usage, WorkUsage, cache_usage, uncounted_work, work_usage
from hexconv.cli.app import app
from hexconv.cli.cases import load_cases, print_json, write_text
from hexconv.cli.show import show
from hexconv.lower import lower_case
from hexconv.report import cache_csv, cache_table, work_table
from hexconv.run.count import count
from hexconv.spec import Case, kernel_of


@app.command
def cache(*cases: Path, csv: Path | None = None, json: bool = False) -> int:
    """Show what every cache takes, what is copied and what is computed: closed form, TVM and the documents' figures.

    Exits 1 if the closed form and what TVM made of the case differ anywhere.

    Args:
        cases: case files (TOML).
        csv: also write the table there.
        json: print JSON instead of a table.
    """
    judged = [_judge(case) for case in load_cases(cases)]
    if csv:
        write_text(csv, cache_csv(judged))
    if json:
        print_json([_row(usage, work) for usage, work in judged])
    else:
        show(cache_table([usage for usage, _ in judged]))
        show(work_table(judged))
    return 0 if all(usage.agrees and work.agrees for usage, work in judged) else 1


def _judge(case: Case) -> tuple[Usage, WorkUsage]:
    """What a case takes, and what it does."""
    lowered = lower_case(case)
    is_plain = kernel_of(case.chain, case.plan) == "plain"
    return cache_usage(case, lowered), work_usage(case, count(lowered)) if is_plain else uncounted_work(case)


def _row(usage: Usage, work: WorkUsage) -> dict[str, Any]:
    """One case in the words of the contract."""
    return {**asdict(usage), **asdict(work), "agrees": usage.agrees and work.agrees}
