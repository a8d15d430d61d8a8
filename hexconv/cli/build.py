"""`hexconv build`: a library in C that computes chains."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import Seed, check_folder
from hexconv.spec import Target


def build_(
    *cases: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    target: Target = "hexagon",
    isa: str = "v68",
    weights: Path | None = None,
    image: Annotated[Path | None, Parameter(name="--input")] = None,
    random: Annotated[bool, Parameter(negative=())] = False,
    seed: Seed = 0,
    json: bool = False,
) -> int:
    """Write what goes to a device: an object, a C header, weights and an example that checks itself, for each case.

    Weights are those of NAME.npz beside NAME.toml, where there is one; all else is drawn. Nothing of TVM is in the
    objects or asked for by them. `make run` in the folder compiles the examples and runs them.

    Args:
        cases: case files (TOML), folders of them, or patterns.
        output: the folder to write.
        target: what the code is for: Hexagon, or this machine.
        isa: the instruction set, of Hexagon.
        weights: filters and biases, filter1, bias1, .., from this .npz file (for one case).
        image: the input of the example, NHWC, from this .npz file (for one case).
        random: draw the weights, whatever lies beside the case.
        seed: of what is drawn.
        json: print what was written as JSON.
    """
    from hexconv.cli.build_cases import build_cases  # TVM takes seconds that `--help` doesn't have to wait for
    from hexconv.cli.run_cases import Given

    check_folder("--output", output)
    return build_cases(cases, Given(None, weights, image, random), seed, output, target, isa, json)
