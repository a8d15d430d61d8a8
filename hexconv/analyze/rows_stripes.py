"""Derive the stripes of a nest of rows from the shapes and the plan alone: which rows of every tensor each has.

The output is made in stripes of `h_split` blocks of 8 rows, or of `rows` rows. A conv that makes r rows of its output,
from row a of the stored tensor on, reads of its source

    rows a * stride .. a * stride + (r - 1) * stride + reach - 1          reach = (kernel - 1) * dilation + 1

or as many of these rows as the source has. These rows are the stripe of the source. A stripe of an intermediate is made
in one step, so r of the conv before is the whole stripe. A cache holds its stripe, at full width.

Rings (`halo = "roll"`, of more than one stripe). A stripe of the output stands for g rows of a tensor, and the first
stripe depends on u rows. With n = min(g, u), stripe t makes those of the rows t * g + u - n .. t * g + u - 1 that
exist. Stripes begin below 0, so that earlier rows are made before the first output, one stripe's share after the other.
A ring holds the rows that n' new rows of its reader read, (n' - 1) * stride + reach, or n if that is more. Double
buffering reads the input one stripe's share earlier, into a ring with as many rows more; it reads nothing earlier where
a stride steps over rows.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil

from hexconv.analyze.shares import Share, ahead_of, shares_of
from hexconv.kernel.bands import RowBands, row_bands
from hexconv.kernel.forms import Forms
from hexconv.kernel.hvx.rows import planned_forms
from hexconv.kernel.turns import makes_anew, turns
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.extents import reads_input_rows
from hexconv.spec.kernels import Kernel
from hexconv.spec.strips import Strips


@dataclass(frozen=True)
class RowStripes:
    """A chain under a plan whose nest is kept in rows; everything else is derived from it.

    Attributes:
        chain: the chain that is computed.
        plan: the plan that it is computed by.
        kernels: the kernel of each conv.
        strips: the strips of columns that the chain is a batch of; None where its rows are whole.
    """

    chain: Chain
    plan: Plan
    kernels: tuple[Kernel, ...]
    strips: Strips | None = None

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def forms(self) -> Forms:
        """The layouts of all tensors and filters."""
        return planned_forms(self.chain, self.plan, self.kernels)

    @cached_property
    def stripe_rows(self) -> tuple[int, ...]:
        """The rows of a stripe of every tensor, those included to which the output's blocks are rounded up.

        >>> from hexconv.spec import Conv2d, Requantize
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
        >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
        >>> RowStripes(chain, Plan(kernel="hvx"), ("hvx", "hvx")).stripe_rows
        (12, 10, 8)
        """
        return self.chain.backwards(
            min(self.plan.stripe_rows, self.output_rows),
            lambda index, rows: min(self.chain.conv[index].rows_read(rows), self.extents[index].rows),
        )

    @property
    def stripes(self) -> int:
        """How many stripes the output is made in."""
        return ceil(self.output_rows / self.plan.stripe_rows)

    @property
    def output_rows(self) -> int:
        """The rows that are written of the output, those of its fringe included."""
        return self.bands.spans[-1].rows

    def makes_blocks(self, index: int) -> bool:
        """Whether conv `index` makes blocks of 8 rows: the output, where its cache lies in them."""
        return self.forms.row_units[index + 1] > 1

    @cached_property
    def bands(self) -> RowBands:
        """The bands of rows that the threads make."""
        return row_bands(self.chain, self.plan)

    @property
    def streams(self) -> bool:
        """Whether stripes make new rows alone, and caches are rings."""
        return self.plan.halo == "roll" and self.stripes > 1

    @cached_property
    def turns(self) -> dict[str, int]:
        """The number of the memory in which a cache takes turns with others, by its name; others are left out."""
        keeps = self.strips is not None and self.strips.keeps
        memories = turns(len(self.chain.conv), self.plan) if makes_anew(self.bands, self.plan, keeps) else ()
        return {name: number for number, names in enumerate(memories) for name in names}

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """For every tensor before the output, the rows that each stripe makes, where stripes stream."""
        rows = [tensor.rows for tensor in self.extents]
        return shares_of(self.chain.conv, rows, self.stripe_rows[-1])

    @property
    def ahead_rows(self) -> int:
        """The rows that a ring of the input holds beyond those that are read: rows that are read ahead.

        There are none where a stride steps over rows, or where padding is all that is read.
        """
        if self.plan.buffering == "single" or not self.streams or not reads_input_rows(self.chain):
            return 0
        return ahead_of(self.chain.conv, self.shares[0], self.extents[0].rows)

    @property
    def warm_up(self) -> int:
        """The stripes that run in: they come before the first one that makes any output."""
        if not self.streams:
            return 0
        return max(share.warm_up(self.rows_ahead(tensor)) for tensor, share in enumerate(self.shares))

    @property
    def run_in(self) -> int:
        """The stripes of the `warm_up` that do more than read the input."""
        shares = self.shares[1:] if self.streams else ()
        return max((share.warm_up() for share in shares), default=0)

    def rows_ahead(self, tensor: int) -> int:
        """Return how many rows of a tensor are made ahead of the rows that are read."""
        return 0 if tensor else self.ahead_rows

    @cached_property
    def cache_rows(self) -> tuple[int, ...]:
        """The rows that the cache of every tensor holds.

        >>> from hexconv.spec import Conv2d, Requantize
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
        >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
        >>> RowStripes(chain, Plan(kernel="hvx", rows=1, order="h_outer", halo="roll"), ("hvx", "hvx")).cache_rows
        (3, 3, 1)
        """
        if not self.streams:
            return self.stripe_rows
        rings = (share.ring + self.rows_ahead(tensor) for tensor, share in enumerate(self.shares))
        return (*rings, self.stripe_rows[-1])
