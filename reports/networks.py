"""`python -m reports.networks MODEL.onnx...`: runs all chains of whole quantised networks on the simulator.

Every chain is planned for the least latency in its VTCM, cut if that is better. Each piece is run once with the model's
own weights on drawn activations, and its result is compared with numpy. Packets are all that a kernel executes,
including starting copies and waiting for them, edge layouts, repacking and fringe. Laying out weights once is not
counted.

A file NAME-FORM.onnx gives one row of the table, for the network and the form that it is quantised in. Runs are kept in
a journal: a command that was interrupted goes on from there, and runs of other code are made again.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hexconv.analyze.needed import needed_work
from hexconv.errors import HexconvError, Unsupported
from hexconv.model import Imported, import_model
from hexconv.run.given import Given, weights_of
from hexconv.search import Question, plan_chain
from hexconv.search.question import SLACK
from hexconv.spec import Case, Plan
from reports.kept import Counted, Runs, keep, named

MIB = 1 << 20
LIMIT_BYTES = 4 * MIB
JOURNAL = Path("build/networks.journal")


@dataclass(frozen=True)
class Layer:
    """A chain, or a piece of one, that runs as one case.

    Attributes:
        network: the model.
        form: how it is quantised.
        case: the name of the case.
        convs: how many convs it has.
        shapes: the NHWC shapes along the chain.
        plan: its knobs, in a word.
        macs: the needed MACs.
        plain_macs: the needed MACs of convs that no HVX kernel serves.
        packets: the packets of the run.
        issue_slots: packets and stalls together; None if they weren't counted.
        macs_per_packet: the needed MACs for each packet.
        is_right: whether the result is numpy's.
    """

    network: str
    form: str
    case: str
    convs: int
    shapes: str
    plan: str
    macs: int
    plain_macs: int
    packets: int
    issue_slots: int | None
    macs_per_packet: float
    is_right: bool


@dataclass(frozen=True)
class Row:
    """A network in a form.

    Attributes:
        network: the model.
        form: how it is quantised: the types of activations and filters, and scales per tensor or per channel.
        convs: how many convs the network has.
        taken: how many of them are in chains.
        chained: how many of them are in chains of two or more convs.
        chains: how many chains the network has.
        macs: the needed MACs of all chains.
        plain_share: the share of these MACs that is in convs which no HVX kernel serves.
        packets: the packets of all chains.
        issue_slots: packets and stalls of all chains together; None if they weren't counted.
        macs_per_packet: the needed MACs per packet.
        wrong_layers: how many layers have a result that is not numpy's.
    """

    network: str
    form: str
    convs: int
    taken: int
    chained: int
    chains: int
    macs: int
    plain_share: float
    packets: int
    issue_slots: int | None
    macs_per_packet: float
    wrong_layers: int


def layers(path: Path, imported: Imported, runs: Runs, slots: bool) -> Iterator[Layer]:
    """Plan every chain of a network, and run every piece.

    Raises:
        Unsupported: no plan of a chain fits its VTCM.
    """
    question = Question(LIMIT_BYTES, "latency", Plan(storage="vtcm"), target="hexagon", equally_quick=SLACK)
    for index, found in enumerate(imported.cases):
        weights = imported.weights(index)
        planned = plan_chain(found, question)
        if (cut := planned.cuts.best) is None:
            raise Unsupported(
                f"{path}: {found.name}: no plan fits {LIMIT_BYTES} bytes of VTCM; hexconv best says what would"
            )
        for piece, winner in zip(cut.pieces, planned.pieces(cut), strict=True):
            own = weights_of(weights, piece.first - 1, len(piece.chain.conv))
            print(f"{path.stem}: {winner.case.name}, {winner.case.settled.slug}", file=sys.stderr)
            yield _layer(named(path), winner.case, runs.of(winner.case, Given(own), slots))


def _layer(names: tuple[str, str], case: Case, counted: Counted) -> Layer:
    """Return the row of a piece that was run."""
    macs = list(needed_work(case.chain).macs.values())
    on_plain = [count for count, choice in zip(macs, case.kernels, strict=True) if choice.used == "plain"]
    return Layer(
        *names,
        case=case.name,
        convs=len(case.chain.conv),
        shapes=" > ".join("x".join(map(str, shape)) for shape in case.chain.shapes),
        plan=case.settled.slug,
        macs=sum(macs),
        plain_macs=sum(on_plain),
        packets=counted.packets,
        issue_slots=counted.issue_slots,
        macs_per_packet=round(sum(macs) / counted.packets, 2),
        is_right=counted.passed,
    )


def row(path: Path, imported: Imported, found: Sequence[Layer]) -> Row:
    """Return the row of a network, from its layers."""
    counts = [len(case.chain.conv) for case in imported.cases]
    macs, packets = sum(layer.macs for layer in found), sum(layer.packets for layer in found)
    slots = [layer.issue_slots for layer in found if layer.issue_slots is not None]
    return Row(
        *named(path),
        convs=sum(counts) + len(imported.network.not_taken),
        taken=sum(counts),
        chained=sum(count for count in counts if count > 1),
        chains=len(counts),
        macs=macs,
        plain_share=round(sum(layer.plain_macs for layer in found) / macs, 4) if macs else 0.0,
        packets=packets,
        issue_slots=sum(slots) if len(slots) == len(found) else None,
        macs_per_packet=round(macs / packets, 2) if packets else 0.0,
        wrong_layers=sum(not layer.is_right for layer in found),
    )


def main(arguments: Sequence[str]) -> int:
    """Write both tables, a network as soon as it is there; exit 1 if a result is wrong or a network has no result."""
    parser = argparse.ArgumentParser(prog="reports.networks", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, help="NAME-FORM.onnx files")
    parser.add_argument("--csv", type=Path, default=Path("reports/networks.csv"), help="a row a network and form")
    parser.add_argument("--layers", type=Path, default=Path("reports/networks_layers.csv"), help="a row a layer")
    parser.add_argument("--layers-of", nargs="*", default=["mobilenet_v2"], help="told layer by layer")
    parser.add_argument("--slots", action="store_true", help="count issue slots too, which takes several times as long")
    options = parser.parse_args(arguments)
    is_right = True
    with Runs.opened(JOURNAL) as runs:
        for path in options.models:
            try:
                imported = import_model(path)
                found = list(layers(path, imported, runs, options.slots))
            except HexconvError as error:
                print(f"{path}: {error}", file=sys.stderr)
                is_right = False
                continue
            whole = row(path, imported, found)
            print(whole)
            is_right &= whole.wrong_layers == 0
            keep(options.csv, [whole])
            if whole.network in options.layers_of:
                keep(options.layers, found)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
