"""Show the packets of the hottest loops: how often they ran, and where they stall."""

from dataclasses import dataclass

from hexconv.run.profile import Profile


@dataclass(frozen=True)
class HotPacket:
    """One packet: its instructions, and the cause of its stall, if it stalls."""

    text: str
    stall: str


@dataclass(frozen=True)
class HotView:
    """Packets that ran one after the other.

    Attributes:
        title: how often they ran, and the share of the issue slots that they took.
        packets: the packets, in order.
    """

    title: str
    packets: tuple[HotPacket, ...]


def hot_views(profile: Profile) -> tuple[HotView, ...]:
    """Return the runs of packets that took the most issue slots, the hottest first."""
    every = profile.slots.issue_slots
    return tuple(
        HotView(
            f"{len(hot.packets)} packets, {hot.times:,} times: {hot.slots / every:.0%} of the slots, "
            f"{sum(map(bool, hot.stalls))} stalls each time",
            tuple(HotPacket("; ".join(texts), stall) for texts, stall in zip(hot.packets, hot.stalls, strict=True)),
        )
        for hot in profile.slots.hottest
    )
