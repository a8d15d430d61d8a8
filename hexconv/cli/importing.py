"""`hexconv import`: writes the chains of an ONNX model as case files."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import check_folder
from hexconv.spec.choices import Target


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
    from hexconv.cli.import_model import import_and_show  # imported here, so that `--help` doesn't wait for onnx

    check_folder("--output", output)
    return import_and_show(model, output, shape or [], target, weights, wide, json)
