"""Show a verified network as a table, in lines and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table

from hexconv.errors import one_line
from hexconv.report.headed import cell
from hexconv.verify import ChainVerdict, Difference, NetworkVerdict
from hexconv.verify.difference import MOST, together
from hexconv.verify.moved import Moved

TITLE = "values that differ from numpy, and from ONNX Runtime alone and in the network"


def network_verdict_row(verdict: NetworkVerdict) -> dict[str, Any]:
    """Return the verdict as plain values for JSON."""
    chains = [{**asdict(chain), "holds": chain.holds} for chain in verdict.chains]
    sums = {"convs_alone": asdict(verdict.convs_alone), "packets": verdict.packets, "holds": verdict.holds}
    return {**asdict(verdict), "chains": chains, **sums}


def network_verdict_table(verdict: NetworkVerdict) -> Table:
    """Return the table of a verified network: for each chain, how many values differ.

    Beside numpy: the run on its target. Beside ONNX Runtime: each conv alone, computed with numpy, and the whole
    chain alone, both on ONNX Runtime's own input, and the chain's result in the network, where errors travel.
    `largest` is the largest difference from ONNX Runtime.
    """
    heads = ("chain", "convs", "values", "numpy", "conv alone", "chain alone", "in network", "largest")
    table = Table("holds", *heads, "packets", "pieces", "kernel", title=TITLE)
    for chain in verdict.chains:
        table.add_row(*_chain_cells(chain))
    return table


def network_verdict_lines(verdict: NetworkVerdict) -> Iterator[str]:
    """The lines below the table: convs that differ too much, chains that were not run, outputs and the verdict."""
    for chain in verdict.chains:
        if chain.reason:
            yield f"{chain.case}: not run: {one_line(chain.reason)}"
    for conv in (conv for chain in verdict.chains for conv in chain.convs if not conv.holds):
        most = MOST[conv.dtype].one
        yield f"{one_line(conv.node)} alone: {_words(conv.against_runtime)}; at most {most} in a million, by 1"
        if conv.moved:
            yield f"{one_line(conv.node)}: {_moved(conv.moved)}"
    for name, reason in dict(verdict.not_verified).items():
        yield f"{one_line(name)}: not verified: {one_line(reason)}"
    other = sum(conv.not_float32 for chain in verdict.chains for conv in chain.convs)
    yield f"all convs alone: {_words(verdict.convs_alone)}; at most {verdict.most_together} in a million, by 1"
    yield f"values of ONNX Runtime's that are not their sums scaled in float32: {other}"
    if verdict.cause:
        yield verdict.cause
    for output in verdict.outputs:
        top = {None: "", True: "; top 5 the same", False: "; top 5 NOT the same"}[output.top5_same]
        yield (
            f"output {one_line(output.name)}: {output.differing} of {output.values} values differ, "
            f"by {output.largest:.3g} at most and {output.mean:.3g} in the mean, in a range of {output.range:.3g}{top}"
        )
    packets = f", {verdict.packets} packets" if verdict.packets is not None else ""
    count = len(verdict.chains)
    chains = "1 chain" if count == 1 else f"{count} chains"
    yield f"{verdict.model}: {chains} on {verdict.target}{packets}: {_holds(verdict.holds)}"


def _chain_cells(chain: ChainVerdict) -> tuple[str, ...]:
    alone = together([conv.against_runtime for conv in chain.convs]) if chain.convs else None
    largest = max((one.largest for one in (alone, chain.against_runtime, chain.in_network) if one), default=None)
    differing = (chain.against_numpy, alone, chain.against_runtime, chain.in_network)
    return (
        _yes(chain.holds),
        chain.case,
        str(len(chain.convs)),
        cell(chain.against_numpy and chain.against_numpy.values),
        *(cell(one and one.differing) for one in differing),
        cell(largest),
        cell(chain.packets),
        str(len(chain.pieces)) if chain.pieces else "",
        chain.kernels,
    )


def _words(apart: Difference) -> str:
    share = f" ({1e6 * apart.differing / apart.values:.3g} in a million)" if apart.values else ""
    return f"{apart.differing} of {apart.values} values differ{share}, by {apart.largest} at most"


def _moved(of: Moved) -> str:
    return (
        f"float32 moves {of.apart} of the {of.sums} sums whose results are not cut; "
        f"the best multiplier that is the same float32 leaves {of.least}"
    )


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def _holds(holds: bool) -> str:
    return "holds" if holds else "does NOT hold"
