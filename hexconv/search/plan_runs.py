"""Decide by simulator runs between plans that the model can't part: their packets differ by less than its error.

Run are the whole chain under plans that move as few bytes as its best, with stripes of several heights, and what
`hexconv run` takes where no plan is stated, if that fits. For the least latency, also the cuts on the front of packets
and bytes; for the least traffic, plans of the least bytes alone. Of those within `SLACK` of the fewest packets that
were counted, the one that moves the fewest bytes is the answer. Where a run is missing its reason is kept, and the
model decides without it. Runs go side by side on all cores, each case once, and what was counted is kept by content.

Chains whose runs can't matter are left to the model: all that they could save together stays within `SLACK` of the
packets of all chains (`Races`). Cases that are alike are run once.
"""

import json
import os
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.analyze.planned import Planned
from hexconv.apart import Limits, cores, do_all
from hexconv.errors import Overran, RunFailed, ToolMissing, Unsupported
from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.made_files import cached, content_key, provenance
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.search.alike import first_alike
from hexconv.search.cuts import Cut, Piece
from hexconv.search.grid import Figures, evaluate
from hexconv.search.machine import kind_of
from hexconv.search.planned_chains import CUT, DEFAULT, PLAN, Answer, Contender, ContenderRun, Race
from hexconv.search.question import SLACK, ranked
from hexconv.search.space import Space
from hexconv.spec import Case, tensor_extents
from hexconv.working import tell

JOB = "hexconv.search.plan_runs:counted"
MEMORY_BYTES = 8 << 30
ROOMS = ("spec", "layout", "kernel", "compute", "tir", "schedule", "lower", "run")
"""The packages on which it depends what a run takes."""
MOST_CUTS, MOST_PLANS = 3, 3
"""The most cuts of a front, and the most plans of the whole chain, that are run."""
APART = 4
"""How many times as many stripes the next plan that is run has at least."""
ERROR_BETWEEN = 0.032
"""By how much the packets of a contender may fall below what the model says of it beside its own answer, in `SURE`.

The model errs alike on plans of one chain of dense convs: of all contenders of ResNet-18 none fell by more, where nine
of ten runs are within 6.7 % of the model. Those of other kinds may fall by all of its error; MobileNetV2's do.
"""
SURE = ("windows of dense rows", "channels")


def contenders(answer: Answer) -> tuple[Contender, ...]:
    """Return what to run of a chain: nothing unless runs on Hexagon can decide its objective."""
    question, cut = answer.question, answer.cuts.best
    if question.target == "llvm" or cut is None:
        return ()
    if question.objective == "latency":
        return _in_race(answer, _quickest(answer), answer.unplanned)
    if question.objective != "traffic" or [piece.figures.plan.kernel for piece in cut.pieces] != ["hvx"]:
        return ()
    default = answer.unplanned
    moves_as_few = default is not None and default.traffic_bytes == cut.traffic_bytes
    found = _in_race(answer, [cut, *_alike(answer, _within(answer, cut))], default if moves_as_few else None)
    return found if len(found) > 1 else ()


def _in_race(answer: Answer, cuts: Iterable[Cut], default: Figures | None) -> tuple[Contender, ...]:
    """Return contenders, each case once, and what a run takes without a plan, if that takes part."""
    every = [Contender(CUT if len(cut.pieces) > 1 else PLAN, answer.cases(cut), cut) for cut in dict.fromkeys(cuts)]
    if default:
        whole = _whole(answer, default)
        every.append(Contender(DEFAULT, answer.cases(whole), whole))
    return tuple({each.cases: each for each in every}.values())


def _quickest(answer: Answer) -> list[Cut]:
    """Return cuts on the front and plans of the whole chain that the model can't part from the quickest one."""
    if not (cuts := answer.cuts.quick):
        return []
    within = _within(answer, cuts[0])
    quick = [cut for cut in cuts if cut.latency_packets <= within]
    return [*quick[:: -(-len(quick) // MOST_CUTS)], quick[-1], *_alike(answer, within)]


def _within(answer: Answer, cut: Cut) -> float:
    """Return the packets up to which the model can't part others from a cut."""
    return cut.latency_packets * (1 + max(answer.found.proof.model_error or 0.0, SLACK))


def _alike(answer: Answer, within: float) -> list[Cut]:
    """Return plans of the whole chain that move as few bytes as its best, with far more stripes each.

    The model has the same parts for stripes of any height, but LLVM compiles the loops around a conv in other ways:
    that changes packets by a percent or two, which runs alone tell.
    """
    best, question = answer.found.best, answer.question.settled(answer.chain)
    if best is None or best.plan.kernel != question.plan.kernel:
        return []
    grid = evaluate(answer.chain, Space.of(answer.chain, question.plan, question.storages), question.rates)
    fits = (grid.footprint_bytes <= question.vtcm_bytes) & (grid.traffic_bytes == best.traffic_bytes)
    alike = np.flatnonzero(fits & (grid.latency_packets <= within))
    ordered = ranked(grid, alike, replace(question, objective="traffic"))
    rows, by_stripes = tensor_extents(answer.chain)[-1].rows, dict[int, Figures]()
    for figures in (best, *(grid.figures(int(number)) for number in ordered)):
        by_stripes.setdefault(ceil(rows / figures.plan.stripe_rows), figures)
    found, least = [best], 1
    for stripes, figures in sorted(by_stripes.items(), key=lambda each: each[0]):
        if stripes >= least:
            found.append(figures)
            least = APART * stripes
    return [_whole(answer, figures) for figures in dict.fromkeys(found)][:MOST_PLANS]


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


Key = Hashable
"""What the packets of a case depend on."""


def key_of(case: Case) -> Key:
    """Return what cases have in common that take equally many packets: all but their names and numbers of their code.

    A zero point of 0 is not added to results.
    """
    chain = case.chain
    return first_alike(chain, case.settled), chain.output_zero_point(len(chain.conv)) == 0, case.plan


def counts_of(cases: Mapping[Key, Case], seconds: float) -> Iterator[tuple[Key, Counted]]:
    """Run cases on the simulator, side by side, and yield the packets of each, by its key, as they end.

    Args:
        cases: the cases, by their keys.
        seconds: the time limit of a run.
    """
    keys = list(cases)
    tasks = [{"toml": case.to_toml(), "name": case.name, "seconds": seconds} for case in cases.values()]
    with cores(min(len(tasks), os.cpu_count() or 1) or 1) as executor:
        runs = do_all(JOB, Limits(10 * seconds + 600, MEMORY_BYTES), tasks, executor)
        for number, (place, ending) in enumerate(runs, start=1):
            tell("running plans", number, len(tasks))
            yield keys[place], ending.answer if ending.how == "answered" else {"said": ending.reason or ending.how}


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


def stake(answer: Answer, found: Sequence[Contender]) -> float:
    """Return how many packets runs of its contenders may save of a chain beside the answer that it has without them."""
    best = answer.cuts.best
    others = [each.cut for each in found if each.cut != best]
    if best is None or not others:
        return 0.0
    planned = [Planned(piece.chain, piece.figures.plan) for piece in best.pieces]
    is_sure = all(one.nest == "rows" and {*one.rows.kernels} == {"hvx"} and kind_of(one) in SURE for one in planned)
    error = ERROR_BETWEEN if is_sure else answer.found.proof.model_error or 1.0
    return max(0.0, best.latency_packets - (1 - error) * min(cut.latency_packets for cut in others))


@dataclass(frozen=True)
class Races:
    """What is run to decide planned chains, and which of them are left to the model.

    Attributes:
        answers: the planned chains.
        found: the contenders of each.
    """

    answers: tuple[Answer, ...]
    found: tuple[tuple[Contender, ...], ...]

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> "Races":
        """Find the contenders of chains."""
        return cls(tuple(answers), tuple(map(contenders, answers)))

    @cached_property
    def left(self) -> frozenset[int]:
        """The places of the chains that the model decides, first those that leave out most runs for what is at stake.

        The errors of chains are independent, so the squares of what they put at stake add up; those of chains that are
        alike are one error.
        """
        whole = sum(answer.cuts.best.latency_packets for answer in self.answers if answer.cuts.best)
        alike = defaultdict[frozenset[Key], list[int]](list)
        for place, found in enumerate(self.found):
            if found:
                alike[frozenset(key_of(case) for each in found for case in each.cases)].append(place)
        stakes = {keys: sum(stake(self.answers[at], self.found[at]) for at in alike[keys]) ** 2 for keys in alike}
        left, spent = set[int](), 0.0
        for keys in sorted(alike, key=lambda keys: stakes[keys] / len(keys)):
            if spent + stakes[keys] <= (SLACK * whole) ** 2:
                spent += stakes[keys]
                left |= {*alike[keys]}
        return frozenset(left)

    @cached_property
    def cases(self) -> dict[Key, Case]:
        """The cases to run: of those that take equally many packets the first."""
        run = (found for place, found in enumerate(self.found) if place not in self.left)
        every = [case for found in run for each in found for case in each.cases]
        return {key_of(case): case for case in reversed(every)}

    def decided(self, counts: Mapping[Key, Counted]) -> tuple[Answer, ...]:
        """Return the chains, decided by the packets of their contenders (`counts_of`) where these were run."""
        return tuple(self._decided(place, counts) for place in range(len(self.answers)))

    def _decided(self, place: int, counts: Mapping[Key, Counted]) -> Answer:
        answer, found = self.answers[place], self.found[place]
        if not found or place in self.left:
            return replace(answer, race=Race(())) if found else answer
        return decided(answer, [_run(each, [counts[key_of(case)] for case in each.cases]) for each in found])


def _run(contender: Contender, counts: Sequence[Counted]) -> ContenderRun:
    said = next((each["said"] for each in counts if "said" in each), "")
    return ContenderRun(contender, None if said else sum(each["packets"] for each in counts), said)
