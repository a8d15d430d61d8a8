"""The chains of a model among its nodes: what has to be made for its outputs, and who makes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hexconv.model.chains import Run
from hexconv.model.graph import Graph, Node
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


def makers(
    graph: Graph, chains: Mapping[str, Member], inputs: Sequence[str], outputs: Sequence[str]
) -> dict[str, Node | None]:
    """All tensors that have to be made, each with the node that does; None where a chain or the caller does.

    Args:
        graph: of the model.
        chains: by the tensor that each writes.
        inputs: names of the tensors that the model reads.
        outputs: of those that it gives back.
    """
    waiting, found = list(outputs), dict[str, Node | None]()
    while waiting:
        name = waiting.pop()
        if not name or name in found or graph.is_constant(name):
            continue
        if name in chains:
            found[name] = None
            waiting.append(chains[name].run.units[0].source)
            continue
        maker = None if name in inputs else graph.maker(name)
        found[name] = maker
        waiting += [*maker.inputs, *maker.captured] if maker else []
    return found
