"""`hexconv example`: writes a network to try all commands on."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import check_folder
from hexconv.example import NETWORK
from hexconv.written import write_file


def example(*, output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path(), json: bool = False) -> int:
    """Write a small quantised ONNX model, residual.onnx, to try the other commands on.

    It has six convs in three chains: uint8 activations, int8 filters, 110 KB. Its filters are drawn, not trained.

    Args:
        output: write the model into this folder; the default is the current one.
        json: print the names of the written files as JSON.
    """
    from hexconv.cli.answers import print_json  # imported here, so that `--help` doesn't wait for pydantic

    check_folder("--output", output)
    path = output / NETWORK.name
    write_file(path, NETWORK.read_bytes())
    if json:
        print_json([{"file": str(path)}])
    else:
        print(path)
    return 0
