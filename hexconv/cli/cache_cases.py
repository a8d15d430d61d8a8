"""What `hexconv cache` does: it lowers every case, and compares the closed form with what TVM made of the case."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hexconv.analyze import Usage, WorkUsage, cache_usage, conv_forms, work_usage
from hexconv.cli.answers import print_json, write_text
from hexconv.cli.cases import Batch
from hexconv.cli.show import show
from hexconv.lower import lower_case
from hexconv.report import cache_csv, cache_table, form_table, work_table
from hexconv.run.count import count
from hexconv.spec import Case, Target
from hexconv.spec.kernel_choice import kernel_words


def cache_cases(paths: Sequence[Path], target: Target, csv: Path | None, is_wide: bool, json: bool) -> int:
    """Lower and compare cases, and print them; returns 0 if all agree, 1 if one doesn't, 2 if one can't be lowered."""
    batch = Batch.of(paths, target)
    batch.say_fallbacks()
    done = list(batch.each("counting", _judge))
    if csv and done:
        write_text(csv, cache_csv([judged for _, judged in done]))
    if json and done:
        print_json([_row(case, *judged) for case, judged in done])
    elif not json:
        for place, (case, (usage, work)) in enumerate(done):
            print(end="\n" if place else "")
            _show(case, usage, work, is_wide)
    return batch.code(all(usage.agrees and work.agrees for _, (usage, work) in done))


def _judge(case: Case) -> tuple[Usage, WorkUsage]:
    """Return what a case's caches take, and what it moves and computes."""
    lowered = lower_case(case)
    return cache_usage(case, lowered), work_usage(case, count(lowered))


def _row(case: Case, usage: Usage, work: WorkUsage) -> dict[str, Any]:
    """One case as a row of JSON."""
    sizes = asdict(usage)
    del sizes["forms_agree"]
    forms = [asdict(form) for form in conv_forms(case)]
    return {**sizes, **asdict(work), "forms": forms, "agrees": usage.agrees and work.agrees}


def _show(case: Case, usage: Usage, work: WorkUsage, is_wide: bool) -> None:
    """Print one case for people: its caches, what it moves and what it computes."""
    show(cache_table(usage), is_wide, ("shape or caches held", "kind"))
    print(f"kernel {kernel_words(case.kernels)}")
    print()
    show(work_table(usage.case, work), is_wide)
    if is_wide:
        show(form_table(case.name, conv_forms(case)), is_wide)
