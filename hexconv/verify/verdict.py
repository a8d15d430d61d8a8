"""The verdict on a network, conv by conv and tensor by tensor: each holds, differs, or is not compared."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hexconv.verify.definition import Bounds

Answer = Literal["holds", "differs", "not compared"]
Rule = Literal["run", "sums", "definition", "table", "ONNX Runtime"]
EXIT_CODES: dict[Answer, int] = {"holds": 0, "differs": 1, "not compared": 2}


@dataclass(frozen=True)
class Comparison:
    """Two tensors of one shape, element by element.

    Attributes:
        rule: what the chain is held against. `run`: its run equals numpy in every element. `sums`: numpy's sums, scaled
            and not yet rounded, are those of ONNX's definition in float64, within the error of a float32 scale.
            `definition`: so are its codes. `table`: each entry of a table
            lies within float32's error of the operators that it stands for. `ONNX Runtime`: its element equals numpy's,
            or both lie within float32's error of the definition.
        values: how many elements each tensor has.
        rounded: how many differ, and are proven to be float32's rounding.
        differing: how many differ otherwise.
        largest: the largest difference of an element that differs, in steps of the codes that are compared.
        at: the index of that element in the model's tensor; None where none differs.
        found: this element.
        wanted: what the other tensor has there.
    """

    rule: Rule
    values: int
    rounded: int = 0
    differing: int = 0
    largest: float = 0.0
    at: tuple[int, ...] | None = None
    found: float | None = None
    wanted: float | None = None

    @classmethod
    def of(
        cls, rule: Rule, found: NDArray[Any], wanted: NDArray[Any], allowed: NDArray[np.bool_] | None = None
    ) -> "Comparison":
        """Compare two tensors of one shape.

        Args:
            rule: what is compared.
            found: the one.
            wanted: the other.
            allowed: for each element whether a difference is proven to be rounding; None where none is.

        >>> Comparison.of("run", np.array([1, 2, 3]), np.array([1, 2, 5]))
        Comparison(rule='run', values=3, rounded=0, differing=1, largest=2.0, at=(2,), found=3.0, wanted=5.0)
        """
        if found.shape != wanted.shape:
            raise ValueError(f"tensors of {found.shape} and {wanted.shape}")
        one, other = found.astype(np.float64), wanted.astype(np.float64)
        differs = ~((one == other) | (np.isnan(one) & np.isnan(other)))
        if not differs.any():
            return cls(rule, found.size)
        beyond = differs if allowed is None else differs & ~allowed
        shown = beyond if beyond.any() else differs
        apart = np.where(shown, np.nan_to_num(np.abs(one - other), nan=np.inf, posinf=np.inf), -1)
        at = tuple(int(place) for place in np.unravel_index(int(np.argmax(apart)), found.shape))
        counts = int(np.count_nonzero(differs & ~beyond)), int(np.count_nonzero(beyond))
        return cls(rule, found.size, *counts, float(apart[at]), at, float(one[at]), float(other[at]))

    @classmethod
    def within(cls, rule: Rule, found: NDArray[Any], bounds: Bounds) -> "Comparison":
        """Compare a tensor with a definition; what lies within its bounds is rounding."""
        return cls.of(rule, found, bounds.exact, bounds.contain(found.astype(np.float64)))

    @property
    def holds(self) -> bool:
        """Whether no element differs, other than by float32's rounding."""
        return self.differing == 0


@dataclass(frozen=True)
class ConvVerdict:
    """The verdict on one conv alone, on ONNX Runtime's own input to it.

    Attributes:
        node: the conv's name in the model.
        tensor: the tensor in which it is compared: its first codes, before a table or a curve.
        comparisons: what was compared.
        reasons: what was not compared, and why.
        fused: in how many elements ONNX Runtime, with its optimisations, is further from the definition than float32
            rounds, while its nodes one by one are not: these are then compared.
    """

    node: str
    tensor: str = ""
    comparisons: tuple[Comparison, ...] = ()
    reasons: tuple[str, ...] = ()
    fused: int = 0

    @property
    def answer(self) -> Answer:
        """Whether the conv differs; else whether it was held against its definition."""
        return _of(self.comparisons, any(one.rule == "definition" for one in self.comparisons))


@dataclass(frozen=True)
class ChainVerdict:
    """The verdict on one chain.

    Attributes:
        case: the name of its case.
        convs: the verdicts on its convs, each alone.
        run: its run on the target beside numpy, both on ONNX Runtime's own input; None where it was not run.
        reason: why it was not run; empty where it was.
        kernels: the kernels of its convs, in words.
        pieces: names of the cases that it runs as, one after the other.
        packets: the packets of all pieces on the simulator; None on another target.
        in_network: its result beside ONNX Runtime's in the network, where roundings travel; None where ONNX Runtime
            computed the chain there.
    """

    case: str
    convs: tuple[ConvVerdict, ...] = ()
    run: Comparison | None = None
    reason: str = ""
    kernels: str = ""
    pieces: tuple[str, ...] = ()
    packets: int | None = None
    in_network: Comparison | None = None

    @property
    def answer(self) -> Answer:
        """Whether the run or a conv differs; else whether the chain was run."""
        differing = [conv for conv in self.convs if conv.answer == "differs"]
        return "differs" if differing else _of([self.run] if self.run else [], self.run is not None)


@dataclass(frozen=True)
class OutputVerdict:
    """The verdict on one output of the network, its chains computed by numpy and the rest by ONNX Runtime.

    Attributes:
        name: the name of the tensor.
        answer: `differs` if an element differs and a chain on the way to it does; `not compared` if no chain on the way
            to it was; else it holds, and what differs are roundings that travelled.
        values: how many elements it has.
        differing: how many of them are not ONNX Runtime's.
        largest: the largest absolute difference.
        mean: the mean absolute difference.
        range: ONNX Runtime's largest element minus its smallest.
        top5_same: whether the five largest of each row are the same in the same order, where it has rows of classes.
        optimised_away: how many elements ONNX Runtime itself gives otherwise where it need not give inner tensors.
    """

    name: str
    answer: Answer
    values: int
    differing: int
    largest: float
    mean: float
    range: float
    top5_same: bool | None = None
    optimised_away: int = 0


@dataclass(frozen=True)
class NetworkVerdict:
    """The verdict on a network.

    Attributes:
        model: the name of the model's file.
        target: the target that its chains ran on.
        chains: the verdicts on its chains.
        outputs: the verdicts on the outputs of the model.
        not_taken: the convs that are in no chain, each with the reason.
        outside: how many nodes of each operator lie outside of chains: ONNX Runtime computes them, and they are not
            compared.
        note: what is known of ONNX Runtime on this machine; empty where nothing is.
    """

    model: str
    target: str
    chains: tuple[ChainVerdict, ...]
    outputs: tuple[OutputVerdict, ...]
    not_taken: tuple[tuple[str, str], ...] = ()
    outside: dict[str, int] | None = None
    note: str = ""

    @property
    def answers(self) -> dict[str, dict[Answer, int]]:
        """How many chains, convs and outputs have each answer."""
        convs: list[Answer] = [conv.answer for chain in self.chains for conv in chain.convs]
        others: list[Answer] = ["not compared"] * len(self.not_taken)
        return {
            "chains": _counted(chain.answer for chain in self.chains),
            "convs": _counted([*convs, *others]),
            "outputs": _counted(output.answer for output in self.outputs),
        }

    @property
    def packets(self) -> int | None:
        """The packets of all chains together on the simulator; None on another target."""
        counted = [chain.packets for chain in self.chains if chain.packets is not None]
        return sum(counted) if counted else None

    @property
    def answer(self) -> Answer:
        """`differs` if any chain does; `holds` if any chain was run and none differs."""
        found = {chain.answer for chain in self.chains}
        return "differs" if "differs" in found else "holds" if "holds" in found else "not compared"

    def total(self, rule: Rule) -> Comparison:
        """Sum up the comparisons of all convs by one rule; the element that is shown is the one that is most apart."""
        return together(rule, [one for chain in self.chains for conv in chain.convs for one in conv.comparisons])


def together(rule: Rule, comparisons: Iterable[Comparison]) -> Comparison:
    """Sum up the comparisons by one rule."""
    own = [one for one in comparisons if one.rule == rule]
    worst = max(own, key=lambda one: (one.differing > 0, one.largest), default=Comparison(rule, 0))
    values, rounded, differing = (sum(getattr(one, name) for one in own) for name in ("values", "rounded", "differing"))
    return Comparison(rule, values, rounded, differing, worst.largest, worst.at, worst.found, worst.wanted)


def _of(comparisons: Sequence[Comparison], is_compared: bool) -> Answer:
    if any(not one.holds for one in comparisons):
        return "differs"
    return "holds" if is_compared else "not compared"


def _counted(answers: Iterable[Answer]) -> dict[Answer, int]:
    found = Counter(answers)
    return {answer: found[answer] for answer in EXIT_CODES}
