"""The chains of a model that can be verified: those of integers, in their places in the graph."""

from dataclasses import dataclass

from hexconv.model import Imported
from hexconv.model.chains import Run


@dataclass(frozen=True)
class Member:
    """A chain of integers in its model.

    Attributes:
        name: of its case.
        index: of it among all chains of the model.
        run: where it is.
        replaces: whether its result is a tensor of the model, of the same dtype.
    """

    name: str
    index: int
    run: Run
    replaces: bool

    @property
    def source(self) -> str:
        """The tensor that it reads."""
        return self.run.units[0].source

    @property
    def result(self) -> str:
        """The tensor that it writes."""
        return self.run.units[-1].result

    @property
    def comparable(self) -> int:
        """Convs whose results are tensors of the model: all, or all but the last."""
        return len(self.run.units) - (not self.replaces)

    @property
    def tensors(self) -> tuple[str, ...]:
        """All that is to be tapped."""
        units = self.run.units
        return (*(unit.source for unit in units), *(unit.result for unit in units[: self.comparable]))


def members_of(imported: Imported) -> tuple[tuple[Member, ...], tuple[tuple[str, str], ...]]:
    """Chains of integers, and why each of the others, and each conv in no chain, is not verified."""
    members, others = [], [(conv.node, conv.reason) for conv in imported.network.not_taken]
    for index, (case, run) in enumerate(zip(imported.cases, imported.runs, strict=True)):
        if not case.chain.is_integer:
            others.append((case.name, f"{case.chain.dtype}: ONNX Runtime fuses across tensors that aren't quantised"))
            continue
        written = imported.graph.type_of(run.units[-1].result).dtype
        replaces = written == case.chain.output_dtype(len(case.chain.conv) - 1)
        members.append(Member(case.name, index, run, replaces))
    return tuple(members), tuple(others)
