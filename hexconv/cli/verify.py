"""`hexconv verify`: holds a whole network against numpy, ONNX's definitions and ONNX Runtime."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import Count, Seconds, Seed
from hexconv.errors import InputError
from hexconv.spec.choices import Target


def verify(
    model: Path,
    *,
    target: Target = "hexagon",
    vtcm: str | None = None,
    image: Annotated[Path | None, Parameter(name="--input")] = None,
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    isa: str | None = None,
    seed: Seed = 0,
    seconds: Seconds = 1800.0,
    workers: Count | None = None,
    wide: bool = False,
    json: bool = False,
) -> int:
    """Run every chain of a network with the model's weights; compare with numpy, ONNX's definitions and ONNX Runtime.

    Each chain runs alone, planned as `hexconv best` plans it, on the input that ONNX Runtime has for it. Each of its
    convs is held against its definition in the model, in float64, and against ONNX Runtime. Then all chains take their
    places in the network, the rest of which ONNX Runtime computes, so that roundings travel on.

    Each conv, chain and output holds, differs, or is not compared. A difference that is proven to be float32's rounding
    is counted, and does not fail. It exits with 0 if nothing differs, with 1 if anything does, and with 2 if nothing
    could be compared.

    Args:
        model: name the .onnx file.
        target: run the chains on the Hexagon simulator, or on this machine (llvm).
        vtcm: let the caches of a chain take this much, such as 4MiB; the default is all that v68 has.
        image: take the model's inputs, by their names, from this .npz file; the default is random ones.
        shape: state the sizes of an input that the model leaves open, `NAME=1,3,224,224`; may be given many times.
        isa: compile for this version of Hexagon; the default is the newest that the simulator runs.
        seed: start the random generator here.
        seconds: stop a run on the simulator after this time.
        workers: use this many processes; the default is one per CPU.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    # Imported here, so that `--help` doesn't wait the seconds that importing TVM takes.
    from hexconv.cli.progress import starting

    with starting():
        from hexconv.cli.memory import memory_bytes
        from hexconv.cli.shapes import stated_shapes
        from hexconv.cli.verify_network import verify_and_show
        from hexconv.lower.vtcm import capacity_of
        from hexconv.spec import Plan
        from hexconv.verify import Asked

    if isa and target != "hexagon":
        raise InputError.because(f"--isa {isa} is for --target hexagon", f"leave it out with --target {target}")
    limit = memory_bytes(vtcm, "--vtcm") if vtcm else capacity_of(Plan())
    shapes, processes = stated_shapes("verify", shape or []), workers or os.cpu_count() or 1
    return verify_and_show(model, Asked(target, limit, processes, image, shapes, seed, isa, seconds), wide, json)
