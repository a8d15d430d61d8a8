"""Which tensors the outputs of a model need, and which chain or node makes each of them."""

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
    """All tensors that the outputs need, each with the node that makes it; None where a chain or the caller does.

    Args:
        graph: the graph of the model.
        chains: the chains, by the tensor that each writes.
        inputs: names of the tensors that the model reads.
        outputs: names of the tensors that the model gives back.
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
