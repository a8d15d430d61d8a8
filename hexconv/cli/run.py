"""`hexconv run`: builds and runs cases, and compares their results with numpy."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from hexconv.cli.options import Count, Seconds, Seed, check_file
from hexconv.errors import InputError
from hexconv.spec.choices import Target


def run(
    *cases: Path,
    target: Target = "llvm",
    seed: Seed = 0,
    seeds: Count = 1,
    fill: str | None = None,
    weights: Path | None = None,
    image: Annotated[Path | None, Parameter(name="--input")] = None,
    random: Annotated[bool, Parameter(negative=())] = False,
    copies: Literal["early", "late", "random"] = "random",
    save: Path | None = None,
    csv: Path | None = None,
    trace: Path | None = None,
    seconds: Seconds = 1800.0,
    slots: bool = True,
    isa: str | None = None,
    wide: bool = False,
    json: bool = False,
) -> int:
    """Run cases on seeded or given tensors and compare the results with numpy.

    It takes the weights from NAME.npz beside NAME.toml, if that is there, and draws all else.

    The first run of a case takes random tensors, whose sums stay far from the largest possible. --seeds 5 adds four
    runs on extremes: the input and the filters have their largest or smallest values, in all four combinations.
    Further runs mix them.

    It exits with 1 if a result is wrong or a plan does not fit VTCM, and with 2 if a case could not be run; the other
    cases run all the same.

    Args:
        cases: name case files (TOML), folders of them, or patterns.
        target: run on this machine (llvm), or on the Hexagon simulator.
        seed: start the random generator here; tensors and the moments of copies come from it.
        seeds: run this many times, each with the next seed and other values.
        fill: fill all tensors, in all runs, with random, least, most, alternating or one_hot values; or state one of
            these for each of input, filter1, .., bias1, .., with commas between them.
        weights: take filters and biases (filter1, bias1, ..) from this .npz file (for one case).
        image: take the input (NHWC) from this .npz file (for one case).
        random: draw the weights, even if some lie beside the case.
        copies: perform each asynchronous copy as early as it may be, as late as it may be, or at a random moment.
        save: keep what went in and came out in this .npz file, in logical layouts (for one case).
        csv: also write the counts into this file; they are the same in every run.
        trace: write what the kernel and the copy engine do, over issue slots, into this .json file, which
            https://ui.perfetto.dev opens (for one case, on the simulator). It takes a second run.
        seconds: stop a run on the simulator after this time.
        slots: count issue slots on the simulator: packets, and the stalls that public rules state. It takes up to twice
            the time.
        isa: compile for this version of Hexagon, and count by its rules; the default is the newest that the simulator
            runs. A case for a newer version is not run.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    # Imported here, so that `--help` doesn't wait the seconds that importing TVM takes.
    from hexconv.cli.progress import starting

    with starting():
        from hexconv.cli.run_cases import Asked, Given, run_cases

    check_file("--save", save, ".npz")
    check_file("--csv", csv)
    if isa and target != "hexagon":
        raise InputError.because(f"--isa {isa} is for --target hexagon", f"leave it out with --target {target}")
    check_file("--trace", trace, ".json")
    given = Given(fill, weights, image, random)
    asked = Asked(target, range(seed, seed + seeds), given, copies, seconds, slots, isa, save, trace)
    return run_cases(cases, asked, csv, wide, json)
