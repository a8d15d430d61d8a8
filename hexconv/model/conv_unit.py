"""A conv of a model with all nodes that fold into it, and its weights after folding."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hexconv.model.constants import Array
from hexconv.model.graph import Graph, Node
from hexconv.spec import Chain, Conv2d
from hexconv.spec.addition import Add
from hexconv.spec.chain import PIXELS
from hexconv.spec.dtypes import Dtype
from hexconv.spec.names import INPUT, conv_name


@dataclass(frozen=True)
class Folded:
    """The weights of a conv as a chain has them.

    Attributes:
        filter: the filter, OIHW, in the dtype of the chain's filters.
        bias: the bias, [K], in the dtype of the accumulator; None if there is none.
        vectors: `multiplier` and `shift` where its requantisation has one a channel.
    """

    filter: Array
    bias: Array | None
    vectors: Mapping[str, Array] = field(default_factory=dict)


class Weights(Protocol):
    """A recipe for the weights of a conv, which are made only when they are asked for."""

    def folded(self, graph: Graph) -> Folded:
        """Make the weights.

        Raises:
            Refused: a constant can't be read or computed.
        """
        ...


@dataclass(frozen=True)
class Inexact:
    """Something by which a conv's results are other than the model's, apart from rounding.

    Attributes:
        what: the cause, as a note says it.
        off_steps: by how much more than half a step of the output a result may be away from the exact one; None where
            the results are sums.
        looked_up_steps: the same of the codes that a table looks up, in their steps; None without such a table.
    """

    what: str
    off_steps: float | None
    looked_up_steps: float | None = None

    def off(self, is_looked_up: bool) -> float:
        """By how much results may be away, or the codes that a table looks up, where there is one."""
        steps = self.looked_up_steps if is_looked_up and self.looked_up_steps is not None else self.off_steps
        return steps or 0.0


@dataclass(frozen=True)
class Joined:
    """An Add of codes in a conv's epilogue.

    Attributes:
        other: the tensor that is added.
        other_zero_point: its zero point.
        use: the nodes by which that tensor is read.
        result: the tensor that the sum is.
        scales: of the conv's own codes, of the other tensor's, and of the sum's.
        zero_point: the zero point of the sum.
        clamp: the least and the most code of the sum; None where it may be any.
    """

    other: str
    other_zero_point: int
    use: tuple[Node, ...]
    result: str
    scales: tuple[float, float, float]
    zero_point: int
    clamp: tuple[int, int] | None

    def add(self, tensor: int) -> Add:
        """The Add as a case states it; `tensor` is the number of the other tensor in its chain."""
        name = conv_name(tensor) if tensor else INPUT
        return Add(from_=name, scales=self.scales, zero_point=self.zero_point, clamp=self.clamp)


@dataclass(frozen=True)
class Unit:
    """One conv with the nodes before and behind it that a chain can do in the same step.

    Attributes:
        node: the node of the conv.
        entry: the nodes from `source` to the conv, the conv last; those before it fold into it.
        source: the tensor that the first of these nodes reads.
        result: the tensor that it writes, behind all nodes that fold into it.
        shape: the logical NHWC shape of the source.
        dtype: the dtype of the source.
        filter_dtype: the dtype of the filter.
        zero_point: the zero point of the source.
        conv: the conv as a case states it.
        weights: the recipe for its weights.
        inexact: what makes its results other than the model's.
        unfolded: why a QuantizeLinear that is there does not fold into it; empty where it does, or there is none.
        notes: what else a user should know of how it is read.
        joined: the Add in its epilogue, if the chain that it is in has the other tensor.
    """

    node: Node
    entry: tuple[Node, ...]
    source: str
    result: str
    shape: tuple[int, int, int, int]
    dtype: Dtype
    filter_dtype: Dtype
    zero_point: int
    conv: Conv2d
    weights: Weights
    inexact: tuple[Inexact, ...] = ()
    unfolded: str = ""
    notes: tuple[str, ...] = ()
    joined: Joined | None = None

    @property
    def written(self) -> str:
        """The tensor that it writes, with what is added to it."""
        return self.joined.result if self.joined else self.result

    @property
    def alone(self) -> Chain:
        """The chain of this conv alone."""
        return self.chain((self.conv,))

    def chain(self, convs: tuple[Conv2d, ...]) -> Chain:
        """The chain of these convs that reads this conv's source; another chain or an operator reads its output."""
        return Chain(
            input=self.shape,
            dtype=self.dtype,
            filter_dtype=self.filter_dtype,
            zero_point=self.zero_point,
            output_layout=PIXELS,
            conv=convs,
        )
