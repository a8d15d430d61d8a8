"""One chain, planned: the best plan of the whole, the best cut, and the cases that run them."""

from dataclasses import dataclass, replace

from hexconv.search.best import best_plan
from hexconv.search.cuts import Cuts, best_cuts
from hexconv.search.found import Found
from hexconv.search.grid import Figures
from hexconv.search.laps import Race
from hexconv.search.levers import Shortfall, shortfall
from hexconv.search.pieces import Cut
from hexconv.search.question import Question, placed
from hexconv.spec import Case, Chain, KernelChoice


@dataclass(frozen=True)
class Winner:
    """A case that the search recommends, and its figures."""

    case: Case
    figures: Figures


@dataclass(frozen=True)
class Answer:
    """The answer to a question about one chain.

    Attributes:
        name: the name of the chain.
        chain: the chain.
        question: the question that was asked.
        found: the result for the whole chain as one piece.
        cuts: the results for the chain in pieces.
        shortfall: why the whole chain does not fit; None where it does.
        race: the runs of the plans that the model puts first; None where nothing was to be run.
        all_in_vtcm: the best plan of the whole chain with all caches in VTCM, where other places were tried too; None
            where no such plan fits.
    """

    name: str
    chain: Chain
    question: Question
    found: Found
    cuts: Cuts
    shortfall: Shortfall | None
    race: Race | None = None
    all_in_vtcm: Figures | None = None

    @property
    def kernels(self) -> tuple[KernelChoice, ...]:
        """The kernel of every conv of the whole chain; pieces of the chain choose kernels for themselves."""
        return self.question.kernels(self.chain)

    @property
    def fused(self) -> Winner | None:
        """The whole chain under its best plan: the fastest of the race where one was run, else the search's."""
        if self.found.best and self.race and self.race.whole:
            return Winner(self.race.whole.contender.cases[0], self.found.best)
        return self._winner(self.name, self.chain, self.found.best) if self.found.best else None

    def pieces(self, cut: Cut) -> tuple[Winner, ...]:
        """Return the pieces of a cut as cases, named after the chain and their convs."""
        if len(cut.pieces) == 1:
            return (self.fused or self._winner(self.name, self.chain, cut.pieces[0].figures),)
        return tuple(self._winner(f"{self.name}-{piece.name}", piece.chain, piece.figures) for piece in cut.pieces)

    @property
    def winners(self) -> tuple[Winner, ...]:
        """The recommended cases: the whole chain, or the pieces of a better cut; empty if nothing fits."""
        return self.pieces(self.cuts.best) if self.cuts.best else ()

    @property
    def is_cut(self) -> bool:
        """Whether the answer is a chain in pieces."""
        return len(self.winners) > 1

    @property
    def saved_bytes(self) -> int | None:
        """The traffic of all convs apart minus that of the best cut; None where either does not fit."""
        before, after = self.cuts.separate, self.cuts.best
        return before.traffic_bytes - after.traffic_bytes if before and after else None

    def _winner(self, name: str, chain: Chain, figures: Figures) -> Winner:
        plan, target = placed(figures.plan, figures.footprint_bytes), self.question.target
        return Winner(Case(name, chain, plan, target=target), figures)


def plan_chain(case: Case, question: Question) -> Answer:
    """Plan one chain.

    Args:
        case: the chain and its name; of its plan only the kernel and the architecture are kept.
        question: the limit and the objective; its plan is the case's.

    Raises:
        InputError: the kernel has no figures for the objective.
        Unsupported: no plan can serve the chain.
    """
    found, cuts = best_plan(case.chain, question), best_cuts(case.chain, question)
    missing = None if found.best else shortfall(case.chain, question.settled(case.chain), found, cuts)
    usual = None if question.caches == "all-in-vtcm" else replace(question, caches="all-in-vtcm")
    all_in_vtcm = best_plan(case.chain, usual).best if usual else None
    return Answer(case.name, case.chain, question, found, cuts, missing, all_in_vtcm=all_in_vtcm)
