"""Turn loops that copy into copies by the engine, where a plan copies asynchronously, or by the kernel itself."""

from hexconv.lower.transfers.engine import start_copies
from hexconv.lower.transfers.fringe import without_fringe
from hexconv.lower.transfers.vectors import fill_by_vectors, move_by_vectors

__all__ = ["fill_by_vectors", "move_by_vectors", "start_copies", "without_fringe"]
