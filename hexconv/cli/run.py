"""`hexconv run`: build, run, compare with numpy."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from hexconv.cli.options import Count, Seconds, Seed, check_file
from hexconv.spec import Target


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
    seconds: Seconds = 1800.0,
    slots: bool = True,
    wide: bool = False,
    json: bool = False,
) -> int:
    """Run cases on seeded or given tensors and compare the results with numpy.

    Weights are those of NAME.npz beside NAME.toml, where there is one; all else is drawn. What integer sums can come to
    is then bounded from these weights.

    The first run of a case is on random tensors, which never come near the largest sums. With --seeds 5 four more are
    on extremes: input and filters of largest or of smallest values, in all four ways; then any mix is drawn.

    Exits 1 if a result is wrong or a plan does not fit VTCM, 2 if a case could not be run; the other cases run all the
    same.

    Args:
        cases: case files (TOML), folders of them, or patterns.
        target: where: this machine through LLVM, or the Hexagon simulator.
        seed: of the random tensors, and of the moments of asynchronous copies.
        seeds: how many runs, each with the next seed and other fills.
        fill: of the tensors, in all runs: random, least, most, alternating or one_hot; or one of these for each of
            input, filter1, .., bias1, .., with commas between them, as results have it.
        weights: filters and biases, filter1, bias1, .., from this .npz file (for one case).
        image: the input, NHWC, from this .npz file (for one case).
        random: draw the weights, whatever lies beside the case.
        copies: when asynchronous copies are performed between their start and the wait for them: as early as possible,
            as late as possible, or at random.
        save: keep what went in and came out, logical, in this .npz file (for one case).
        csv: also write what was counted there: the same in every run.
        seconds: the time that one run on the simulator has.
        slots: count issue slots on the simulator, which are packets and the stalls that public rules say; the run takes
            up to twice the time.
        wide: show all columns of tables, however wide they become.
        json: print JSON instead of a table.
    """
    # Here, since TVM takes seconds that `--help` doesn't have to wait for.
    from hexconv.cli.run_cases import Asked, Given, run_cases

    check_file("--save", save, ".npz")
    check_file("--csv", csv)
    given = Given(fill, weights, image, random)
    asked = Asked(target, range(seed, seed + seeds), given, copies, seconds, slots, save)
    return run_cases(cases, asked, csv, wide, json)
