"""A chain of convs, each reading what the one before it wrote, and the logical shapes along it."""

from collections.abc import Callable
from functools import cached_property
from math import prod
from typing import Annotated, TypeVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from hexconv.hashed import hashed_once
from hexconv.spec.activations import TABLE
from hexconv.spec.conv import Conv2d
from hexconv.spec.conv_dtypes import check_dtypes, check_filter_dtype, check_zero_point
from hexconv.spec.conv_shapes import check_shapes, output_shape
from hexconv.spec.dtypes import INTEGER_RANGE, LARGEST_INT32, Dtype
from hexconv.spec.edges import IN_BLOCKS, PIXELS, EdgeLayout
from hexconv.spec.fields import STRICT, Size
from hexconv.spec.requantize import ZeroPoint
from hexconv.spec.wrong import in_one_line

MOST_CONVS = 64
Known = TypeVar("Known")


@in_one_line("chain")
@hashed_once
@dataclass(frozen=True, kw_only=True, config=STRICT)
class Chain:
    """conv2d -> conv2d -> ..., one input, one filter per conv.

    Attributes:
        input: the logical sizes of the input, (N, H, W, C).
        dtype: the type of the input, of intermediates and, unless `filter_dtype` states another one, of the filters.
        filter_dtype: the type of the filters, if it is another one: the usual quantised network is uint8 with int8
            filters.
        zero_point: the zero point of the input, for integer chains.
        input_layout: how the input lies. `"NHWC"`, its elements alone; `"NHCW32c"`, row by row in blocks of 32
            channels; `"NHWC8h8w32c"`, in blocks of 8 rows, 8 columns and 32 channels. What blocks hold where there are
            no elements is not read.
        output_layout: how the output lies; as for the input, with zeros where blocks have no elements.
        conv: the convs in order.

    Raises:
        InputError: a conv's kernel does not fit its padded input or is far too large, or a field does not go with the
            dtype.
    """

    input: tuple[Size, Size, Size, Size]
    dtype: Dtype = "float32"
    filter_dtype: Dtype | None = None
    zero_point: ZeroPoint = 0
    input_layout: EdgeLayout = PIXELS
    output_layout: EdgeLayout = IN_BLOCKS
    conv: Annotated[tuple[Conv2d, ...], Field(min_length=1, max_length=MOST_CONVS)]

    def __post_init__(self) -> None:
        """Refuse fields that are valid alone but do not go together."""
        check_filter_dtype(self.dtype, self.dtype_of_filters)
        if self.filter_dtype == self.dtype:
            object.__setattr__(self, "filter_dtype", None)  # the chain's own dtype is no other
        for index, conv in enumerate(self.conv):
            where, is_last = f"chain.conv[{index}]", index == len(self.conv) - 1
            check_shapes(where, conv, self.shapes[index])
            check_dtypes(where, conv, self.dtype, self.dtype_of_filters, is_last)
        check_zero_point("chain.zero_point", self.zero_point, self.dtype)

    @cached_property
    def shapes(self) -> tuple[tuple[int, int, int, int], ...]:
        """Logical NHWC of the input and of every conv's output.

        >>> Chain(input=(1, 64, 64, 8), conv=(Conv2d(out_channels=16, kernel=(3, 3)),)).shapes
        ((1, 64, 64, 8), (1, 62, 62, 16))
        """
        shapes = [self.input]
        for conv in self.conv:
            shapes.append(output_shape(conv, shapes[-1]))
        return tuple(shapes)

    @cached_property
    def filter_shapes(self) -> tuple[tuple[int, int, int, int], ...]:
        """Logical OIHW of every filter; I is the input channels of a group, which one output channel sums over.

        >>> Chain(input=(1, 8, 8, 64), conv=(Conv2d(out_channels=32, kernel=(3, 1), groups=2),)).filter_shapes
        ((32, 32, 3, 1),)
        """
        sources = self.shapes[:-1]
        return tuple(
            (conv.out_channels, shape[3] // conv.groups, *conv.kernel)
            for conv, shape in zip(self.conv, sources, strict=True)
        )

    def backwards(self, last: Known, read: Callable[[int, Known], Known]) -> tuple[Known, ...]:
        """Walk from the output to the input, and return what is found of every tensor, the input first.

        Args:
            last: what is known of the output.
            read: says of what conv `index` reads, from what is known of the tensor that it makes.

        >>> three = Conv2d(out_channels=8, kernel=(3, 3))
        >>> chain = Chain(input=(1, 64, 64, 8), conv=(three, three))
        >>> chain.backwards(2, lambda index, rows: chain.conv[index].rows_read(rows))
        (6, 4, 2)
        """
        found = [last]
        for index in reversed(range(len(self.conv))):
            found.insert(0, read(index, found[0]))
        return tuple(found)

    @property
    def keeps_columns(self) -> bool:
        """Whether the padding right of intermediates are columns that an earlier image of the batch has left."""
        return False

    @property
    def longest_sum(self) -> int:
        """The most products that a conv adds up for one output."""
        return max(prod(shape[1:]) for shape in self.filter_shapes)

    @property
    def is_integer(self) -> bool:
        """Whether the chain is quantised: int8, uint8 or int16 with int32 accumulators."""
        return self.dtype in INTEGER_RANGE

    @property
    def dtype_of_filters(self) -> Dtype:
        """The dtype of the filters: the stated one, or else the chain's."""
        return self.filter_dtype or self.dtype

    @property
    def dtypes(self) -> str:
        """The dtypes of activations and filters, in a word: one name, or two joined by an x.

        >>> conv = Conv2d(out_channels=2)
        >>> [Chain(input=(1, 8, 8, 4), dtype="uint8", filter_dtype=of, conv=(conv,)).dtypes for of in (None, "int8")]
        ['uint8', 'uint8xint8']
        """
        return "x".join(dict.fromkeys((self.dtype, self.dtype_of_filters)))

    @property
    def bias_dtype(self) -> str:
        """The dtype of biases: float32 for floats, int32 for integers."""
        return "int32" if self.is_integer else "float32"

    def sum_dtype(self, index: int) -> str:
        """The dtype of the sums of conv `index`: that of biases, or int64 where they leave int32 and are scaled."""
        conv = self.conv[index]
        leaves = conv.requantize is not None and conv.sum_limit is not None and conv.sum_limit > LARGEST_INT32
        return "int64" if leaves or self.saturates(index) else self.bias_dtype

    def saturates(self, index: int) -> bool:
        """Whether the sums of conv `index` saturate before they are scaled."""
        how = self.conv[index].requantize
        return how is not None and how.saturates_at is not None

    def raises(self, index: int) -> bool:
        """Whether hvx holds the sums of conv `index` while they grow by a byte: those of int16 that saturate."""
        return self.dtype == "int16" and self.saturates(index)

    def adds_bias_last(self, index: int) -> bool:
        """Whether hvx adds the biases of conv `index` to the sums of its products: those of 8 bits that saturate."""
        return self.dtype != "int16" and self.saturates(index)

    def output_dtype(self, index: int) -> str:
        """The dtype of the output of conv `index`: the chain's, or int32 where the last conv is not requantised."""
        return "int32" if self.is_integer and self.conv[index].requantize is None else self.dtype

    def output_zero_point(self, index: int) -> int:
        """The zero point of tensor `index`: tensor 0 is the input, tensor i the output of the i-th conv."""
        if index == 0:
            return self.zero_point
        conv = self.conv[index - 1]
        if conv.activation == TABLE:
            return conv.table_zero_point
        return conv.requantize.zero_point if conv.requantize else 0

    @property
    def slug(self) -> str:
        """A short name of the chain, for test ids, files and rows.

        >>> Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)).slug
        'n1h8w8c4-k2r1x1-float32'
        """
        n, h, w, c = self.input
        return "-".join([f"n{n}h{h}w{w}c{c}", *(conv.slug for conv in self.conv), self.dtypes])
