"""`hexconv verify`: holds a whole network against numpy, ONNX's definitions and ONNX Runtime."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import Count, Seconds, Seed
from hexconv.cli.progress import starting, waiting
from hexconv.errors import InputError, ToolMissing
from hexconv.spec.choices import Engine, Kernel, Objective, Target

SPARE = ("kernel", "pieces", "elements", "convs")
"""The columns that a table leaves out to fit 80 columns."""


def verify(
    model: Path,
    *,
    target: Target = "hexagon",
    vtcm: str | None = None,
    objective: Objective | None = None,
    threads: Count | None = None,
    kernel: Kernel | None = None,
    engine: Engine = "exact",
    image: Annotated[Path | None, Parameter(name="--input")] = None,
    inputs: Path | None = None,
    mean: str | None = None,
    deviation: str | None = None,
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    isa: str | None = None,
    seed: Seed = 0,
    seconds: Seconds = 1800.0,
    workers: Count | None = None,
    wide: bool = False,
    json: bool = False,
) -> int:
    """Run the network that `hexconv build` writes, step by step; compare with numpy, ONNX's definitions, ONNX Runtime.

    The same question gives the same plans, objects and `network.c` as `hexconv build`. Each step of a call, a chain or
    an operator, is held against numpy on what it read in the run, and the outputs against ONNX Runtime. Each conv is
    held against its definition in the model, in float64, and against ONNX Runtime, and so is each operator, alone on
    the input that ONNX Runtime has for it. What hexconv has no operator for takes ONNX Runtime's tensors in the run.

    Each conv, chain, operator and output holds, differs, or is not compared. A difference that is proven to be
    float32's rounding is counted, and does not fail; nor does one within what a table of 256 codes adds, where it
    stands for a function behind sums, which is counted apart. It exits with 0 if nothing differs, with 1 if anything
    does, and with 2 if no chain and no output could be compared.

    Args:
        model: name the .onnx file.
        target: run the network on the Hexagon simulator, or on this machine (llvm).
        vtcm: let the caches of a chain take this much, such as 4MiB; the default is all that v68 has.
        objective: plan each chain for the least of this; the default is that of `hexconv best`.
        threads: let each chain run on this many threads of Hexagon; the default is one.
        kernel: give every piece this kernel where it serves, and hmx where it costs no more by the objective than hvx
            does; the others get the fastest.
        engine: let the matrix engine requantise exactly, by HVX, or by its own convert (fast), for --kernel hmx.
        image: take the model's inputs, by their names, from this .npz file; the default is random ones.
        inputs: compare the first output with ONNX Runtime's over all inputs in this folder, too: .npz files with the
            model's inputs by their names, or for one input .npy files and images (resized; Pillow reads them).
        mean: take this from the pixels of images, scaled to 0 to 1, for a model that reads floats: one number, or one
            for each channel, `0.485,0.456,0.406`.
        deviation: divide them by this, `0.229,0.224,0.225`.
        shape: state the sizes of an input that the model leaves open, `NAME=1,3,224,224`; may be given many times.
        isa: compile for this version of Hexagon; the default is the newest up to v68 that the simulator runs.
        seed: start the random generator here.
        seconds: stop a run on the simulator after this time.
        workers: compile chains in this many processes; the default is one per CPU.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    with starting():
        from hexconv.cli.answers import print_json, show
        from hexconv.cli.wanted_model import Code, ModelOptions
        from hexconv.report import network_verdict_lines, network_verdict_table
        from hexconv.verify import EXIT_CODES, Asked, verify_network
        from hexconv.verify.input_files import Pixels, numbers_of

    if isa and target != "hexagon":
        raise InputError.because(f"--isa {isa} is for --target hexagon", f"leave it out with --target {target}")
    code = Code.of(target, isa)
    if code.missing:
        raise ToolMissing(code.missing)
    asked = ModelOptions(code, vtcm, objective, threads, tuple(shape or ()), seed, kernel=kernel, engine=engine)
    pixels = Pixels(numbers_of("--mean", mean, (0.0,)), numbers_of("--deviation", deviation, (1.0,)))
    wanted = asked.wanted("verify", image)
    with waiting(f"reading {model.name}"):
        verdict = verify_network(model, Asked(wanted, seconds, workers, inputs, pixels))
    if json:
        print_json(verdict)
        return EXIT_CODES[verdict.answer]
    if verdict.chains:
        show(network_verdict_table(verdict), wide, SPARE)
    for line in network_verdict_lines(verdict):
        print(line)
    return EXIT_CODES[verdict.answer]
