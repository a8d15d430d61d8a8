"""The arguments of the host kernel."""

from dataclasses import dataclass

from tvm import tirx

from hexconv.host.loops import vector
from hexconv.host.loops.stage import Stage
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.activations import PRELU, SLOPE
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import bias_name, filter_name, numbered


@dataclass(frozen=True)
class Arguments:
    """The buffers that the function is called with, in this order."""

    image: tirx.Buffer
    filters: tuple[tirx.Buffer, ...]
    biases: tuple[tirx.Buffer | None, ...]
    slopes: tuple[tirx.Buffer | None, ...]
    output: tirx.Buffer

    @classmethod
    def of(cls, chain: Chain, stages: tuple[Stage, ...]) -> "Arguments":
        """Declare the arguments of a chain."""
        convs = list(enumerate(stages, 1))
        filters = (
            _argument(filter_name(number), stage.out_blocks, stage.in_blocks, *stage.conv.kernel, 8, CHANNEL_BLOCK, 4)
            for number, stage in convs
        )
        biases = (
            _argument(bias_name(number), stage.conv.out_channels) if stage.conv.bias else None
            for number, stage in convs
        )
        slopes = (
            _argument(numbered(SLOPE, number), stage.conv.out_channels) if stage.conv.activation == PRELU else None
            for number, stage in convs
        )
        output = _argument("output", *tensor_extents(chain)[-1].packed_shape)
        return cls(_argument("input", *chain.input), tuple(filters), tuple(biases), tuple(slopes), output)

    @property
    def all(self) -> list[tirx.Buffer]:
        """All arguments, in the order of the function's signature."""
        given = [one for one in (*self.biases, *self.slopes) if one is not None]
        return [self.image, *self.filters, *given, self.output]


def _argument(name: str, *shape: int) -> tirx.Buffer:
    return tirx.decl_buffer(shape, "float32", name, data_alignment=vector.ALIGNMENT_BYTES)
