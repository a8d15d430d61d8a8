"""A chain of a model as the cases that it runs as."""

from collections.abc import Sequence
from dataclasses import dataclass

from hexconv.model.chains import Run
from hexconv.run.tensors import Tensors
from hexconv.spec import Case

Pieces = Sequence[tuple[Case, Tensors]]


@dataclass(frozen=True)
class Member:
    """A chain of the model, and the cases that it runs as, one after the other."""

    run: Run
    pieces: Pieces

    @property
    def result(self) -> str:
        """The tensor that it writes."""
        return self.run.units[-1].result
