"""Decide by simulator runs between plans that the model can't part: their packets differ by less than its error.

Run are the cuts on the front of packets and bytes, the whole chain under its best plans, and what `hexconv run` takes
where no plan is stated, if that fits. Of those within `SLACK` of the fewest packets that were counted, the one that
moves the fewest bytes is the answer. Where a run is missing its reason is kept, and the model decides without it. Runs
go side by side on all cores, each case once, and what was counted is kept by content.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hexconv.apart import Limits, cores, do_all
from hexconv.errors import Overran, RunFailed, ToolMissing, Unsupported
from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.made_files import cached, content_key, provenance
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.search.cuts import Cut, Piece
from hexconv.search.grid import Figures
from hexconv.search.planned_chains import CUT, DEFAULT, PLAN, Answer, Contender, ContenderRun, Race
from hexconv.search.question import SLACK
from hexconv.spec import Case
from hexconv.working import tell

JOB = "hexconv.search.plan_runs:counted"
MEMORY_BYTES = 8 << 30
ROOMS = ("spec", "layout", "kernel", "compute", "tir", "schedule", "lower", "run")
"""The packages on which it depends what a run takes."""
MOST_CUTS, MOST_PLANS = 3, 2
"""The most cuts of a front, and the most plans of the whole chain, that are run."""


def contenders(answer: Answer) -> tuple[Contender, ...]:
    """Return what to run of a chain: nothing unless the objective is latency on Hexagon."""
    question, cuts = answer.question, answer.cuts.quick
    if question.objective != "latency" or question.target == "llvm" or not cuts:
        return ()
    within = cuts[0].latency_packets * (1 + max(answer.found.proof.model_error or 0.0, SLACK))
    quick = [cut for cut in cuts if cut.latency_packets <= within]
    leading = [_whole(answer, figures) for figures in answer.found.leading if figures.latency_packets <= within]
    found = [*quick[:: -(-len(quick) // MOST_CUTS)], quick[-1], *leading[:MOST_PLANS]]
    every = [Contender(CUT if len(cut.pieces) > 1 else PLAN, answer.cases(cut), cut) for cut in dict.fromkeys(found)]
    if answer.unplanned:
        default = _whole(answer, answer.unplanned)
        every.append(Contender(DEFAULT, answer.cases(default), default))
    return tuple({each.cases: each for each in every}.values())


def _whole(answer: Answer, figures: Figures) -> Cut:
    """Return the whole chain under one plan."""
    return Cut((Piece(1, len(answer.chain.conv), answer.chain, figures),))


def decided(answer: Answer, runs: Sequence[ContenderRun]) -> Answer:
    """Return a planned chain whose answer is the winner of its race."""
    race = Race(tuple(sorted(runs, key=lambda run: (run.packets is None, run.packets or 0))))
    whole = next((run for run in race.runs if run.packets is not None and run.contender.kind != CUT), None)
    if race.best is None:
        return replace(answer, race=race)
    found = replace(answer.found, best=whole.contender.cut.pieces[0].figures) if whole else answer.found
    best = race.best.contender.cut
    if len(best.pieces) == 1:
        found = replace(found, best=best.pieces[0].figures)
    return replace(answer, race=race, found=found, cuts=answer.cuts.by(best))


Counted = dict[str, Any]
"""What a run gave: `packets`, or `said`, the reason why there are none."""


def text_of(case: Case) -> str:
    """Return the key of the packets of a case: its chain and its plan, whatever its name is."""
    return case.to_toml()


def counts_of(cases: Mapping[str, Case], seconds: float) -> Iterator[tuple[str, Counted]]:
    """Run cases on the simulator, side by side, and yield the packets of each, by its text, as they end.

    Args:
        cases: the cases, by their text.
        seconds: the time limit of a run.
    """
    texts = list(cases)
    tasks = [{"toml": text, "name": cases[text].name, "seconds": seconds} for text in texts]
    with cores(min(len(tasks), os.cpu_count() or 1) or 1) as executor:
        runs = do_all(JOB, Limits(10 * seconds + 600, MEMORY_BYTES), tasks, executor)
        for number, (place, ending) in enumerate(runs, start=1):
            tell("running plans", number, len(tasks))
            yield texts[place], ending.answer if ending.how == "answered" else {"said": ending.reason or ending.how}


def counted(task: dict[str, Any]) -> Counted:
    """Run one case on the simulator, or look up what it took: the job of `counts_of`."""

    def build(path: Path) -> None:
        case = Case.parse(task["toml"], task["name"], target="hexagon")
        path.write_text(json.dumps({"packets": _packets(case, task["seconds"])}))

    try:
        key = content_key(task["toml"], provenance(ROOMS), find_qemu().version)
        return json.loads(cached("packets", key, build).read_text())
    except (ToolMissing, Overran, Unsupported, RunFailed) as reason:
        return {"said": str(reason)}


def _packets(case: Case, seconds: float) -> int:
    plan = case.settled
    simulator = Simulator(arch=plan.arch, vtcm_bytes=plan.vtcm_bytes, seconds=seconds, slots=False)
    run = run_case(case, lower_case(case), simulator)
    if not run.check.passed or run.counts is None:
        raise RunFailed(f"wrong by {run.check.max_abs_error:.3g}")
    return run.counts.packets


def raced(answers: Sequence[Answer], counts: Mapping[str, Counted]) -> tuple[Answer, ...]:
    """Return planned chains, decided by the packets of their contenders (`counts_of`)."""
    return tuple(decided(answer, runs) if (runs := _runs(answer, counts)) else answer for answer in answers)


def _runs(answer: Answer, counts: Mapping[str, Counted]) -> list[ContenderRun]:
    runs = []
    for contender in contenders(answer):
        every = [counts[text_of(case)] for case in contender.cases]
        said = next((each["said"] for each in every if "said" in each), "")
        runs.append(ContenderRun(contender, None if said else sum(each["packets"] for each in every), said))
    return runs


def cases_to_run(answers: Sequence[Answer]) -> dict[str, Case]:
    """Return the cases of all contenders of all chains, each once, by their text."""
    return {text_of(case): case for answer in answers for each in contenders(answer) for case in each.cases}
