"""Go through assembly packet by packet."""

from collections.abc import Callable, Iterable, Sequence

Change = Callable[[Sequence[str], str], Iterable[str]]
"""From the lines inside of a packet, and the line that ends it, to the lines that stand in its place."""


def whole(packet: Sequence[str], end: str) -> tuple[str, ...]:
    """Return the lines of a packet, braces included."""
    return ("\t{", *packet, end)


def each_packet(text: str, change: Change) -> str:
    """Return assembly in which every packet is changed; lines between packets stay."""
    changed: list[str] = []
    packet: list[str] | None = None
    for line in text.splitlines():
        if line.strip() == "{":
            packet = []
        elif packet is None:
            changed.append(line)
        elif line.lstrip().startswith("}"):
            changed += change(packet, line)
            packet = None
        else:
            packet.append(line)
    return "\n".join(changed) + "\n"
