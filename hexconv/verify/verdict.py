"""The verdict on a verified network: on each of its convs, chains and outputs."""

from dataclasses import dataclass

from hexconv.verify.difference import MOST, Difference, together
from hexconv.verify.moved import Moved


@dataclass(frozen=True)
class ConvVerdict:
    """The verdict on one conv alone: numpy's answer on ONNX Runtime's own input to it, beside ONNX Runtime's answer.

    Attributes:
        node: the conv's name in the model.
        dtype: the dtype of its activations.
        against_runtime: how far numpy's answer is from ONNX Runtime's.
        not_float32: how many of ONNX Runtime's values are not its sums scaled and rounded in float32.
        moved: the sums that float32 moves to another result, in the channels where values differ; None without any.
    """

    node: str
    dtype: str
    against_runtime: Difference
    not_float32: int
    moved: Moved | None = None

    @property
    def holds(self) -> bool:
        """Whether its difference stays within the limit for one conv."""
        return not self.against_runtime.exceeds(MOST[self.dtype].one)


@dataclass(frozen=True)
class ChainVerdict:
    """The verdict on one chain.

    Attributes:
        case: the name of its case.
        kernels: the kernels of its convs, in words.
        pieces: names of the cases that it runs as, one after the other.
        packets: the packets of all pieces on the simulator; None on another target.
        against_numpy: how far its run is from numpy's answer on the same input.
        against_runtime: how far the run on ONNX Runtime's own input is from ONNX Runtime's result; None where the
            model has no integer tensor for that result.
        convs: the verdicts on its convs, each alone.
        in_network: how far its result in the network, where errors travel, is from ONNX Runtime's; None where the
            chain's result replaces no tensor of the model.
        reason: why the chain could not be planned or run; empty where it could.
    """

    case: str
    kernels: str = ""
    pieces: tuple[str, ...] = ()
    packets: int | None = None
    against_numpy: Difference | None = None
    against_runtime: Difference | None = None
    convs: tuple[ConvVerdict, ...] = ()
    in_network: Difference | None = None
    reason: str = ""

    @property
    def holds(self) -> bool:
        """Whether the chain was run, equals numpy, and each of its convs stays within the limit for one conv."""
        ran = self.against_numpy is not None and self.against_numpy.is_none
        return ran and all(conv.holds for conv in self.convs)


@dataclass(frozen=True)
class OutputVerdict:
    """The verdict on one output of the network, whose chains replace ONNX Runtime's results, beside ONNX Runtime's.

    Attributes:
        name: the name of the tensor.
        values: how many elements it has.
        differing: how many of them are not equal.
        largest: the largest absolute difference.
        mean: the mean absolute difference.
        range: ONNX Runtime's largest value minus its smallest.
        top5_same: whether the five largest of each row are the same in the same order, where it has rows of classes.
    """

    name: str
    values: int
    differing: int
    largest: float
    mean: float
    range: float
    top5_same: bool | None = None


@dataclass(frozen=True)
class NetworkVerdict:
    """The verdict on a network.

    Attributes:
        model: the name of the model's file.
        target: the target that its chains ran on.
        chains: the verdicts on its integer chains.
        outputs: the verdicts on the outputs of the model.
        not_verified: the chains and convs that are not verified, each with the reason.
        cause: why ONNX Runtime's values may not be its integer sums, scaled; empty where they are.
    """

    model: str
    target: str
    chains: tuple[ChainVerdict, ...]
    outputs: tuple[OutputVerdict, ...]
    not_verified: tuple[tuple[str, str], ...] = ()
    cause: str = ""

    @property
    def convs_alone(self) -> Difference:
        """How far all convs together are from ONNX Runtime, each computed alone."""
        return together([conv.against_runtime for chain in self.chains for conv in chain.convs])

    @property
    def most_together(self) -> int:
        """How many values in a million of all convs may differ: the limit of the dtype that has the highest."""
        convs = [conv for chain in self.chains for conv in chain.convs]
        return max((MOST[conv.dtype].together for conv in convs), default=0)

    @property
    def packets(self) -> int | None:
        """The packets of all chains together on the simulator; None on another target."""
        counted = [chain.packets for chain in self.chains if chain.packets is not None]
        return sum(counted) if counted else None

    @property
    def holds(self) -> bool:
        """Whether every chain holds, and all convs together stay within their limit."""
        return all(chain.holds for chain in self.chains) and not self.convs_alone.exceeds(self.most_together)
