"""`hexconv calibrate`: programs that count what plans and copies take on a device, and a machine of their lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hexconv.cli.options import check_file, check_folder
from hexconv.cli.progress import starting, waiting
from hexconv.errors import InputError

if TYPE_CHECKING:
    from hexconv.search.calibration import Fit


def calibrate(
    lines: Path | None = None,
    *,
    programs: Path | None = None,
    isa: str | None = None,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("machine.toml"),
    json: bool = False,
) -> int:
    """Turn what a device printed into a machine's file, which `best --machine` plans by; or write what prints it.

    First `hexconv calibrate --programs first --isa v73`, which writes a FastRPC project of one chain under seven plans:
    four that prices of packets are fitted to, one outside of VTCM, and two on threads. Then, with a device,
    `make -C first/fastrpc push run OPTIONS=--lines > lines.txt`, and `hexconv calibrate lines.txt`.

    Args:
        lines: read this file of lines that the programs printed; what else they printed may stand between.
        programs: write the programs into this folder instead.
        isa: with --programs, compile for this version of Hexagon, v66 to v81; the default is that of `build`.
        output: write the machine into this file.
        json: print JSON instead.
    """
    if (lines is None) == (programs is None):
        what = "neither LINES nor --programs" if lines is None else f"both {lines} and --programs"
        raise InputError.because(
            f"{what} given", "give the lines of a first run, or a folder to write its programs into"
        )
    if programs is not None:
        return _write_programs(programs, isa, json)
    assert lines is not None
    if isa:
        raise InputError.because(f"--isa {isa} with lines, which say what they are of", "leave it out")
    return _calibrate(lines, output, json)


def _write_programs(folder: Path, isa: str | None, json: bool) -> int:
    with starting():
        from hexconv.build import build
        from hexconv.cli.answers import print_json
        from hexconv.cli.wanted_model import Code
        from hexconv.run.tensors import random_tensors
        from hexconv.search.calibration import first_run

    check_folder("--programs", folder)
    code = Code.of("hexagon", isa)
    with waiting("building"):
        cases = [(case, random_tensors(case.chain)) for case in first_run()]
        built = build(cases, folder, "hexagon", code.isa, "fastrpc")
    if json:
        print_json(built)
        return 0
    print(f"{len(built)} plans of one chain for {code.isa}, never run on a device here")
    print(code.project_line(folder))
    print(f"on a device: make -C {folder}/fastrpc push run OPTIONS=--lines > lines.txt; hexconv calibrate lines.txt")
    return 0


def _calibrate(path: Path, output: Path, json: bool) -> int:
    with starting():
        from hexconv.cli.answers import print_json
        from hexconv.search.calibration import calibrate as fitted
        from hexconv.search.calibration import read_lines
        from hexconv.spec.case import read_text
        from hexconv.written import write_file

    check_file("--output", output, ".toml")
    fit = fitted(read_lines(read_text(path), str(path)), path.name)
    write_file(output, fit.machine.to_toml().encode())
    if json:
        print_json({**vars(fit), "file": str(output)})
    else:
        for line in _lines(fit):
            print(line)
        print(f"wrote {output}: hexconv best CASE --machine {output}")
    return 0


def _lines(fit: Fit) -> Iterator[str]:
    """Yield the lines that describe a machine, and how far it is from those that it was fitted to."""
    machine = fit.machine
    yield (
        f"{machine.arch} at {machine.megahertz:g} MHz: {machine.cycles_per_packet:g} cycles a packet on average, "
        f"copies of {machine.bytes_per_cycle:g} bytes a cycle, {machine.bytes_per_packet(1):g} in the time of a packet"
    )
    shares = ", ".join(f"{kind} {share:g}" for kind, share in vars(machine.stalls).items())
    yield f"packets by kind, as shares of the average: {shares}"
    for threads, longer in machine.threads.items():
        yield f"on {threads} threads a packet takes {longer:g} times as long"
    for name, value in machine.told.items():
        yield f"{name.replace('_', ' ')}: {value:g}, which no plan uses"
    for plan in fit.plans:
        apart = 100 * (plan.fitted_cycles / plan.cycles - 1)
        yield f"  {plan.plan}: {plan.cycles:.0f} cycles, by the machine {plan.fitted_cycles:.0f} ({apart:+.1f} %)"
    if fit.unused_lines:
        yield f"{fit.unused_lines} other lines, or of plans whose caches did not lie where they should"
