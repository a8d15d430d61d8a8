"""What limits a kernel: where the issue slots of its run go, and what would save some of them."""

from collections.abc import Iterator
from dataclasses import dataclass

from hexconv.analyze import needed_macs
from hexconv.analyze.planned import planned_work
from hexconv.report.packets import limit
from hexconv.report.plots import Reached
from hexconv.run.profile import Profile
from hexconv.schedule.parts import Does
from hexconv.spec import Case

WORTH_SAYING = 0.05
"""The share of all slots that a use must take to get a line of its own."""


@dataclass(frozen=True)
class Share:
    """A share of a run's slots: what the slots do, their part of all slots, and what would help."""

    what: str
    part: float
    help: str = ""


def reached(case: Case, profile: Profile) -> Reached:
    """Return the point of a run in the roofline plot."""
    moved = sum(planned_work(case.chain, case.settled).traffic_bytes.values())
    return Reached(case.name, needed_macs(case.chain), moved, profile.slots.issue_slots, limit(case.chain))


def shares(case: Case, profile: Profile) -> tuple[Share, ...]:
    """Return the shares of a run's slots, the largest first; together they are all slots.

    Multiplications count the slots that they would take at two in each slot. The other slots of convs are what loads,
    starts and ends of tiles, scaling and stalls cost. The plain kernel multiplies without vectors: all slots of its
    convs are one share.
    """
    slots = profile.marked_slots
    copying = profile.slots_of(Does.READ_INPUT, Does.READ_FILTER, Does.WRITE_OUTPUT)
    convs = profile.slots_of(Does.CONV)
    set_up = slots - copying - convs
    found = [
        Share("copy, or start copies and wait for them", copying / slots, _copies_help(case)),
        Share("set up the kernel", set_up / slots),
    ]
    if case.settled.kernel != "hvx":
        return _sorted([*found, Share("compute convs without vector instructions", convs / slots, _vector_help(case))])
    needed = needed_macs(case.chain) / limit(case.chain)
    done = sum(planned_work(case.chain, case.settled).macs.values()) / limit(case.chain)
    stalls = profile.slots.stall_slots
    found += [
        Share("multiply what the result needs", needed / slots),
        Share("multiply for nothing", max(done - needed, 0) / slots, " ".join(_wasted(case))),
        Share("are stalls", stalls / slots),
        Share("load, start and end sums, and scale", max(convs - done - stalls, 0) / slots),
    ]
    return _sorted(found)


def limit_words(case: Case, profile: Profile) -> str:
    """Return the verdict in a few sentences."""
    every = shares(case, profile)
    told = [f"{share.part:.0%} {share.what}" for share in every if share.part >= WORTH_SAYING]
    first = told[0].replace("% ", "% of the issue slots ", 1)
    helps = [share.help for share in every if share.help and share.part >= WORTH_SAYING]
    return f"{'; '.join([first, *told[1:]])}. {' '.join(helps)}".strip()


def _sorted(found: list[Share]) -> tuple[Share, ...]:
    return tuple(sorted(found, key=lambda share: -share.part))


def _copies_help(case: Case) -> str:
    """Return a sentence on what would take the copies off the thread."""
    if case.settled.buffering == "single":
        return 'buffering = "double" leaves the copies to the engine, and takes more VTCM.'
    return ""


def _vector_help(case: Case) -> str:
    """Return a sentence on why the kernel has no vector instructions."""
    why = next((choice.why for choice in case.kernels if choice.why), "")
    return f"The kernel has no vector instructions{f' ({why})' if why else ''}."


def _wasted(case: Case) -> Iterator[str]:
    """Yield sentences on which multiplications are wasted, and what would avoid them."""
    if case.settled.halo == "recompute" and any(conv.kernel[0] > 1 for conv in case.chain.conv[1:]):
        yield 'halo = "roll" computes no row twice.'
    ragged = [conv.out_channels for conv in case.chain.conv if conv.out_channels % 32 and conv.groups == 1]
    if ragged:
        channels = " and ".join(map(str, dict.fromkeys(ragged)))
        yield f"Lanes stay empty: {channels} channels are no multiple of 32."
