"""Which rows of every tensor a stripe computes, as closed forms of the stripe's number.

All work for Python integers (sizes) and for TIR expressions (loop bounds). A stripe is `stripe_rows` rows of
the chain's output.
"""

from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.hvx.block import Number
from hexconv.schedule.hvx.stage import Stage


def smaller(one: Number, other: Number) -> Number:
    """The lesser of two."""
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else tirx.Min(one, other)


def larger(one: Number, other: Number) -> Number:
    """The greater of two."""
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else tirx.Max(one, other)


@dataclass(frozen=True)
class Rows:
    """Rows of the tensors of a chain; tensor 0 is the input, tensor i what conv i makes."""

    stages: tuple[Stage, ...]
    stripe_rows: int

    @property
    def stripes(self) -> int:
        """In an image."""
        return -(-self.height(len(self.stages)) // self.stripe_rows)

    def height(self, tensor: int) -> int:
        """Logical rows of a tensor."""
        return self.stages[tensor - 1].out_size[0] if tensor else self.stages[0].in_size[0]

    def end(self, tensor: int, stripe: Number) -> Number:
        """One past the last row that exists after `stripe`."""
        return larger(smaller(self.wanted_end(tensor, stripe), self.height(tensor)), 0)

    def begin(self, tensor: int, stripe: Number) -> Number:
        """The first row that `stripe` itself computes: what the stripe before has ended with, or what is read first.

        The two differ where a stride steps over rows; those are never computed.
        """
        if isinstance(stripe, int):
            ended = self.end(tensor, stripe - 1) if stripe else 0
        else:
            ended = tirx.Select(stripe > 0, self.end(tensor, stripe - 1), tirx.IntImm("int32", 0))
        return ended if tensor == len(self.stages) else larger(ended, self.base(tensor, stripe))

    def wanted_end(self, tensor: int, stripe: Number) -> Number:
        """One past the last row that the next conv reads in `stripe`, bottom padding included."""
        if tensor == len(self.stages):
            return (stripe + 1) * self.stripe_rows
        reader = self.stages[tensor]
        reach = (reader.kernel[0] - 1) * reader.dilation[0] + 1
        return (self.end(tensor + 1, stripe) - 1) * reader.stride[0] + (reach - reader.padding[0])

    def base(self, tensor: int, stripe: Number) -> Number:
        """The first row that the next conv reads in `stripe` (negative in the top padding): row 0 of the cache."""
        reader = self.stages[tensor]
        return self.begin(tensor + 1, stripe) * reader.stride[0] - reader.padding[0]

    def cache_rows(self, tensor: int) -> int:
        """Rows of a tensor's cache: the most that a stripe reads."""
        sizes = [self.wanted_end(tensor, stripe) - self.base(tensor, stripe) for stripe in range(self.stripes)]
        return max(max(sizes), 1)

    def has_bottom_padding(self, tensor: int) -> bool:
        """Whether some stripe reads rows past the last one."""
        return any(self.wanted_end(tensor, stripe) > self.height(tensor) for stripe in range(self.stripes))
