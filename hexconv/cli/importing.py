"""`hexconv import`: the chains of an ONNX model as case files."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from hexconv.cli.cases import print_json
from hexconv.cli.options import check_folder
from hexconv.cli.progress import waiting
from hexconv.cli.show import show
from hexconv.errors import InputError, one_line
from hexconv.spec import Chain, Target, choose_kernels
from hexconv.spec.fields import LARGEST_SIZE

if TYPE_CHECKING:
    from hexconv.model import Imported

SHOWN_NAMES = 3


def import_(
    model: Path,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    target: Target = "hexagon",
    weights: bool = False,
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
        wide: show all columns of tables.
        json: print JSON instead.
    """
    from hexconv.model import import_model, write_network  # onnx takes a while that `--help` doesn't have to wait for

    check_folder("--output", output)
    with waiting(f"reading {model.name}"):
        imported = import_model(model, stated_shapes("import", shape or []))
        files = write_network(imported, output, weights)
    if json:
        kernels = {case.name: choose_kernels(case.chain, None, target) for case in imported.cases}
        written = {"kernels": kernels, "files": [str(file) for file in files]}
        print_json({**asdict(imported.network), **written})
    else:
        _print(imported, target, wide)
    return 0 if imported.cases else 1


def stated_shapes(command: str, texts: Sequence[str]) -> dict[str, list[int]]:
    """Sizes of inputs by name, of options `--shape NAME=1,3,224,224`.

    Raises:
        InputError: one is no such text.
    """
    return dict(_stated(command, text) for text in texts)


def _stated(command: str, text: str) -> tuple[str, list[int]]:
    """`NAME=1,3,224,224`."""
    name, equals, sizes = text.rpartition("=")
    numbers = [int(size) if size.strip().isdecimal() else 0 for size in sizes.split(",")]
    if not equals or not name or not all(0 < number <= LARGEST_SIZE for number in numbers):
        raise InputError(f"{command}: --shape", repr(text), f"NAME=1,3,224,224, sizes of 1 to {LARGEST_SIZE}")
    return name, numbers


def _print(imported: "Imported", target: Target, is_wide: bool) -> None:
    """Chains, where each ends and why, then what is in none, then the sum."""
    network = imported.network
    if network.chain:
        show(_chain_table(imported, target), is_wide, ("dtype",))
    ends: dict[str, list[str]] = {}
    for case, entry in zip(imported.cases, network.chain, strict=True):
        ends.setdefault(f"the chain ends because {entry.reason}", []).append(case.name)
    for end, names in ends.items():
        print(one_line(f"{', '.join(names)}: {end}"))
    alike: dict[tuple[str, str], list[str]] = {}
    for conv in network.not_taken:  # what stops a model's first conv often stops all others
        alike.setdefault((conv.op, conv.reason), []).append(conv.node)
    for (op, reason), names in alike.items():
        print(one_line(f"{_some(names)} ({op}): in no chain: {reason}"))
    for note in network.notes:
        print(f"note: {one_line(note)}")
    total = network.taken + len(network.not_taken)
    print(f"{network.model}: {network.taken} of {total} convs in {len(network.chain)} chains")


def _chain_table(imported: "Imported", target: Target) -> Table:
    table = Table("case", "convs", "kernel", "NHWC along the chain", "dtype")
    for case, entry in zip(imported.cases, imported.network.chain, strict=True):
        kernels = dict.fromkeys(choice.used for choice in choose_kernels(case.chain, None, target))
        convs = str(len(entry.convs))
        table.add_row(case.name, convs, ", ".join(kernels), _shapes(case.chain), case.chain.dtypes)
    return table


def _shapes(chain: Chain) -> str:
    return " > ".join("x".join(map(str, shape)) for shape in chain.shapes)


def _some(names: Sequence[str]) -> str:
    """A few names, and how many more.

    >>> _some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more
