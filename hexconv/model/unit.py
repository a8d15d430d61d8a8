"""A conv of a model with all that folds into it, and the weights that this leaves it with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hexconv.model.constants import Array
from hexconv.model.graph import Graph, Node
from hexconv.spec import Chain, Conv2d
from hexconv.spec.chain import Dtype


@dataclass(frozen=True)
class Folded:
    """The weights of a conv as a chain has them.

    Attributes:
        filter: OIHW, in the dtype of the chain's filters.
        bias: [K], in its accumulator's dtype, if there is one.
        vectors: `multiplier` and `shift` where its requantisation has one a channel.
    """

    filter: Array
    bias: Array | None
    vectors: Mapping[str, Array] = field(default_factory=dict)


class Weights(Protocol):
    """How to make the weights of a conv, once somebody wants them."""

    def folded(self, graph: Graph) -> Folded:
        """Make them.

        Raises:
            Refused: a constant can't be read or computed.
        """
        ...


@dataclass(frozen=True)
class Unit:
    """One conv with what stands before and behind it that a chain can do in the same step.

    Attributes:
        node: the conv.
        entry: the nodes from `source` to the conv, the conv last; those before it fold into it.
        source: the tensor that it reads.
        result: the tensor that it writes, behind all that is folded.
        shape: logical NHWC of the source.
        dtype: of the source.
        filter_dtype: of the filter.
        zero_point: of the source.
        conv: the conv as a case states it.
        weights: how to make them.
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

    @property
    def alone(self) -> Chain:
        """A chain of this conv and no other."""
        return self.chain((self.conv,))

    def chain(self, convs: tuple[Conv2d, ...]) -> Chain:
        """A chain from this conv's source on."""
        return Chain(
            input=self.shape,
            dtype=self.dtype,
            filter_dtype=self.filter_dtype,
            zero_point=self.zero_point,
            conv=convs,
        )
