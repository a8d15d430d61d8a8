"""Find the rows that each step makes of every tensor, where stripes stream (`hexconv.schedule.stream`).

Rows are what the nest counts: single rows, or in a nest of blocks slabs of 8 rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.spec import Conv2d


@dataclass(frozen=True)
class Stream:
    """The blocks and loops that make one tensor: an intermediate, or the input that is read.

    Attributes:
        blocks: the names of the blocks that make it.
        filter_block: the name of the block that stages the conv's filter in each tile, if one does.
        conv: the conv that makes the tensor, None for the input.
        buffer: the name of the tensor's buffer.
        ho: the loop over the rows that a step makes.
        loop_name: the name of that loop.
        all_rows: the rows of the whole tensor.
        ho_outer: the loop over the steps of an intermediate in one step of its reader, None for the input.
        step_rows: the rows of a step; None where all that a step of the reader needs is made in one.
        band: the rows that a thread makes: the first, and one past the last; None where one thread makes all.
    """

    blocks: tuple[str, ...]
    filter_block: str | None
    conv: Conv2d | None
    buffer: str
    ho: tirx.Var
    loop_name: str
    all_rows: int
    ho_outer: tirx.Var | None = None
    step_rows: int | None = None
    band: tuple[tirx.Expr, tirx.Expr] | None = None


@dataclass(frozen=True)
class Share:
    """The rows of a tensor that each step makes.

    Attributes:
        of: the blocks and loops that make the tensor.
        parts: how many steps make what one step of the reader needs.
        steps: how many steps there are in a stripe.
        number: the number of a step; the first one of stripe 0 is step 0.
        apart: the rows from the first one of a step to the first one of the next.
        rows: how many rows a step makes.
        lead: the first row that step 0 makes.
        ring_rows: how many rows the ring holds.
        ahead_rows: how many of the ring's rows are read ahead.
    """

    of: Stream
    parts: int
    steps: int
    number: tirx.Expr
    apart: int
    rows: int
    lead: int
    ring_rows: int
    ahead_rows: int = 0

    @property
    def warm_up(self) -> int:
        """How many stripes run in before stripe 0 to make rows of the tensor."""
        return -(-self.lead // (self.apart * self.steps))

    @property
    def is_made_early(self) -> bool:
        """Whether all rows are made, or may be, by stripes that run in."""
        return self.of.conv is None or self.lead >= self.of.all_rows

    @property
    def first(self) -> tirx.Expr:
        """The first row that a step makes; it is below 0 where the step makes none."""
        return self.number * self.apart + self.lead


@dataclass(frozen=True)
class Output:
    """The conv whose steps are the stripes: the last one that takes more than one step.

    Attributes:
        blocks: the names of the blocks that run where a stripe makes output: the conv's, and the copy's if it is the
            last conv of the chain.
        filter_block: the name of the block that stages the conv's filter in each tile, if one does.
        conv: the conv.
        ho_outer: the loop over stripes.
        stripe_rows: the rows of one stripe.
        band: the rows of its output that a thread makes; None where one thread makes all.
    """

    blocks: tuple[str, ...]
    filter_block: str | None
    conv: Conv2d
    ho_outer: tirx.Var
    stripe_rows: int
    band: tuple[tirx.Expr, tirx.Expr] | None = None


def rings_of(shares: Sequence[Share]) -> dict[str, int]:
    """Return the rows that the ring of every tensor has, by the name of its buffer."""
    return {share.of.buffer: share.ring_rows for share in shares}


def shares_of(output: Output, tensors: Sequence[Stream], is_ahead: bool) -> list[Share]:
    """Return the share of every tensor that a step makes, from the end of the chain to its input."""
    shares: list[Share] = []
    reader, apart, under, made = output.conv, output.stripe_rows, output.stripe_rows, output.stripe_rows
    steps, number, steps_over = 1, output.ho_outer, False
    for tensor in tensors:
        apart, under = apart * reader.stride[0], reader.rows_read(under)
        parts = apart // tensor.step_rows if tensor.step_rows else 1
        apart, steps = apart // parts, steps * parts
        number = number * parts + tensor.ho_outer if parts > 1 else number
        under -= (parts - 1) * apart
        read, made = reader.rows_read(made), min(apart, under)
        steps_over = steps_over or reader.reach[0] < reader.stride[0]
        ring, lead = min(max(made, read), tensor.all_rows), under - made
        if tensor.conv is None:
            ahead = min(apart, tensor.all_rows - ring) if is_ahead and not steps_over else 0
            shares.append(Share(tensor, parts, steps, number, apart, made, lead + ahead, ring + ahead, ahead))
            return shares
        shares.append(Share(tensor, parts, steps, number, apart, made, lead, ring))
        reader = tensor.conv
    raise AssertionError("the input, which no conv makes, comes last")
