"""The rows of every tensor that a stripe of one band computes, as closed forms of the stripe's number.

A stripe is `stripe_rows` rows of the chain's output. The stripes of one `Rows` go over its rows `first .. last - 1`,
and roll: no row is computed twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.host.loops.stage import Stage
from hexconv.schedule.block import Number


def smaller(one: Number, other: Number) -> Number:
    """Return the lesser of two numbers."""
    return min(one, other) if isinstance(one, int) and isinstance(other, int) else tirx.Min(one, other)


def larger(one: Number, other: Number) -> Number:
    """Return the greater of two numbers."""
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else tirx.Max(one, other)


@dataclass(frozen=True)
class Rows:
    """Rows of the tensors of a chain; tensor 0 is the input, tensor i what conv i makes.

    Attributes:
        stages: the convs.
        stripe_rows: rows of the output in a stripe.
        first: the first row of the output.
        last: one past the last row of the output.
        behind: rows of the last intermediate that the first stripe makes after those that it reads; later stripes don't
            make them again.
    """

    stages: Sequence[Stage]
    stripe_rows: int
    first: int
    last: int
    behind: int

    @property
    def stripes(self) -> int:
        """The number of stripes."""
        return (self.last - self.first + self.stripe_rows - 1) // self.stripe_rows

    def end(self, tensor: int, stripe: int) -> int:
        """One past the last row that exists after `stripe`."""
        if tensor == len(self.stages):
            return min(self.wanted_end(tensor, stripe), self.last)
        made = max(min(self.wanted_end(tensor, stripe), self.stages[tensor].in_size[0]), 0)
        return max(made, self.end(tensor, 0)) if self._makes_behind(tensor) and stripe else made

    def begin(self, tensor: int, stripe: int) -> int:
        """The first row that `stripe` itself computes: what the stripe before has ended with, or what is read first.

        The two differ where a stride steps over rows, which are never computed, and in the first stripe.
        """
        if tensor == len(self.stages):
            return self.first + stripe * self.stripe_rows
        return max(self.end(tensor, stripe - 1) if stripe else 0, self.base(tensor, stripe))

    def wanted_end(self, tensor: int, stripe: int) -> int:
        """One past the last row that the next conv reads in `stripe`, bottom padding included."""
        if tensor == len(self.stages):
            return (stripe + 1) * self.stripe_rows + self.first
        end = self.stages[tensor].end_read(self.end(tensor + 1, stripe))
        return end if stripe or not self._makes_behind(tensor) else end + self.behind

    def _makes_behind(self, tensor: int) -> bool:
        """Whether the first stripe makes more rows of a tensor than it reads."""
        return self.behind > 0 and tensor == len(self.stages) - 1

    def base(self, tensor: int, stripe: int) -> int:
        """The first row that the next conv reads in `stripe` (negative in the top padding): row 0 of the cache."""
        return self.stages[tensor].first_read(self.begin(tensor + 1, stripe))

    def cache_rows(self, tensor: int) -> int:
        """Rows of a tensor's cache: the most that a stripe reads."""
        sizes = [self.wanted_end(tensor, stripe) - self.base(tensor, stripe) for stripe in range(self.stripes)]
        return max(1, *sizes)

    def has_bottom_padding(self, tensor: int) -> bool:
        """Whether some stripe reads rows past the last one."""
        height = self.stages[tensor].in_size[0]
        return any(self.wanted_end(tensor, stripe) > height for stripe in range(self.stripes))
