"""`hexconv cache`: the closed form beside TVM's allocations, and beside the traffic and MACs that are counted."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from hexconv.analyze import Arena, Usage, WorkUsage, cache_usage, plan_arena, work_usage
from hexconv.cli.cases import load_cases, print_json, say_fallbacks, write_text
from hexconv.cli.show import show
from hexconv.lower import lower_case
from hexconv.report import arena_table, cache_csv, cache_table, kernel_table, work_table
from hexconv.run.count import count
from hexconv.spec import Case, Target


def cache(*cases: Path, target: Target = "hexagon", csv: Path | None = None, json: bool = False) -> int:
    """Show what every cache takes, what is copied and what is computed: closed form, TVM and the documents' figures.

    Exits 1 if the closed form, what TVM made of the case, or a figure that the case documents differ anywhere.

    Args:
        cases: case files (TOML).
        target: where they are to run, which says what kernels they get.
        csv: also write the table there.
        json: print JSON instead of a table.
    """
    loaded = load_cases(cases, target)
    say_fallbacks(loaded)
    judged = [_judge(case) for case in loaded]
    if csv:
        write_text(csv, cache_csv(judged))
    if json:
        print_json([_row(usage, work, _arena(case)) for case, (usage, work) in zip(loaded, judged, strict=True)])
    else:
        show(cache_table([usage for usage, _ in judged]))
        show(kernel_table(loaded))
        if arenas := [(case.name, arena) for case in loaded if (arena := _arena(case))]:
            show(arena_table(arenas))
        show(work_table(judged))
    return 0 if all(usage.agrees and work.agrees for usage, work in judged) else 1


def _judge(case: Case) -> tuple[Usage, WorkUsage]:
    """What a case takes, and what it does."""
    lowered = lower_case(case)
    return cache_usage(case, lowered), work_usage(case, count(lowered))


def _arena(case: Case) -> Arena | None:
    """All caches of a plain kernel at offsets; those of the others are all live at once."""
    return plan_arena(case.chain, case.settled) if case.settled.kernel == "plain" else None


def _row(usage: Usage, work: WorkUsage, arena: Arena | None) -> dict[str, Any]:
    """One case in the words of the contract."""
    placed = asdict(arena) if arena else None
    sizes = asdict(usage)
    del sizes["forms_agree"]
    return {**sizes, **asdict(work), "arena": placed, "agrees": usage.agrees and work.agrees}
