"""`hexconv import`: the chains of an ONNX model as case files."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from hexconv.cli.cases import print_json
from hexconv.cli.show import show
from hexconv.errors import InputError
from hexconv.model import Imported, Manifest, import_model, write_network
from hexconv.spec import Chain, Target, choose_kernels
from hexconv.spec.fields import LARGEST_SIZE
from hexconv.spec.kernel import kernel_words


def import_(
    model: Path,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    target: Target = "hexagon",
    weights: bool = False,
    json: bool = False,
) -> int:
    """Find every maximal conv2d chain of an ONNX model and write one case file per chain, with a manifest.

    Exits 1 if the model has no chain.

    Args:
        model: the .onnx file.
        output: folder for the case files and `network.toml`.
        shape: sizes of an input that the model leaves open, `NAME=1,3,224,224`; may be given many times.
        target: where the chains are to run, for what is shown of their kernels: the case files state no plan.
        weights: also write each chain's filters and biases, `CASE.npz`.
        json: print JSON instead of tables.
    """
    imported = import_model(model, dict(_stated(text) for text in shape or []))
    files = write_network(imported, output, weights)
    if json:
        kernels = {case.name: choose_kernels(case.chain, None, target) for case in imported.cases}
        written = {"kernels": kernels, "files": [str(file) for file in files]}
        print_json({**asdict(imported.network), **written})
    else:
        _print(imported, target)
    return 0 if imported.cases else 1


def _stated(text: str) -> tuple[str, list[int]]:
    """`NAME=1,3,224,224`."""
    name, equals, sizes = text.rpartition("=")
    numbers = [int(size) if size.strip().isdecimal() else 0 for size in sizes.split(",")]
    if not equals or not name or not all(0 < number <= LARGEST_SIZE for number in numbers):
        raise InputError("import: --shape", repr(text), f"NAME=1,3,224,224, sizes of 1 to {LARGEST_SIZE}")
    return name, numbers


def _print(imported: Imported, target: Target) -> None:
    """Chains, then what is in none, then the sum."""
    network = imported.network
    if network.chain:
        show(_chain_table(imported, target))
    if network.not_taken:
        show(_not_taken_table(network))
    for note in network.notes:
        print(f"note: {note}")
    total = network.taken + len(network.not_taken)
    print(f"{network.model}: {network.taken} of {total} convs in {len(network.chain)} chains")


def _chain_table(imported: Imported, target: Target) -> Table:
    table = Table("case", "convs", "NHWC along the chain", "dtype", f"kernel on {target}", "ended by", "reason")
    for case, entry in zip(imported.cases, imported.network.chain, strict=True):
        shapes = _shapes(case.chain)
        kernel = kernel_words(choose_kernels(case.chain, None, target))
        ended = (entry.ended_by, _plain(entry.reason))
        table.add_row(case.name, str(len(entry.convs)), shapes, case.chain.dtypes, kernel, *ended)
    return table


def _shapes(chain: Chain) -> str:
    return " > ".join("x".join(map(str, shape)) for shape in chain.shapes)


def _not_taken_table(network: Manifest) -> Table:
    table = Table("not taken", "op", "reason")
    for conv in network.not_taken:
        table.add_row(_plain(conv.node), _plain(conv.op), _plain(conv.reason))
    return table


def _plain(words: str) -> Text:
    """Words of a model as they are: brackets are no markup, and nothing of them steers the terminal."""
    return Text("".join(letter if letter.isprintable() else "?" for letter in words))
