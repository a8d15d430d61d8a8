"""What the matrix engine did in a run: its packets, and operands that a device would refuse."""

from dataclasses import dataclass
from typing import Any

from hexconv.errors import RunFailed
from hexconv.kernel.engine import LINE_BYTES, EnginePackets


@dataclass(frozen=True)
class EngineCounts:
    """What was counted of the matrix engine.

    Attributes:
        packets: its packets, by kind.
        placed_bytes: the most VTCM in use at a time where no cache that fits into a line of 256 KiB lies in two.
    """

    packets: EnginePackets
    placed_bytes: int


def engine_counts(engine: Any, vtcm_bytes: int) -> EngineCounts | None:
    """Read what a run counted, and check what a device would refuse; None where the engine did nothing.

    Args:
        engine: the structure of the harness.
        vtcm_bytes: the VTCM that there is.

    Raises:
        RunFailed: an operand lies outside of VTCM, isn't aligned, or lies in two lines; there is too little VTCM;
            or a thread issued packets without holding the engine.
    """
    kinds = ("multiplies", "taps", "stores", "table_loads", "clears")
    packets = EnginePackets(*(int(engine[kind]) for kind in kinds))
    if not packets.clears:
        return None
    placed = int(engine["placed_bytes"])
    if misplaced := int(engine["misplaced"]):
        raise RunFailed(f"{misplaced} operands of the matrix engine lie outside of VTCM, or where no crouton begins")
    if unlocked := int(engine["unlocked"]):
        raise RunFailed(f"threads issued {unlocked} packets to the matrix engine that another thread may hold")
    if crossings := int(engine["crossings"]):
        raise RunFailed(
            f"{crossings} operands of the matrix engine lie on both sides of a line of {LINE_BYTES} bytes of VTCM, "
            "where a device faults; use lower stripes, fewer channels a tile, or rings"
        )
    if placed > vtcm_bytes:
        raise RunFailed(
            f"caches that keep clear of lines of {LINE_BYTES} bytes take {placed} bytes of VTCM, "
            f"{placed - vtcm_bytes} more than the {vtcm_bytes} that there are; use smaller caches"
        )
    return EngineCounts(packets, placed)
