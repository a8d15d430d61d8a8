"""`python -m reports.model`: compares the model of latency with runs of chains that it was not fitted to.

The table has a row for each pair of a chain and a plan. The chains are those of ResNet-18, VGG-16, U-Net, FSRCNN and
MobileNetV2, with images cut until a run takes seconds, under the plan with all knobs at their defaults, those of least
traffic in 4 MiB and in 1 MiB, and the one of least footprint; and random chains of every kind, some of each, under
plans that are drawn from all plans of the chain.

The error of the model by kind is written into the file of the machine, and `hexconv best` prints that of its answer.
Who has chosen prices by this table can't judge them by it any more: `--seed 223` draws other random chains and plans,
prints how far the model is off for these alone, and writes nothing.

Every run is kept in `build/model.journal`: a command that was interrupted goes on from there.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, count, groupby, islice
from operator import attrgetter
from pathlib import Path

import numpy as np
import pandas as pd

from hexconv.analyze import Planned, needed_macs
from hexconv.search import Question, Space, best_plan
from hexconv.search.machine import KINDS, kind_of, rates
from hexconv.search.question import Objective
from hexconv.spec import Case, Chain, Plan
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.random_case import drawn_case
from hexconv.sweep.random_chains import Scope, Seeded
from reports.board import NETS
from reports.kept import Runs
from reports.network_shapes import chains_of, small
from reports.rate_cases import dense_cases, depthwise_cases, few_channel_cases, grouped_cases, nest_cases
from reports.rates import FITTED_SEED, write_errors

OF_KIND, PLANS = 6, 5
"""How many random chains of each kind there are, and how many plans are drawn for each."""
NETWORKS = ("resnet18", "vgg16", "unet", "fsrcnn")
MOST_MACS = 40_000_000
"""The most needed MACs of a chain after its image is cut; plans that recompute parts of it do more."""
FEWEST_PLANS = 16
"""The fewest plans of a random chain: with fewer there is little to order."""
FEWEST_MACS = 10_000
"""The fewest needed MACs of a random chain: a smaller one is a call and little else, of a few hundred packets."""
DTYPES: tuple[Dtype, ...] = ("uint8", "int8")
RANDOM = Scope(dtypes=DTYPES, kernels=("hvx",), storages=("global", "vtcm"), turned=("filters", "buffering"))
SEED = 79
SEEN = (FITTED_SEED, 23, 31, 41, 53, 67, 101, 103, 107, 211, 227, 229, 233)
"""Seeds that judge nothing any more: prices were fitted to their draws, or parts were chosen by them."""
CHOSEN: tuple[tuple[Objective, int], ...] = (("traffic", 1 << 22), ("traffic", 1 << 20), ("footprint", 1 << 22))
"""Objectives and limits of the plans that aren't drawn. Latency isn't among them: prices must not choose what runs."""
JOURNAL = Path("build/model.journal")
WITHIN, RIGHTLY = 0.1, 0.95
"""The error that nine of ten pairs must not exceed; the share of plans far apart that the model must order right."""
SCALAR = "scalar code beside HVX"
FAR_APART = 0.15
"""Two plans of one chain that differ by more have to be in the right order."""


@dataclass(frozen=True)
class Pair:
    """A chain under a plan: the packets that the model predicts and those that a run took.

    Attributes:
        chain: the name of the chain.
        shape: its convs, in a word.
        plan: its knobs, in a word.
        kind: the form of its convs that is hardest to predict (`hexconv.search.machine.KINDS`), or `SCALAR`.
        drawn: whether the plan was drawn from all plans of the chain.
        passed: whether the result was numpy's.
        packets: the packets of the run.
        model: the packets that the model predicts.
    """

    chain: str
    shape: str
    plan: str
    kind: str
    drawn: bool
    passed: bool
    packets: int
    model: float

    @property
    def error(self) -> float:
        """How far the model is off, as a share of the run's packets."""
        return self.model / self.packets - 1


@dataclass(frozen=True)
class Agreement:
    """How well the model agrees with the runs of all pairs.

    Attributes:
        pairs: how many there are.
        nine_of_ten: the share of a run's packets that nine of ten pairs are off by at most.
        compared: how many times two plans of one chain differ by more than 15 %.
        ordered: how many of these two plans the model puts in the order of the runs.
    """

    pairs: int
    nine_of_ten: float
    compared: int
    ordered: int

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "Agreement":
        """Return the agreement of all pairs of a table."""
        two = [(a, b) for a, b in combinations(pairs, 2) if a.chain == b.chain and _are_far_apart(a, b)]
        ordered = sum((a.packets < b.packets) == (a.model < b.model) for a, b in two)
        errors = np.abs([pair.error for pair in pairs])
        return cls(len(pairs), float(np.quantile(errors, 0.9)), len(two), ordered)


def breakdown(found: Sequence[Pair]) -> Iterator[str]:
    """A line for each kind of chain: how far its pairs are off, and the furthest of them."""
    for kind, group in groupby(sorted(found, key=attrgetter("kind")), key=attrgetter("kind")):
        pairs = list(group)
        most = max(pairs, key=lambda pair: abs(pair.error))
        nine_of_ten = Agreement.of(pairs).nine_of_ten
        furthest = f"most {100 * most.error:+.1f} % ({most.chain}, {most.plan})"
        yield f"  {kind:<21} {len(pairs):>3} pairs, nine of ten within {100 * nine_of_ten:4.1f} %, {furthest}"


def _are_far_apart(a: Pair, b: Pair) -> bool:
    return max(a.packets, b.packets) > (1 + FAR_APART) * min(a.packets, b.packets)


def network_chains() -> Iterator[tuple[str, Chain]]:
    """Yield the chains of networks."""
    yield from ((name, small(chain, MOST_MACS)) for name, chain in chains_of(*NETWORKS).items())
    yield from ((f"mobilenetv2-{name}", small(chain, MOST_MACS // 4)) for name, chain in NETS["mobilenetv2"].items())


def drawn_chains(seed: int = SEED) -> Iterator[tuple[str, Chain]]:
    """Yield `OF_KIND` random chains of each kind, no chain twice."""
    found = {chain: name for name, chain in islice(random_chains(seed), OF_KIND)}
    for kind, stream in STREAMS.items():
        large = (case.chain for case in stream(seed) if needed_macs(case.chain) >= FEWEST_MACS)
        fresh = islice((chain for chain in large if chain not in found), OF_KIND)
        found |= {chain: f"{kind}-{number}" for number, chain in enumerate(fresh)}
    yield from ((name, chain) for chain, name in found.items())


STREAMS = {
    "nest": nest_cases,
    "depthwise": depthwise_cases,
    "few": few_channel_cases,
    "groups": grouped_cases,
    "dense": dense_cases,
}
"""Random cases by kind. Prices are fitted to draws of another seed (`reports.rates`)."""


def random_chains(seed: int = SEED) -> Iterator[tuple[str, Chain]]:
    """Yield an endless stream of random chains that have enough plans to choose from."""
    for number in count():
        chain = drawn_case(Seeded(seed, number), RANDOM, "drawn").chain
        if Case("", chain, Plan(kernel="hvx")).settled.kernel != "hvx" or needed_macs(chain) < FEWEST_MACS:
            continue
        if Space.of(chain, Plan(kernel="hvx")).size >= FEWEST_PLANS:
            yield f"random-{number}", chain


def chosen_plans(chain: Chain) -> list[Plan]:
    """Return the plans of a chain that are chosen, each once."""
    chosen = [Plan(kernel="hvx"), *(_best(chain, objective, limit) for objective, limit in CHOSEN)]
    return list(dict.fromkeys(plan for plan in chosen if plan))


def drawn_plans(chain: Chain, seed: int = SEED) -> list[Plan]:
    """Draw plans from all plans of a chain, each once; fewer where a chain has no more."""
    space, draw = Space.of(chain, Plan(kernel="hvx")), Seeded(seed, needed_macs(chain))
    every = (space.plan(draw.number(0, space.size - 1)) for _ in count())
    found = dict[Plan, None]()
    while len(found) < min(PLANS, space.size):
        found[next(every)] = None
    return list(found)


def _best(chain: Chain, objective: Objective, limit: int) -> Plan | None:
    best = best_plan(chain, Question(limit, objective, Plan(kernel="hvx"))).best
    return replace(best.plan, storage="global", arch=Plan.arch) if best else None


def pairs(seed: int = SEED) -> Iterator[tuple[Case, bool]]:
    """Yield all pairs as cases, each with whether its plan was drawn; with another seed, those alone that are drawn."""
    for name, chain in network_chains() if seed == SEED else ():
        yield from ((Case(name, chain, plan), False) for plan in chosen_plans(chain))
    for name, chain in drawn_chains(seed):
        yield from ((Case(name, chain, plan), True) for plan in drawn_plans(chain, seed))


def kind_of_pair(case: Case) -> str:
    """Return the form of its convs that is hardest to predict; scalar code has an error of its own."""
    planned = Planned.of(case)
    return SCALAR if "plain" in planned.rows.kernels else kind_of(planned)


def measured(case: Case, is_drawn: bool, runs: Runs) -> Pair:
    """Run a pair, and predict it by the model."""
    run = runs.of(case)
    modelled = rates(case.settled.arch).packets(Planned.of(case))
    told = (case.name, case.chain.slug, case.settled.slug, kind_of_pair(case), is_drawn, run.passed)
    return Pair(*told, run.packets, round(modelled))


def told(found: Sequence[tuple[Case, bool]]) -> Iterator[tuple[Case, bool]]:
    """Yield the same pairs, and name each on standard error when its turn comes."""
    for number, (case, is_drawn) in enumerate(found, 1):
        print(f"{number} of {len(found)}: {case.name}, {case.settled.slug}", file=sys.stderr)
        yield case, is_drawn


def main(arguments: Sequence[str]) -> int:
    """Write the table and the model's error; exit 1 if a result is wrong or the model is further off than it may be."""
    parser = argparse.ArgumentParser(prog="reports.model", description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("reports/model.csv"), help="the table")
    parser.add_argument("--seed", type=int, default=SEED, help="draws other random chains and plans; writes nothing")
    asked = parser.parse_args(arguments)
    if asked.seed in SEEN:
        parser.error(f"seed {asked.seed} draws what prices or parts were chosen by; ask for another one")
    with Runs.opened(JOURNAL) as runs:
        found = [measured(*pair, runs) for pair in told([*pairs(asked.seed)])]
    agreement = Agreement.of(found)
    if asked.seed == SEED:
        write(found, agreement, asked.csv)
    drawn, share = sum(pair.drawn for pair in found), agreement.ordered / agreement.compared
    print(f"{agreement.pairs} pairs, {drawn} of plans that were drawn from all; seed {asked.seed}")
    print(f"nine of ten within {100 * agreement.nine_of_ten:.1f} %")
    print(*breakdown(found), sep="\n")
    print(f"of {agreement.compared} that differ by more than 15 %, {100 * share:.1f} % in the right order")
    is_near = agreement.nine_of_ten <= WITHIN and share >= RIGHTLY
    return 0 if is_near and all(pair.passed for pair in found) else 1


def write(found: Sequence[Pair], agreement: Agreement, path: Path) -> None:
    """Write the table, and the model's error, of all pairs and by kind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame([{**asdict(pair), "error": round(pair.error, 4)} for pair in found]).to_csv(path, index=False)
    kinds = {kind: [pair for pair in found if pair.kind == kind] for kind in KINDS}
    by_kind = {kind: Agreement.of(pairs).nine_of_ten for kind, pairs in kinds.items() if pairs}
    write_errors(agreement.nine_of_ten, by_kind)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
