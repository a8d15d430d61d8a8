"""Show how many packets the plans that the model ranks best took on the simulator."""

from collections.abc import Iterator

from rich.table import Table

from hexconv.report.headed import headed
from hexconv.report.words import plan_name
from hexconv.search.laps import CUT, DEFAULT, Lap, Race

NAMES = {DEFAULT: "default", CUT: "best cut"}


def race_table(race: Race) -> Table:
    """Return the table of all plans that were run, the fastest first."""
    table = headed("run on the simulator; packets", ("", "plan"), ("packets", "packets (model)", "model off by"))
    for lap in race.laps:
        name = "fastest" if lap is race.fastest else NAMES.get(lap.contender.kind, "")
        packets = "not run" if lap.packets is None else str(lap.packets)
        off = "" if lap.model_error is None else f"{100 * lap.model_error:+.1f} %"
        table.add_row(name, _plans(lap), packets, f"{lap.contender.model_packets:.0f}", off)
    return table


def _plans(lap: Lap) -> str:
    """Return the short names of the plans of all pieces of a contender."""
    plans = " | ".join(plan_name(case.plan) for case in lap.contender.cases)
    return f"{plans} (default)" if lap.contender.kind == DEFAULT else plans


def race_lines(race: Race) -> Iterator[str]:
    """Yield lines on the race: plans that were not run, the fastest plan, and a run without a plan."""
    for lap in race.laps:
        if lap.packets is None:
            yield f"{_plans(lap)} was not run, the model decides without it: {lap.said}"
    if race.fastest is None or race.fastest.packets is None:
        return
    ran = sum(lap.packets is not None for lap in race.laps)
    kind = "the best cut" if race.fastest.contender.kind == CUT else "the whole chain as one"
    yield f"the answer is the fastest of {ran} that were run, {kind}: {race.fastest.packets} packets, counted"
    default = race.default
    if default and default.packets is not None:
        times = default.packets / race.fastest.packets
        yield f"without a plan a run takes {default.packets} packets, {times:.3f} times as many"
    elif default is None:
        yield "what a run takes without a plan doesn't fit"
