"""`python -m reports.verify_networks MODEL.onnx...`: compares whole quantised networks with ONNX Runtime.

Each network is verified as `hexconv verify` does it, and its first output is compared on many inputs: as the program
that `hexconv build` writes gives it. A file NAME-FORM.onnx gives one row of the table, which is written as soon as it
is measured.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from hexconv.lower.vtcm import capacity_of
from hexconv.network import Wanted
from hexconv.run.simulator.qemu import find_qemu
from hexconv.spec import Plan, Target
from hexconv.verify import Asked, Comparison, NetworkVerdict, Outputs, verify_network
from reports.kept import keep_all, named

INPUTS = 32
MILLION = 10**6


@dataclass(frozen=True)
class Row:
    """A network in a form, on a target.

    Attributes:
        network: the model.
        form: how it is quantised.
        target: where its chains ran: `hexagon` or `llvm`.
        convs: how many convs were compared with ONNX Runtime, each alone on the input that ONNX Runtime has for it.
        values: how many values all these convs have together.
        differing: how many of the values differ from ONNX Runtime's.
        in_a_million: how many differ in a million values.
        most_in_a_million: the same for the conv with the most.
        largest: the largest difference of one value, in steps of its quantisation.
        not_float32: how many of the values that differ lie beyond float32's error of the definition, on either side.
        chains: how many chains the network has.
        equal_to_numpy: how many chains equal numpy in every value when they are run.
        operators: how many steps between chains the network has.
        operators_equal: how many of them equal numpy in every value, and ONNX Runtime but for float32's rounding.
        packets: the packets of a call on the simulator; None on another target.
        inputs: on how many inputs the whole network was computed.
        ranked_alike: for how many of them the five largest scores are of the same classes in the same order.
        largest_steps: the largest difference of the first output from ONNX Runtime's, in quantisation steps.
        mean_steps: the mean difference of the first output, in quantisation steps.
        differing_share: the share of the first output's values that differ.
    """

    network: str
    form: str
    target: str
    convs: int
    values: int
    differing: int
    in_a_million: float
    most_in_a_million: float
    largest: int
    not_float32: int
    chains: int
    equal_to_numpy: int
    operators: int
    operators_equal: int
    packets: int | None
    inputs: int
    ranked_alike: int | None
    largest_steps: float
    mean_steps: float
    differing_share: float

    @property
    def holds(self) -> bool:
        """Whether all chains and operators equal numpy, and ONNX Runtime differs by its rounding to float32 alone."""
        equal = self.equal_to_numpy == self.chains and self.operators_equal == self.operators
        return equal and self.not_float32 == 0


def row(path: Path, verdict: NetworkVerdict, outputs: Outputs) -> Row:
    """Return the row of a network, from its verdict and the outputs on many inputs."""
    convs = [conv for chain in verdict.chains for conv in chain.convs]
    beside = [one for conv in convs for one in conv.comparisons if one.rule == "ONNX Runtime"]
    together = verdict.total("ONNX Runtime")
    alone = [in_a_million(one) for one in beside if one.values]
    equal = [chain for chain in verdict.chains if chain.run and chain.run.holds]
    network, form = named(path)
    return Row(
        network=network,
        form=form,
        target=verdict.target,
        convs=len(convs),
        values=together.values,
        differing=together.rounded + together.differing,
        in_a_million=in_a_million(together),
        most_in_a_million=max(alone, default=0.0),
        largest=int(together.largest),
        not_float32=together.differing,
        chains=len(verdict.chains),
        equal_to_numpy=len(equal),
        operators=len(verdict.operators),
        operators_equal=sum(step.answer == "holds" for step in verdict.operators),
        packets=verdict.packets,
        inputs=outputs.inputs,
        ranked_alike=outputs.ranked_alike,
        largest_steps=round(outputs.largest_steps, 2),
        mean_steps=round(outputs.mean / outputs.step, 4) if outputs.step else 0.0,
        differing_share=round(outputs.differing_share, 5),
    )


def in_a_million(of: Comparison) -> float:
    """Return how many elements of a million differ, by rounding or otherwise."""
    return round(MILLION * (of.rounded + of.differing) / of.values, 3)


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if a network does not hold or could not be verified."""
    parser = argparse.ArgumentParser(prog="reports.verify_networks", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, help="NAME-FORM.onnx files")
    parser.add_argument("--target", choices=get_args(Target), default="llvm", help="where chains run")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="that the whole network is computed on")
    parser.add_argument("--csv", type=Path, default=Path("reports/verify_networks.csv"), help="the table")
    options = parser.parse_args(arguments)

    def rows(path: Path) -> Iterator[Row]:
        wanted = Wanted(capacity_of(Plan()), options.target, find_qemu().isa if options.target == "hexagon" else "v68")
        verdict = verify_network(path, Asked(wanted, workers=options.workers, draws=options.inputs))
        assert verdict.many
        yield row(path, verdict, verdict.many)

    return keep_all(options.models, rows, options.csv, ("network", "form", "target"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
