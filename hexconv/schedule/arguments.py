"""The arguments of a kernel that is written as TIR, which the HVX and the host kernels have in common."""

from dataclasses import dataclass

from tvm import tirx


@dataclass(frozen=True)
class Arguments:
    """The buffers that the function is called with, in this order."""

    image: tirx.Buffer
    filters: tuple[tirx.Buffer, ...]
    biases: tuple[tirx.Buffer | None, ...]
    output: tirx.Buffer

    @property
    def all(self) -> list[tirx.Buffer]:
        """All arguments, in the order of the function's signature."""
        return [self.image, *self.filters, *(bias for bias in self.biases if bias is not None), self.output]
