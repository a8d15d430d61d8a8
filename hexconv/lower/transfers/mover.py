"""Who copies and who fills."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx
from tvm.sym import Analyzer

from hexconv.lower.transfers.run import Fill, Run

Filler = Callable[[Fill], tirx.Stmt]
Piece = Run | Fill | tirx.Stmt


@dataclass(frozen=True)
class Mover:
    """Emits the copies and fills of a part.

    Attributes:
        copy: turns a run into a statement.
        fill: turns a fill into a statement.
        ranges: the ranges of the loops around the part.
    """

    copy: Callable[[Run], tirx.Stmt]
    fill: Filler
    ranges: Analyzer

    def statement(self, piece: Piece) -> tirx.Stmt:
        """Return the statement for a piece that gets no longer."""
        if isinstance(piece, Run):
            return self.copy(piece)
        return self.fill(piece) if isinstance(piece, Fill) else piece
