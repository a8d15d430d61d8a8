"""`hexconv best`: the best plan that fits, and the proof; for chains, and for whole networks."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import Count, Seconds, check_file, check_folder
from hexconv.spec.choices import DEFAULT_OBJECTIVE, Kernel, Objective, Target
from hexconv.spec.places import Caches


def best(
    *chains: Path,
    vtcm: str | None = None,
    objective: Objective = DEFAULT_OBJECTIVE,
    bytes_per_packet: float | None = None,
    threads: Count = 1,
    kernel: Kernel | None = None,
    target: Target = "hexagon",
    caches: Caches = "as-needed",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    plot: Path | None = None,
    run: bool = True,
    verified: Annotated[bool, Parameter(name="--verify")] = False,
    seconds: Seconds = 60.0,
    wide: bool = False,
    account: Annotated[bool, Parameter(negative=())] = False,
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    json: bool = False,
) -> int:
    """Find the best plan of a chain that fits VTCM, and prove that no searched one is better; or plan a whole network.

    It looks at every way to cut the chain into pieces, and for each piece at the values of all knobs: of stripes and of
    strips of columns, the least that give each number of them. --account lists what was searched. From a case file it
    takes the chain, and from its plan the kernel and the architecture. A folder is a network: each of its case files is
    a chain. The `network.toml` of an import stands for its folder, by itself or among the case files of all of its
    chains.

    It exits with 1 if some chain does not fit even in pieces, or if --verify finds a wrong figure. It exits with 2 if a
    case can't be used, or if a run for --verify could not be made; the other cases are done all the same.

    Args:
        chains: name case files (TOML, with or without a plan), folders of them, or patterns.
        vtcm: let the caches take this much, such as 4MiB or 4MB; the default is all that the case's architecture has.
        objective: choose what the best plan has least of. time: packets of a thread and copies, by a model; traffic:
            bytes moved, then packets; latency: packets, then bytes of plans that are as quick; footprint: memory.
        bytes_per_packet: the bytes that copies move in the time of a packet, for --objective time; by default what
            published figures of the case's architecture say.
        threads: plan for so many Hexagon threads.
        kernel: plan for this kernel instead of the cases' own.
        target: plan for Hexagon, or for this machine (llvm).
        caches: keep all caches in VTCM; or let the search put some outside (anywhere), where all that a kernel reads
            and writes counts as traffic; or only where nothing fits, or much is moved, and it helps (as-needed); or put
            outside whatever HVX kernels read by scalar loads, which are slow on VTCM (no-vtcm-scalar-loads).
        output: write the answers into this folder, with the weights that lie beside the cases, and a network's
            `network.toml`.
        plot: draw the fronts of footprint and of packets against traffic into this .svg file (for one chain).
        run: for --objective latency, run the plans that the model can't part, and what a run takes without a plan, on
            the simulator, if it is here; they decide.
        verified: lower, count and run the answers, wherever their kernel runs, and compare them with the search.
        seconds: stop a run on the simulator after this time.
        wide: show all columns of tables.
        account: of one chain, also show why each other plan was not chosen, the front of footprint against traffic,
            and the cuts.
        shape: for a model, state sizes of an input that it leaves open, `NAME=1,3,224,224`; may be given many times.
        json: print JSON instead.
    """
    # Imported here, so that `--help` doesn't wait the seconds that importing TVM takes.
    from hexconv.cli.progress import starting
    from hexconv.run.machine_parts import check_plots

    check_file("--plot", plot, ".svg")
    if plot:
        check_plots("--plot")
    with starting():
        from hexconv.cli.best_chains import Asked, best_chains

    check_folder("--output", output)
    how = (vtcm, objective, bytes_per_packet, threads, kernel, target, caches)
    asked = Asked(*how, output, plot, run, verified, seconds, wide, account, tuple(shape or ()))
    return best_chains(chains, asked, json)
