"""`hexconv build`: a library in C that computes chains, or a whole network."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import Count, Seed, check_folder
from hexconv.spec.choices import Objective, Target


def build_(
    *cases: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    target: Target = "hexagon",
    isa: str | None = None,
    weights: Path | None = None,
    image: Annotated[Path | None, Parameter(name="--input")] = None,
    random: Annotated[bool, Parameter(negative=())] = False,
    vtcm: str | None = None,
    objective: Objective | None = None,
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    threads: Count | None = None,
    stubs: Annotated[bool, Parameter(negative=())] = False,
    seed: Seed = 0,
    json: bool = False,
) -> int:
    """Write a library in C for a device: objects, headers, weights, and an example that checks itself.

    For each case it takes the weights from NAME.npz beside NAME.toml, if that is there, and draws all else. From an
    ONNX model it builds the whole network: its chains, planned as `hexconv best` plans them, a `network.c` that calls
    them in order, and a callback for each operator between them. The objects need nothing of TVM. `make run` in the
    folder compiles the example and runs it.

    Args:
        cases: name case files (TOML), folders of them, or patterns; or one model (MODEL.onnx).
        output: write into this folder.
        target: compile for Hexagon, or for this machine (llvm).
        isa: compile for this version of Hexagon, v66 to v81; the default is the newest up to v68 that the QEMU of this
            machine runs, so that the example can be checked here, and v68 without QEMU.
        weights: take filters and biases (filter1, bias1, ..) from this .npz file (for one case).
        image: take the input of the example (NHWC) from this .npz file (for one case); for a model, its inputs by
            their names.
        random: draw the weights, even if some lie beside the case.
        vtcm: for a model, let the caches of a chain take this much, such as 4MiB; the default is all that v68 has.
        objective: for a model, plan each chain for the least of this; the default is that of `hexconv best`.
        shape: for a model, state sizes of an input that it leaves open, `NAME=1,3,224,224`; may be given many times.
        threads: for a model, let each chain run on this many threads; the default is one on Hexagon, and all of
            this machine.
        stubs: for a model, leave what hexconv has no operator or no plan for to functions in C, whose signatures are
            written, for you to fill in.
        seed: start the random generator here.
        json: print what was built as JSON.
    """
    # Imported here, so that `--help` doesn't wait the seconds that importing TVM takes.
    from hexconv.cli.progress import starting

    with starting():
        from hexconv.cli.build_libraries import ENDING, build_cases, build_model, check_cases
        from hexconv.cli.run_cases import Given
        from hexconv.cli.wanted_model import Code, ModelOptions

    check_folder("--output", output)
    given = Given(None, weights, image, random)
    code = Code.of(target, isa)
    asked = ModelOptions(code, vtcm, objective, threads, tuple(shape or ()), seed, stubs)
    if any(path.suffix == ENDING for path in cases):
        return build_model(cases, given, asked, output, json)
    check_cases(asked)
    return build_cases(cases, given, seed, output, code, json)
