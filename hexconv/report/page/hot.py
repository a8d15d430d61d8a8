"""The packets of an inner loop as they ran: how often, and where they stall."""

from dataclasses import dataclass

from hexconv.run.profile import Profile


@dataclass(frozen=True)
class HotPacket:
    """One packet: its instructions, and why it stalls, if it does."""

    text: str
    stall: str


@dataclass(frozen=True)
class HotView:
    """Packets that ran one behind the other.

    Attributes:
        title: how often they ran, and what part of the slots they took.
        packets: in order.
    """

    title: str
    packets: tuple[HotPacket, ...]


def hot_views(profile: Profile) -> tuple[HotView, ...]:
    """The packets that took most slots, the most first."""
    every = profile.slots.issue_slots
    return tuple(
        HotView(
            f"{len(hot.packets)} packets, {hot.times:,} times: {hot.slots / every:.0%} of the slots, "
            f"{sum(map(bool, hot.stalls))} stalls each time",
            tuple(HotPacket("; ".join(texts), stall) for texts, stall in zip(hot.packets, hot.stalls, strict=True)),
        )
        for hot in profile.slots.hottest
    )
