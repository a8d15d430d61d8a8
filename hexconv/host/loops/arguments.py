"""The arguments of the host kernel."""

from dataclasses import dataclass

from tvm import tirx


@dataclass(frozen=True)
class Arguments:
    """The buffers that the function is called with, in this order."""

    image: tirx.Buffer
    filters: tuple[tirx.Buffer, ...]
    biases: tuple[tirx.Buffer | None, ...]
    slopes: tuple[tirx.Buffer | None, ...]
    output: tirx.Buffer

    @property
    def all(self) -> list[tirx.Buffer]:
        """All arguments, in the order of the function's signature."""
        vectors = [vector for vector in (*self.biases, *self.slopes) if vector is not None]
        return [self.image, *self.filters, *vectors, self.output]
