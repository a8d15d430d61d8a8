"""The chains of a model that can be verified: its integer chains, and where each lies in the graph."""

from dataclasses import dataclass

from hexconv.model import Imported
from hexconv.model.chains import Run


@dataclass(frozen=True)
class Member:
    """An integer chain and its place in the model.

    Attributes:
        name: the name of its case.
        index: its number among all chains of the model, from 0 on.
        run: its nodes in the graph.
        replaces: whether the model has the chain's result as a tensor of the same dtype, which the result can replace.
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
        """How many of its convs have results that are tensors of the model: all, or all but the last."""
        return len(self.run.units) - (not self.replaces)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors to read out of ONNX Runtime: what each conv reads, and the results that can be compared."""
        units = self.run.units
        return (*(unit.source for unit in units), *(unit.result for unit in units[: self.comparable]))


def members_of(imported: Imported) -> tuple[tuple[Member, ...], tuple[tuple[str, str], ...]]:
    """List the integer chains; then name each other chain, and each conv in no chain, with why it is not verified."""
    members, others = [], [(conv.node, conv.reason) for conv in imported.network.not_taken]
    for index, (case, run) in enumerate(zip(imported.cases, imported.runs, strict=True)):
        if not case.chain.is_integer:
            others.append((case.name, f"{case.chain.dtype}: ONNX Runtime fuses across tensors that aren't quantised"))
            continue
        written = imported.graph.type_of(run.units[-1].result).dtype
        replaces = written == case.chain.output_dtype(len(case.chain.conv) - 1)
        members.append(Member(case.name, index, run, replaces))
    return tuple(members), tuple(others)
