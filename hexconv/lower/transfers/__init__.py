"""From loops that copy to copies: by the engine, where a plan copies asynchronously, or by the kernel itself."""

from hexconv.lower.transfers.engine import start_copies
from hexconv.lower.transfers.vectors import fill_by_doublewords, move_by_vectors

__all__ = ["fill_by_doublewords", "move_by_vectors", "start_copies"]
