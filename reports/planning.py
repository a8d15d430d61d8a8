"""`python -m reports.planning [NET|NET/CHAIN|CASE.toml ...]`: measures how many plans a second a search looks at.

It prints two rows a chain. `space` is one call of the closed form over all plans with whole rows. `best` is the whole
question that `hexconv best` asks, with cuts and strips. Each has the plans of which figures were computed, the plans
that were excluded by a bound beside them, the seconds that the processor worked, and plans a second: those of which
figures were computed, and all. Nothing is remembered of the chains before. Other processes on the machine slow it down,
so no figure is kept and compared.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import _lru_cache_wrapper
from itertools import combinations
from pathlib import Path
from time import process_time

from hexconv.analyze import row_axes
from hexconv.errors import InputError
from hexconv.search import Question, Space, best_plan, evaluate, grid, plan_chain
from hexconv.search.cuts import Pieces
from hexconv.search.machine import rates
from hexconv.spec import Case, Chain, Plan
from reports.board import MIB, NETS

CHAINS: tuple[str, ...] = (
    *("fsrcnn", "dmcnn-vd", "vgg16-block3", "edsr-body", "vgg16", "windows"),
    *("mobilenetv2/stem", "mobilenetv2/56x56-24-24", "mobilenetv2/7x7-160-320"),
)
"""What is measured where nothing is named: large and small spaces."""
LIMIT_BYTES = MIB
KERNELS: tuple[Plan, ...] = (Plan(kernel="hvx", storage="vtcm"), Plan(kernel="plain", storage="vtcm"))


@dataclass(frozen=True)
class Rate:
    """How fast one question was answered.

    Attributes:
        asked: `space` or `best`.
        evaluated: the plans of which figures were computed.
        excluded: the plans that a bound excluded without figures.
        seconds: the seconds that the processor worked.
    """

    asked: str
    evaluated: int
    excluded: int
    seconds: float

    def row(self, name: str, kernel: str | None) -> str:
        """Return the row of the table."""
        a_second = (round(plans / self.seconds) for plans in (self.evaluated, self.evaluated + self.excluded))
        counts = (self.evaluated, self.excluded, f"{self.seconds:.3f}", *a_second)
        return " ".join([f"{name:28}", f"{kernel or '':5}", f"{self.asked:5}", *(f"{count:>12}" for count in counts)])


HEADER = " ".join(
    [f"{'chain':28} {'':5} {'asked':5}"]
    + [f"{name:>12}" for name in ("evaluated", "excluded", "CPU seconds", "evaluated/s", "plans/s")]
)


def chains(names: Sequence[str]) -> Iterator[tuple[str, Chain]]:
    """Yield the chains that are named: those of a net of the board, one of them (`NET/CHAIN`), or that of a case.

    Raises:
        InputError: there is no such net, chain or case.
    """
    for name in names:
        if name.endswith(".toml"):
            yield Path(name).stem, Case.load(Path(name)).chain
            continue
        net, _, part = name.partition("/")
        if net not in NETS or (part and part not in NETS[net]):
            raise InputError.no_such("net", name, [f"{net}/{each}" for each in NETS[net]] if net in NETS else NETS)
        for known in [part] if part else NETS[net]:
            yield f"{net}/{known}", NETS[net][known]


def rate_of_space(chain: Chain, question: Question) -> Rate:
    """Measure one call of the closed form over all plans with whole rows."""
    settled = question.settled(chain)
    space = Space.of(chain, settled.plan, settled.storages)
    seconds = _worked(lambda: evaluate(chain, space, rates(settled.plan.arch)))
    return Rate("space", space.size, 0, seconds)


def rate_of_best(chain: Chain, question: Question) -> Rate:
    """Measure the whole question: the chain as one piece and in pieces, in whole rows and in strips."""
    seconds = _worked(lambda: plan_chain(Case("measured", chain, question.plan), question))
    pieces = Pieces(chain, question)  # every piece was searched, so that nothing is searched again
    searched = (pieces.promising(*ends) for ends in combinations(range(pieces.count + 1), 2))
    proofs = [found.proof for found in searched if found]
    evaluated = sum(proof.evaluated for proof in proofs)
    return Rate("best", evaluated, sum(proof.plans for proof in proofs) - evaluated, seconds)


def _worked(run: Callable[[], object]) -> float:
    """Return the seconds that the processor works on a question of which nothing is remembered."""
    forget()
    rates(KERNELS[0].arch)  # a process reads the prices once, whatever it plans
    gc.collect()
    started = process_time()
    run()
    return process_time() - started


def forget() -> None:
    """Empty all caches of functions of this package."""
    modules = [module for name, module in sys.modules.items() if name.startswith("hexconv.")]
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, _lru_cache_wrapper):
                value.cache_clear()
    row_axes.forget()
    grid.forget()


def main(arguments: Sequence[str]) -> None:
    """Measure some chains by every kernel that can serve all of them."""
    parser = argparse.ArgumentParser(prog="reports.planning", description=__doc__)
    parser.add_argument("names", nargs="*", default=CHAINS, metavar="CHAIN", help="NET, NET/CHAIN or CASE.toml")
    try:
        measured = list(chains(parser.parse_args(arguments).names))
    except InputError as error:
        parser.error(str(error))
    best_plan(NETS["windows"]["all"], Question(LIMIT_BYTES, plan=KERNELS[0], target="hexagon"))  # loads the program
    print(HEADER)
    for name, chain in measured:
        for plan in KERNELS:
            question = Question(LIMIT_BYTES, plan=plan, target="hexagon")
            for measure in (rate_of_space, rate_of_best):
                print(measure(replace(chain), question).row(name, plan.kernel), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
