"""The rows of every tensor that a stripe computes, as closed forms of the stripe's number.

All functions take Python integers (sizes) or TIR expressions (loop bounds). A stripe is `stripe_rows` rows of the
chain's output; the stripes of one `Rows` go over its rows `first .. last - 1`, and roll: no row is computed twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tvm import tirx

from hexconv.schedule.block import Number, int32


def smaller(one: Number, other: Number) -> Number:
    """Return the lesser of two numbers."""
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else tirx.Min(one, other)


def larger(one: Number, other: Number) -> Number:
    """Return the greater of two numbers."""
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else tirx.Max(one, other)


def only_where(condition: "bool | tirx.Expr", value: Number) -> Number:
    """Return a number where a condition holds, else 0."""
    if isinstance(condition, bool):
        return value if condition else 0
    return tirx.Select(condition, value, int32(0))


class Geometry(Protocol):
    """The geometry of a conv, each field (rows, columns); padding is top, left, bottom, right."""

    @property
    def in_size(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def out_size(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def kernel(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def stride(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def dilation(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def padding(self) -> tuple[int, int, int, int]: ...  # noqa: D102


def reach_of(conv: Geometry) -> int:
    """Return the rows that one row of outputs reads: the dilated kernel."""
    return (conv.kernel[0] - 1) * conv.dilation[0] + 1


def end_read(conv: Geometry, end: Number) -> Number:
    """Return one past the last row that a conv reads for its outputs below row `end`, bottom padding included."""
    return (end - 1) * conv.stride[0] + (reach_of(conv) - conv.padding[0])


Conv = TypeVar("Conv", bound=Geometry)


@dataclass(frozen=True)
class Rows(Generic[Conv]):
    """Rows of the tensors of a chain; tensor 0 is the input, tensor i what conv i makes.

    Attributes:
        stages: the convs.
        stripe_rows: rows of the output in a stripe.
        first: the first row of the output.
        last: one past the last row of the output; None for all rows.
        behind: rows of the last intermediate that the first stripe makes after those that it reads; later stripes don't
            make them again.
    """

    stages: Sequence[Conv]
    stripe_rows: int
    first: int = 0
    last: int | None = None
    behind: int = 0

    @property
    def stripes(self) -> int:
        """The number of stripes."""
        return (self._last - self.first + self.stripe_rows - 1) // self.stripe_rows

    @property
    def _last(self) -> int:
        return self.height(len(self.stages)) if self.last is None else self.last

    def height(self, tensor: int) -> int:
        """Logical rows of a tensor."""
        return self.stages[tensor - 1].out_size[0] if tensor else self.stages[0].in_size[0]

    def end(self, tensor: int, stripe: Number) -> Number:
        """One past the last row that exists after `stripe`."""
        if tensor == len(self.stages):
            return larger(smaller(self.wanted_end(tensor, stripe), self._last), 0)
        made = larger(smaller(self.wanted_end(tensor, stripe), self.height(tensor)), 0)
        return max(made, self.end(tensor, 0)) if self._makes_behind(tensor) and stripe else made

    def begin(self, tensor: int, stripe: Number) -> Number:
        """The first row that `stripe` itself computes: what the stripe before has ended with, or what is read first.

        The two differ where a stride steps over rows, which are never computed, and in the first stripe.
        """
        start = self.first if tensor == len(self.stages) else 0
        if isinstance(stripe, int):
            ended = self.end(tensor, stripe - 1) if stripe else start
        else:
            ended = tirx.Select(stripe > 0, self.end(tensor, stripe - 1), tirx.IntImm("int32", start))
        return ended if tensor == len(self.stages) else larger(ended, self.base(tensor, stripe))

    def wanted_end(self, tensor: int, stripe: Number) -> Number:
        """One past the last row that the next conv reads in `stripe`, bottom padding included."""
        if tensor == len(self.stages):
            return (stripe + 1) * self.stripe_rows + self.first
        end = end_read(self.stages[tensor], self.end(tensor + 1, stripe))
        return end + self.behind if self._makes_behind(tensor) and not stripe else end

    def _makes_behind(self, tensor: int) -> bool:
        """Whether the first stripe makes more rows of a tensor than it reads. Stripes are numbers then, not loops."""
        return self.behind > 0 and tensor == len(self.stages) - 1

    def base(self, tensor: int, stripe: Number) -> Number:
        """The first row that the next conv reads in `stripe` (negative in the top padding): row 0 of the cache."""
        reader = self.stages[tensor]
        return self.begin(tensor + 1, stripe) * reader.stride[0] - reader.padding[0]

    def kept(self, tensor: int, stripe: Number) -> Number:
        """How many rows the stripe before has left in the cache that this one reads again.

        While no row exists yet the stripe before has read padding alone, perhaps not as far as this one reads.
        """
        exist = self.end(tensor, stripe - 1)
        again = larger(exist - self.base(tensor, stripe), 0)
        return only_where(exist > 0, again) if self._starts_in_padding(tensor) else again

    def _starts_in_padding(self, tensor: int) -> bool:
        """Whether a stripe reads no further than some row of the top padding."""
        return any(self.wanted_end(tensor, stripe) < 0 for stripe in range(self.stripes))

    def cache_rows(self, tensor: int) -> int:
        """Rows of a tensor's cache: the most that a stripe reads."""
        sizes = [self.wanted_end(tensor, stripe) - self.base(tensor, stripe) for stripe in range(self.stripes)]
        return max(max(sizes), 1)

    def has_bottom_padding(self, tensor: int) -> bool:
        """Whether some stripe reads rows past the last one."""
        return any(self.wanted_end(tensor, stripe) > self.height(tensor) for stripe in range(self.stripes))
