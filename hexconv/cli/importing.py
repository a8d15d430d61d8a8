"""`hexconv import`: the chains of an ONNX model as case files."""

from collections.abc import Sequence
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
from hexconv.spec import Chain
from hexconv.spec.fields import LARGEST_SIZE

SHOWN_NAMES = 3


def import_(
    model: Path,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    weights: bool = False,
    json: bool = False,
) -> int:
    """Find every maximal conv2d chain of an ONNX model and write one case file per chain, with a manifest.

    Exits 1 if the model has no chain.

    Args:
        model: the .onnx file.
        output: folder for the case files and `network.toml`.
        shape: sizes of an input that the model leaves open, `NAME=1,3,224,224`; may be given many times.
        weights: also write each chain's filters and biases, `CASE.npz`.
        json: print JSON instead of tables.
    """
    imported = import_model(model, dict(_stated(text) for text in shape or []))
    files = write_network(imported, output, weights)
    if json:
        print_json({**asdict(imported.network), "files": [str(file) for file in files]})
    else:
        _print(imported)
    return 0 if imported.cases else 1


def _stated(text: str) -> tuple[str, list[int]]:
    """`NAME=1,3,224,224`."""
    name, equals, sizes = text.rpartition("=")
    numbers = [int(size) if size.strip().isdecimal() else 0 for size in sizes.split(",")]
    if not equals or not name or not all(0 < number <= LARGEST_SIZE for number in numbers):
        raise InputError("import: --shape", repr(text), f"NAME=1,3,224,224, sizes of 1 to {LARGEST_SIZE}")
    return name, numbers


def _print(imported: Imported) -> None:
    """Chains, then what is in none, then the sum."""
    network = imported.network
    if network.chain:
        show(_chain_table(imported))
    if network.not_taken:
        show(_not_taken_table(network))
    for note in network.notes:
        print(f"note: {note}")
    total = network.taken + len(network.not_taken)
    print(f"{network.model}: {network.taken} of {total} convs in {len(network.chain)} chains")


def _chain_table(imported: Imported) -> Table:
    table = Table("case", "convs", "NHWC along the chain", "dtype", "ended by", "reason")
    for case, entry in zip(imported.cases, imported.network.chain, strict=True):
        shapes = _shapes(case.chain)
        table.add_row(case.name, str(len(entry.convs)), shapes, case.chain.dtypes, entry.ended_by, _plain(entry.reason))
    return table


def _shapes(chain: Chain) -> str:
    return " > ".join("x".join(map(str, shape)) for shape in chain.shapes)


def _not_taken_table(network: Manifest) -> Table:
    """One row a reason: what stops a model's first conv often stops all others."""
    alike: dict[tuple[str, str], list[str]] = {}
    for conv in network.not_taken:
        alike.setdefault((conv.op, conv.reason), []).append(conv.node)
    table = Table("not taken", "op", "reason")
    for (op, reason), names in alike.items():
        table.add_row(_plain(_some(names)), _plain(op), _plain(reason))
    return table


def _some(names: Sequence[str]) -> str:
    """A few names, and how many more.

    >>> _some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def _plain(words: str) -> Text:
    """Words of a model as they are: brackets are no markup, and nothing of them steers the terminal."""
    return Text("".join(letter if letter.isprintable() else "?" for letter in words))
