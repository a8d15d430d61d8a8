"""Find the rows that each stripe makes of every tensor, where stripes stream (`hexconv.schedule.stream`)."""

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
        ho: the loop over the rows that a stripe makes.
        loop_name: the name of that loop.
        all_rows: the rows of the whole tensor.
        band: the rows that a thread makes: the first, and one past the last; None where one thread makes all.
    """

    blocks: tuple[str, ...]
    filter_block: str | None
    conv: Conv2d | None
    buffer: str
    ho: tirx.Var
    loop_name: str
    all_rows: int
    band: tuple[tirx.Expr, tirx.Expr] | None = None


@dataclass(frozen=True)
class Share:
    """The rows of a tensor that each stripe makes.

    Attributes:
        of: the blocks and loops that make the tensor.
        apart: the rows from the first one of a stripe to the first one of the next.
        rows: how many rows a stripe makes.
        lead: the first row that stripe 0 makes.
        ring_rows: how many rows the ring holds.
        ahead_rows: how many of the ring's rows are read ahead.
    """

    of: Stream
    apart: int
    rows: int
    lead: int
    ring_rows: int
    ahead_rows: int = 0

    @property
    def warm_up(self) -> int:
        """How many stripes run in before stripe 0 to make rows of the tensor."""
        return -(-self.lead // self.apart)

    def first(self, stripe: tirx.Expr) -> tirx.Expr:
        """Return the first row that a stripe makes; it is below 0 where the stripe makes none."""
        return stripe * self.apart + self.lead


@dataclass(frozen=True)
class Output:
    """The last conv of a chain, and the copy to the output.

    Attributes:
        blocks: the names of the blocks that run where a stripe makes output: the conv's, and the copy's.
        filter_block: the name of the block that stages the conv's filter in each tile, if one does.
        conv: the last conv.
        ho_outer: the loop over stripes.
        stripe_rows: the rows of one stripe.
        band: the rows of the output that a thread makes; None where one thread makes all.
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
    """Return the share of every tensor that a stripe makes, from the end of the chain to its input."""
    shares: list[Share] = []
    reader, apart, under, made = output.conv, output.stripe_rows, output.stripe_rows, output.stripe_rows
    steps_over = False
    for tensor in tensors:
        apart, under = apart * reader.stride[0], reader.rows_read(under)
        read, made = reader.rows_read(made), min(apart, under)
        steps_over = steps_over or reader.reach[0] < reader.stride[0]
        ring = min(max(made, read), tensor.all_rows)
        if tensor.conv is None:
            ahead = min(apart, tensor.all_rows - ring) if is_ahead and not steps_over else 0
            shares.append(Share(tensor, apart, made, under - made + ahead, ring + ahead, ahead))
            return shares
        shares.append(Share(tensor, apart, made, under - made, ring))
        reader = tensor.conv
    raise AssertionError("the input, which no conv makes, comes last")
