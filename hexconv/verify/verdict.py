"""What came of a network: of each conv, each chain, each output."""

from dataclasses import dataclass

from hexconv.verify.difference import MOST_OF_ONE, MOST_TOGETHER, Difference, together


@dataclass(frozen=True)
class ConvVerdict:
    """One conv alone: numpy's answer on ONNX Runtime's own input to it, beside ONNX Runtime's.

    Attributes:
        node: its name in the model.
        against_runtime: numpy against ONNX Runtime.
        not_float32: values of ONNX Runtime's that are not its sums, scaled and rounded in float32.
    """

    node: str
    against_runtime: Difference
    not_float32: int

    @property
    def holds(self) -> bool:
        """Whether it keeps the limit of one conv."""
        return not self.against_runtime.exceeds(MOST_OF_ONE)


@dataclass(frozen=True)
class ChainVerdict:
    """One chain.

    Attributes:
        case: its name.
        kernels: in words.
        pieces: names of the cases that it runs as, one after the other.
        packets: of all pieces, on the simulator.
        against_numpy: its run against numpy on the same input.
        against_runtime: the run on ONNX Runtime's own input against ONNX Runtime's result; None where the model has
            that in no integer tensor.
        convs: each alone.
        in_network: the result in the network, where errors travel, against ONNX Runtime's; None where it does not
            replace that.
        reason: why it could not be run or planned; empty where it could.
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
        """Whether it was run, equals numpy, and its convs keep the limit of one."""
        ran = self.against_numpy is not None and self.against_numpy.is_none
        return ran and all(conv.holds for conv in self.convs)


@dataclass(frozen=True)
class OutputVerdict:
    """One output of the network, chains' results in the place of ONNX Runtime's, beside ONNX Runtime's.

    Attributes:
        name: of the tensor.
        values: its elements.
        differing: those that are not equal.
        largest: largest absolute difference.
        mean: mean absolute difference.
        range: largest less smallest value of ONNX Runtime's.
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
    """A network.

    Attributes:
        model: name of its file.
        target: where its chains ran.
        chains: those of integers.
        outputs: of the model.
        not_verified: chains and convs that are not, each with the reason.
        cause: why ONNX Runtime's values may not be its sums of integers, scaled; empty where they are.
    """

    model: str
    target: str
    chains: tuple[ChainVerdict, ...]
    outputs: tuple[OutputVerdict, ...]
    not_verified: tuple[tuple[str, str], ...] = ()
    cause: str = ""

    @property
    def convs_alone(self) -> Difference:
        """All convs, each alone, against ONNX Runtime."""
        return together([conv.against_runtime for chain in self.chains for conv in chain.convs])

    @property
    def packets(self) -> int | None:
        """Of all chains, on the simulator."""
        counted = [chain.packets for chain in self.chains if chain.packets is not None]
        return sum(counted) if counted else None

    @property
    def holds(self) -> bool:
        """Whether every chain holds, and all convs together keep their limit."""
        return all(chain.holds for chain in self.chains) and not self.convs_alone.exceeds(MOST_TOGETHER)
