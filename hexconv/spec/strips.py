"""Strips of columns: a chain computed as a batch of strips of the image, with or without column halo reuse.

A strip is `w_split` blocks of 8 columns of the output, over all rows. Where `column_halo = "recompute"`, what it reads
is made anew for each strip, so the columns that two strips share are recomputed. A conv that makes c columns of its
output reads, of its source,

    (c - 1) * stride + reach columns        reach = (kernel - 1) * dilation + 1

Where convs pad columns, a strip may begin left of the image or end right of it. What it makes there of a tensor is
padding for the conv that reads it (`Strips.valid_columns`).

Strip s begins at column min(s * width, columns - width): the last one begins early, so that all are equally wide. The
columns that it shares with the strip before it are made twice, and written once. Strips of one image follow each other,
so filters that are staged once serve all of them.

Where `column_halo = "keep"`, no column of an intermediate is made twice (`hexconv.spec.strips`): strips go from right
to left, and the first one may end right of the output.

Strips go from right to left. A strip makes the same number of columns of a tensor as every other one, n = the columns
of the output in a strip times the strides in between, and finds right of them those that the strip before it has left:

    stored:  [ n columns that the strip makes | k columns that the strip to the right has made ]      k = reach - stride

So a conv reads its source from the first stored column on, wherever its strip stands, and its nest is that of a chain
whose intermediates have k columns of padding on the right (`KeptChain`). A row that has been made takes its last k
columns from a cache of its own and then leaves its first k there, in the same place. That cache has all rows: strips
come one after the other, and each makes the rows from top to bottom.

Every strip begins at a whole number of strips from the left edge of the output. The right edge of the output lies where
the first strip ends, or left of that: what the convs read beyond it has to be made by the first strip, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from pydantic.dataclasses import dataclass as validated

from hexconv.hashed import hashed_once
from hexconv.spec.chain import IN_BLOCKS, Chain, Conv2d
from hexconv.spec.extents import COLUMN_BLOCK, REMEMBERED, blocks
from hexconv.spec.fields import STRICT
from hexconv.spec.knobs import ColumnHalo
from hexconv.spec.plan import Plan


@hashed_once
@validated(frozen=True, kw_only=True, config=STRICT)
class KeptChain(Chain):
    """A batch of strips that keep columns: what its convs pad on the right is what an earlier strip has left."""

    @classmethod
    def of(cls, chain: Chain) -> "KeptChain":
        """Return the same chain, its padding on the right being kept columns."""
        return cls(**{field.name: getattr(chain, field.name) for field in fields(chain)})

    @property
    def keeps_columns(self) -> bool:
        """True."""
        return True


@lru_cache(REMEMBERED)
def padded(conv: Conv2d, left: int, right: int) -> Conv2d:
    """Return a conv with other padding of columns."""
    return replace(conv, padding=replace(conv.padding, left=left, right=right))


def kept_strips(chain: Chain, width: int) -> int:
    """Return how many strips of `width` columns of the output make all columns that a chain needs.

    >>> from hexconv.spec.chain import Conv2d
    >>> conv = Conv2d(out_channels=8, kernel=(3, 3))
    >>> [kept_strips(Chain(input=(1, 12, 20, 4), conv=(conv,) * convs), 8) for convs in (1, 2, 4)]
    [3, 3, 3]
    """
    convs = range(len(chain.conv))
    return 1 + max([0, blocks(chain.shapes[-1][2] - width, width), *(_more(chain, width, index) for index in convs)])


def _more(chain: Chain, width: int, tensor: int) -> int:
    """Return how many strips come after the first one so that this makes the last column that a tensor needs."""
    end, left, stride = chain.shapes[-1][2], 0, 1
    for index in reversed(range(tensor, len(chain.conv))):
        conv = chain.conv[index]
        end = min((end - 1) * conv.stride[1] - conv.padding.left + conv.reach[1], chain.shapes[index][2])
        left, stride = left * conv.stride[1] + conv.padding.left, stride * conv.stride[1]
    return blocks(end + left - width * stride, width * stride)


@dataclass(frozen=True)
class StripColumns:
    """What a strip has of one tensor.

    Attributes:
        columns: the columns of a strip.
        made: of these, the columns from the first one on that the strip makes or reads itself; the others are kept.
        stride: the columns of the tensor from one column of the output to the next.
        left: the column of the first strip at which the image begins.
        image_columns: the columns of the whole tensor.
        is_padded: whether the conv that reads it pads columns.
    """

    columns: int
    made: int
    stride: int
    left: int
    image_columns: int
    is_padded: bool

    @property
    def kept(self) -> int:
        """The columns that an earlier strip has left."""
        return self.columns - self.made


@dataclass(frozen=True)
class Strips:
    """The strips of a chain.

    Attributes:
        chain: the chain that computes all strips: a batch of them for each image.
        count: the strips of an image.
        columns: the columns of the output in a strip.
        images: the shape of the whole input, NHWC.
        outputs: the shape of the whole output, NHWC.
        tensors: what a strip has of every tensor, the input first.
        keeps: whether columns that two strips read are kept.
    """

    chain: Chain
    count: int
    columns: int
    images: tuple[int, int, int, int]
    outputs: tuple[int, int, int, int]
    tensors: tuple[StripColumns, ...]
    keeps: bool = False

    def image_of(self, number: Any) -> Any:
        """Return the image of strip `number` of the batch, a number or an expression."""
        return number // self.count

    def first_made(self, number: Any, least: Callable[[Any, Any], Any] = min) -> Any:
        """Return the first column of the output that strip `number` of the batch makes.

        Args:
            number: a number or an expression.
            least: the minimum of two of them.
        """
        if self.keeps:
            return self.first_written(number)
        return least(self.first_written(number), self.outputs[2] - self.columns)

    @property
    def divide(self) -> bool:
        """Whether the strips divide the output, so that no column is made twice."""
        return self.count * self.columns == self.outputs[2]

    def first_written(self, number: Any) -> Any:
        """Return the first column of the output that strip `number` of the batch writes: no earlier strip makes it."""
        if self.keeps:
            return (self.count - 1 - number % self.count) * self.columns
        return number % self.count * self.columns

    def first_read(self, number: Any, least: Callable[[Any, Any], Any] = min) -> Any:
        """Return the column of the input at which strip `number` of the batch begins; it may lie left of the image.

        The rest is as in `first_made`.
        """
        return self.first_made(number, least) * self.tensors[0].stride - self.tensors[0].left

    def valid_columns(
        self,
        tensor: int,
        number: Any,
        least: Callable[[Any, Any], Any] = min,
        most: Callable[[Any, Any], Any] = max,
    ) -> tuple[Any, Any]:
        """Return the first and one past the last column of a tensor of strip `number` that lies in the image.

        Of kept columns it knows nothing.

        Args:
            tensor: the number of the tensor; 0 is the input.
            number: the number of the strip in the batch, a number or an expression.
            least: the minimum of two of them.
            most: the maximum of two of them.

        >>> from hexconv.spec import Conv2d
        >>> same = Conv2d(out_channels=8, kernel=(3, 3), padding=1)
        >>> chain = Chain(input=(1, 20, 20, 4), output_layout="NHWC", conv=(same, same))
        >>> strips = strips_of(chain, Plan(kernel="hvx", w_split=1))
        >>> [strips.valid_columns(0, number) for number in range(strips.count)]
        [(2, 12), (0, 12), (0, 10)]
        """
        known = self.tensors[tensor]
        begin, end = self.image_columns(tensor, number, least)
        return least(most(begin, 0), known.made), most(least(end, known.made), 0)

    def image_columns(self, tensor: int, number: Any, least: Callable[[Any, Any], Any] = min) -> tuple[Any, Any]:
        """Return where in strip `number` the image of a tensor begins and ends, be it outside of the strip.

        The rest is as in `valid_columns`.
        """
        known = self.tensors[tensor]
        begin = known.left - self.first_made(number, least) * known.stride
        return begin, begin + known.image_columns

    def reads(self, tensor: int) -> bool:
        """Whether any strip has a column of a tensor that lies in the image; a stride may step over all of them."""
        valid = (self.valid_columns(tensor, number) for number in range(self.count))
        return any(first < end for first, end in valid)

    def is_inside(self, tensor: int) -> bool:
        """Whether all columns that strips make of a tensor lie in the image."""
        ends = (self.valid_columns(tensor, number) for number in (0, self.count - 1))
        return all(columns == (0, self.tensors[tensor].made) for columns in ends)

    def fills(self, tensor: int) -> bool:
        """Whether columns of a tensor outside of the image are padding that a conv reads."""
        return not self.is_inside(tensor) and (self.tensors[tensor].is_padded or not self.keeps)


def strips_of(chain: Chain, plan: Plan) -> Strips | None:
    """Return the strips that a plan makes; None where it makes whole rows.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=8, kernel=(3, 3))
    >>> chain = Chain(input=(2, 20, 44, 4), output_layout="NHWC", conv=(conv, conv))
    >>> strips = strips_of(chain, Plan(kernel="hvx", w_split=2))
    >>> strips.count, strips.columns, strips.chain.input
    (3, 16, (6, 20, 20, 4))
    """
    return None if plan.w_split is None else strips_as_wide(chain, plan.w_split, plan.column_halo)


def strip_count(chain: Chain, w_split: int, column_halo: ColumnHalo) -> int:
    """Return how many strips of so many blocks of columns an image has."""
    columns, width = chain.shapes[-1][2], w_split * COLUMN_BLOCK
    return kept_strips(chain, width) if column_halo == "keep" else blocks(columns, min(width, columns))


@lru_cache(REMEMBERED)
def strips_as_wide(chain: Chain, w_split: int, column_halo: ColumnHalo) -> Strips:
    """Return the strips of a plan that states these knobs."""
    if column_halo == "keep":
        return _kept(chain, w_split * COLUMN_BLOCK)
    (images, rows, _, channels), columns = chain.input, chain.shapes[-1][2]
    width, count = min(w_split * COLUMN_BLOCK, columns), strip_count(chain, w_split, column_halo)
    tensors, whole = _columns(chain, width), tuple(padded(conv, 0, 0) for conv in chain.conv)
    of_strips = replace(chain, input=(images * count, rows, tensors[0].columns, channels), conv=whole)
    return Strips(of_strips, count, width, chain.input, chain.shapes[-1], tensors)


@lru_cache(REMEMBERED)
def _kept(chain: Chain, width: int) -> Strips:
    """Return strips of `width` columns of the output that keep what two of them read."""
    (images, rows, _, channels), count = chain.input, kept_strips(chain, width)
    tensors = _columns(chain, width, keeps=True)
    convs = tuple(padded(conv, 0, source.kept) for conv, source in zip(chain.conv, tensors[:-1], strict=True))
    of_strips = replace(chain, input=(images * count, rows, tensors[0].made, channels), conv=convs)
    return Strips(KeptChain.of(of_strips), count, width, chain.input, chain.shapes[-1], tensors, keeps=True)


def _columns(chain: Chain, width: int, keeps: bool = False) -> tuple[StripColumns, ...]:
    """Return what a strip of `width` columns of the output has of every tensor."""

    def read(index: int, reader: StripColumns) -> StripColumns:
        conv, stride = chain.conv[index], reader.stride * chain.conv[index].stride[1]
        columns = conv.columns_read(reader.made)
        made = min(columns, width * stride) if keeps else columns
        left, is_padded = reader.left * conv.stride[1] + conv.padding.left, conv.padding.left + conv.padding.right > 0
        return StripColumns(columns, made, stride, left, chain.shapes[index][2], is_padded)

    return chain.backwards(StripColumns(width, width, 1, 0, chain.shapes[-1][2], False), read)


def in_strips(chain: Chain, plan: Plan) -> tuple[Chain, Plan]:
    """Return the chain and the plan of the nest: those of a batch of strips where the plan makes strips."""
    strips = strips_of(chain, plan)
    return (strips.chain, replace(plan, w_split=None, column_halo="recompute")) if strips else (chain, plan)


def why_no_strips(chain: Chain, w_split: int, column_halo: ColumnHalo = "recompute") -> str:
    """Say why a chain can't be computed in strips of so many blocks of columns; empty if it can.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 20, 44, 4), dtype="uint8", conv=(Conv2d(out_channels=8),))
    >>> why_no_strips(chain, 2)
    "the last of the output's blocks of 8 columns has 4, and is whole"
    """
    if any(conv.add for conv in chain.conv):
        return "a conv adds an earlier tensor, whose columns strips don't line up"
    columns = chain.shapes[-1][2]
    if w_split > blocks(columns, COLUMN_BLOCK):
        return f"the output has {blocks(columns, COLUMN_BLOCK)} blocks of {COLUMN_BLOCK} columns"
    if chain.output_layout == IN_BLOCKS and columns % COLUMN_BLOCK:
        return f"the last of the output's blocks of {COLUMN_BLOCK} columns has {columns % COLUMN_BLOCK}, and is whole"
    strips = strips_as_wide(chain, w_split, column_halo)
    for index in range(len(chain.conv)):
        if not strips.reads(index):
            return f"chain.conv[{index}] would read nothing but padding: no strip has a column of the image"
    return _why_not_kept(strips) if strips.keeps else ""


def _why_not_kept(strips: Strips) -> str:
    """Say why strips have nothing to keep; empty if they have."""
    if strips.count == 1:
        return "one strip has all columns"
    return "" if any(tensor.kept for tensor in strips.tensors) else "no column is read by two strips"
