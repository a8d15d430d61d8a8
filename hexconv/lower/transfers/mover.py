"""Who copies and who fills."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx
from tvm.sym import Analyzer

from hexconv.lower.transfers.run import Fill, Run
from hexconv.schedule.trees import as_one

Filler = Callable[[Fill], tirx.Stmt]


@dataclass(frozen=True)
class Either:
    """Pieces of which the device takes some or the others.

    Attributes:
        condition: whether it takes the former.
        then: the pieces where the condition holds.
        otherwise: the pieces where it doesn't.
    """

    condition: tirx.Expr
    then: "tuple[Piece, ...]"
    otherwise: "tuple[Piece, ...]"


Piece = Run | Fill | Either | tirx.Stmt


@dataclass(frozen=True)
class Mover:
    """Emits the copies and fills of a part.

    Attributes:
        copy: turns a run into a statement.
        fill: turns a fill into a statement.
        ranges: the ranges of the loops around the part.
        has_alternatives: whether rows that may lie side by side, or of which there may be one alone, have code of their
            own for that case, in which they are joined.
    """

    copy: Callable[[Run], tirx.Stmt]
    fill: Filler
    ranges: Analyzer
    has_alternatives: bool = False

    def statement(self, piece: Piece) -> tirx.Stmt:
        """Return the statement for a piece that gets no longer."""
        if isinstance(piece, Run):
            return self.copy(piece)
        if isinstance(piece, Either):
            then, otherwise = (as_one([*map(self.statement, pieces)]) for pieces in (piece.then, piece.otherwise))
            return tirx.IfThenElse(piece.condition, then, otherwise)
        return self.fill(piece) if isinstance(piece, Fill) else piece
