"""`hexconv import`: writes the chains of an ONNX model as case files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from hexconv.cli.options import check_folder, stated_shapes
from hexconv.cli.progress import starting, waiting
from hexconv.errors import one_line
from hexconv.spec.choices import Target

if TYPE_CHECKING:
    from hexconv.model import Imported
    from hexconv.model.manifest import ChainEntry
    from hexconv.spec import Chain, KernelChoice

    Kernels = Mapping[str, Sequence[KernelChoice]]
    """The kernel of each conv of a chain, and why, by the name of its case."""


def import_(
    model: Path,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    target: Target = "hexagon",
    weights: bool = False,
    blocks: Annotated[bool, Parameter(negative=())] = False,
    wide: bool = False,
    json: bool = False,
) -> int:
    """Find every maximal conv2d chain of an ONNX model and write one case file per chain, with a manifest.

    It exits with 1 if the model has no chain.

    Args:
        model: name the .onnx file.
        output: write the case files and `network.toml` into this folder.
        shape: state the sizes of an input that the model leaves open, `NAME=1,3,224,224`; may be given many times.
        target: show the kernels that the chains get on Hexagon, or on this machine (llvm).
        weights: also write each chain's filters and biases, as `CASE.npz`.
        blocks: make an Add part of the chain before it where that has both tensors: a residual block is then one case,
            which no plan cuts between both; given the model itself, best, build and verify choose what costs least.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    with starting():
        from hexconv.cli.answers import print_json
        from hexconv.cli.cases import say_fallback
        from hexconv.model import import_model, write_network
        from hexconv.spec import choose_kernels
        from hexconv.spec.case import beyond_int32

    check_folder("--output", output)
    with waiting(f"reading {model.name}"):
        imported = import_model(model, stated_shapes("import", shape or ()), blocks)
        files = write_network(imported, output, weights)
        kernels = {case.name: choose_kernels(case.chain, None, target) for case in imported.cases}
    for name, choices in kernels.items():
        say_fallback(name, choices)
    for number, case in enumerate(imported.cases):
        if any(case.chain.sum_dtype(index) == "int64" for index in range(len(case.chain.conv))):
            for sentence in beyond_int32(case.chain, imported.weights(number)):
                print(f"hexconv: {one_line(case.name)}: {sentence}", file=sys.stderr)
    if json:
        written = {"kernels": kernels, "files": [str(file) for file in files]}
        print_json({**asdict(imported.network), **written})
    else:
        _print(imported, kernels, wide)
    return 0 if imported.cases else 1


def _print(imported: Imported, kernels: Kernels, is_wide: bool) -> None:
    """Print the chains, where and why each ends, the convs that are in no chain, and how many convs are in chains."""
    from hexconv.cli.answers import show
    from hexconv.model.imported import some
    from hexconv.model.unfused import unfused_lines
    from hexconv.report.words import counted

    network = imported.network
    if network.chain:
        show(_chain_table(imported, kernels), is_wide, ("dtype",))
    entries = (*network.operator, *network.not_taken)
    nodes = {entry.node for entry in entries}.union(*(entry.convs for entry in network.chain))
    ends: dict[str, dict[str, str]] = {}
    for case, entry in zip(imported.cases, network.chain, strict=True):
        ends.setdefault(_cause(entry, nodes), {})[case.name] = entry.reason
    for cause, reasons in ends.items():
        told = cause if len(reasons) > 1 else next(iter(reasons.values()))
        print(one_line(f"{some([*reasons])}: the chain ends because {told}"))
    alike: dict[tuple[str, str], list[str]] = {}
    for conv in network.not_taken:  # convs are often left out for one and the same reason
        alike.setdefault((conv.op, conv.reason), []).append(conv.node)
    for (op, reason), names in alike.items():
        print(one_line(f"{some(names)} ({op}): in no chain: {reason}"))
    for line in unfused_lines(network.operator if network.chain else ()):
        print(one_line(line))
    for note in network.notes:
        print(f"note: {one_line(note)}")
    total = network.taken + len(network.not_taken)
    chains = counted(len(network.chain), "chain")
    print(f"{one_line(network.model)}: {network.taken} of {counted(total, 'conv')} in {chains}")


def _cause(entry: ChainEntry, nodes: Set[str]) -> str:
    """Return why a chain ends without the name of the node at which it ends, as several chains may."""
    op, _, rest = entry.reason.partition(" ")
    named = max((node for node in nodes if rest.startswith(f"{node} ")), key=len, default="")
    return f"{op} {rest.removeprefix(f'{named} ')}" if op == entry.ended_by else entry.reason


def _chain_table(imported: Imported, kernels: Kernels) -> Table:
    table = Table("case", "convs", "kernel", "NHWC along the chain", "dtype")
    for case, entry in zip(imported.cases, imported.network.chain, strict=True):
        used = dict.fromkeys(choice.used for choice in kernels[case.name])
        convs = str(len(entry.convs))
        table.add_row(case.name, convs, ", ".join(used), _shapes(case.chain), case.chain.dtypes)
    return table


def _shapes(chain: Chain) -> str:
    return " > ".join("x".join(map(str, shape)) for shape in chain.shapes)
