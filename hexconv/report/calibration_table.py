"""Show a calibration: the machine, how far it is from the lines that it was fitted to, and what it left out."""

from collections.abc import Iterator
from dataclasses import asdict

from hexconv.report.rows import CalibrationRow
from hexconv.search.calibration import Fit, Lines


def calibration_row(fit: Fit, lines: Lines, file: str) -> CalibrationRow:
    """Return the JSON of a calibration."""
    plans = [
        {"plan": name, "cycles": measured, "fitted_cycles": fitted} for name, (measured, fitted) in fit.cycles.items()
    ]
    return {"file": file, "machine": fit.machine, "plans": plans, "unused_lines": lines.unused}  # pyright: ignore[reportReturnType]


def calibration_lines(fit: Fit, lines: Lines) -> Iterator[str]:
    """Yield the lines that describe a calibration."""
    machine = fit.machine
    yield (
        f"{machine.arch} at {machine.megahertz:g} MHz: {machine.cycles_per_packet:g} cycles a packet on average, "
        f"copies of {machine.bytes_per_cycle:g} bytes a cycle, {machine.bytes_per_packet(1):g} in the time of a packet"
    )
    shares = ", ".join(f"{kind} {share:g}" for kind, share in asdict(machine.stalls).items())
    yield f"packets by kind, as shares of the average: {shares}"
    for threads, longer in machine.threads.items():
        yield f"on {threads} threads a packet takes {longer:g} times as long"
    for name, value in machine.told.items():
        yield f"{name.replace('_', ' ')}: {value:g}, which no plan uses"
    for name, (measured, fitted) in fit.cycles.items():
        yield f"  {name}: {measured:.0f} cycles, by the machine {fitted:.0f} ({100 * (fitted / measured - 1):+.1f} %)"
    if lines.unused:
        yield f"{lines.unused} other lines, or of plans whose caches did not lie where they should"
