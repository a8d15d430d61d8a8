"""The share of a tensor that each step makes, where every row is made once: the closed form of streaming stripes.

Rows are what the nest counts: single rows, or in a nest of blocks slabs of 8 rows. The stripes are the steps of one
conv, g rows apart. Each of its steps reads its source as far as the step reaches, so each makes g times the stride rows
of the source, which are new: in one step, or in several, where the nest makes so many rows at a time alone. The first
step may need more; steps before it, which run in, make these.

A ring holds the rows that a step of its reader reads, or the rows of its own step if those are more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hexconv.analyze.exact import ceil_divide
from hexconv.spec import Conv2d


@dataclass(frozen=True)
class Share:
    """The rows of a tensor that each step makes.

    Attributes:
        apart: the rows from the first one of a step to the first one of the next.
        under: one past the last row that step 0 makes, the first step of stripe 0, if the tensor had no end.
        made: how many new rows a step makes.
        ring: how many rows the ring holds.
        steps: how many steps there are in a stripe.
    """

    apart: int
    under: int
    made: int
    ring: int
    steps: int = 1

    @property
    def lead(self) -> int:
        """The first row that step 0 makes."""
        return self.under - self.made

    def warm_up(self, ahead: int = 0) -> int:
        """How many stripes run in to make rows of the tensor, `ahead` of those that are read."""
        return ceil_divide(self.lead + ahead, self.apart * self.steps)

    def rows_within(self, first: int, end: int, unit: int = 1) -> int:
        """Count the rows from `first` up to `end` that all steps make; a row of the share is `unit` of these.

        >>> Share(apart=3, under=2, made=2, ring=2).rows_within(0, 9), Share(1, 2, 1, 2).rows_within(5, 60, unit=8)
        (6, 55)
        """

        def before(row: int) -> int:
            steps, rest = divmod(row - self.lead * unit, self.apart * unit)
            return steps * self.made * unit + min(rest, self.made * unit)

        return before(end) - before(first)

    def making_steps(self, rows: int) -> int:
        """Count the steps that make any of the rows below `rows`.

        >>> Share(apart=2, under=3, made=2, ring=3).making_steps(8)
        5
        """
        return ceil_divide(rows - self.lead, self.apart) + ceil_divide(self.under, self.apart) - 1


def shares_of(convs: Sequence[Conv2d], rows: Sequence[int], stripe: int, step: int | None = None) -> tuple[Share, ...]:
    """Return the share of the source of each of some convs, the input first.

    Args:
        convs: the convs up to the one whose steps are the stripes.
        rows: the rows of the source of each.
        stripe: the rows of a stripe.
        step: the rows that an intermediate is made by at a time; None where all that a step reads is made in one. It is
            so too behind a stride that steps over rows.
    """
    share, found, steps_over = Share(stripe, stripe, stripe, 0), list[Share](), False
    for index in reversed(range(len(convs))):
        conv = convs[index]
        steps_over = steps_over or conv.reach[0] < conv.stride[0]
        apart, under = share.apart * conv.stride[0], conv.rows_read(share.under)
        parts = apart // step if step and index and not steps_over else 1
        apart, under = apart // parts, under - (parts - 1) * (apart // parts)
        made = min(apart, under)
        ring = min(max(made, conv.rows_read(share.made)), rows[index])
        share = Share(apart, under, made, ring, share.steps * parts)
        found.insert(0, share)
    return tuple(found)


def ahead_of(convs: Sequence[Conv2d], share: Share, rows: int) -> int:
    """Count the rows of the input that its ring holds beyond those that are read, if it is read ahead.

    There are none where a stride steps over rows: the next rows to read then aren't those that follow.

    Args:
        convs: the convs up to the one whose steps are the stripes.
        share: that of the input.
        rows: the rows of the input.
    """
    steps_over = any(conv.reach[0] < conv.stride[0] for conv in convs)
    return 0 if steps_over else min(share.apart, rows - share.ring)
