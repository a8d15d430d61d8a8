"""A chain of convs, each reading what the one before it wrote, and the logical shapes along it."""

from functools import cached_property
from math import prod
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError
from hexconv.spec.conv import TABLE, Conv2d
from hexconv.spec.edges import IN_BLOCKS, PIXELS, EdgeLayout
from hexconv.spec.fields import STRICT, Size
from hexconv.spec.requantize import ZeroPoint
from hexconv.spec.wrong import in_one_line

Dtype = Literal["float32", "float16", "int8", "uint8", "int16"]
INTEGER_RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1)}
ZERO_POINTS = {**INTEGER_RANGE, "int16": (0, 0)}
"""Of an integer dtype; int16 is symmetric, as TFLite has it."""
FILTER_DTYPES: dict[str, tuple[Dtype, ...]] = {
    "int8": ("int8", "uint8"),
    "uint8": ("int8", "uint8"),
    "int16": ("int16", "int8"),
}
"""The dtypes that filters may have, by the dtype of the chain. Filters of float chains have the chain's dtype."""
MOST_CONVS = 64
MOST_TAPS = 2**24
"""The largest product of kernel size and outputs along one axis: sixteen taps for each of a million rows."""


@in_one_line("chain")
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
        _check_filter_dtype(self)
        if self.filter_dtype == self.dtype:
            object.__setattr__(self, "filter_dtype", None)  # the chain's own dtype is no other
        for index, conv in enumerate(self.conv):
            _check_groups(index, conv, self.shapes[index][3])
            _check_kernel_fits(index, conv, self.shapes[index])
            _check_taps(index, conv, self.shapes[index + 1])
            _check_dtype(index, conv, self)
        _check_zero_point("chain.zero_point", self.zero_point, self.dtype)

    @cached_property
    def shapes(self) -> tuple[tuple[int, int, int, int], ...]:
        """Logical NHWC of the input and of every conv's output.

        >>> Chain(input=(1, 64, 64, 8), conv=(Conv2d(out_channels=16, kernel=(3, 3)),)).shapes
        ((1, 64, 64, 8), (1, 62, 62, 16))
        """
        shapes = [self.input]
        for conv in self.conv:
            shapes.append(_output_shape(conv, shapes[-1]))
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

    @property
    def handed_over(self) -> EdgeLayout:
        """How tensors lie that one chain hands to the next: in pixels, so that nothing is padded and nothing copied.

        Of float32 they lie as the output does, for the host kernel writes blocks alone.
        """
        return self.output_layout if self.dtype == "float32" else PIXELS

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
    def accumulator_dtype(self) -> str:
        """The dtype of the sums: float32 for floats, int32 for integers."""
        return "int32" if self.is_integer else "float32"

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


def _output_shape(conv: Conv2d, shape: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Logical NHWC of a conv's output; sizes below one mean that the kernel does not fit."""
    n, h, w, _ = shape
    padded = (h + conv.padding.top + conv.padding.bottom, w + conv.padding.left + conv.padding.right)
    rows, columns = ((p - r) // s + 1 if p >= r else 0 for p, r, s in zip(padded, conv.reach, conv.stride, strict=True))
    return n, rows, columns, conv.out_channels


def _check_filter_dtype(chain: Chain) -> None:
    """Refuse a filter dtype that the chain's dtype doesn't go with."""
    allowed = FILTER_DTYPES.get(chain.dtype, (chain.dtype,))
    if chain.dtype_of_filters not in allowed:
        raise InputError(
            "chain.filter_dtype", chain.dtype_of_filters, f"{' or '.join(allowed)} in a {chain.dtype} chain"
        )


def _check_groups(index: int, conv: Conv2d, channels: int) -> None:
    """Refuse a number of groups that doesn't divide the channels of input and output."""
    for what, count in (("input", channels), ("output", conv.out_channels)):
        if count % conv.groups:
            given = f"{conv.groups}, which leaves {count % conv.groups} of the {count} channels of its {what}"
            raise InputError(f"chain.conv[{index}].groups", given, f"a divisor of {count}")


def _check_kernel_fits(index: int, conv: Conv2d, shape: tuple[int, int, int, int]) -> None:
    """Refuse a kernel larger than its padded input, which would have no output."""
    padded = (shape[1] + conv.padding.top + conv.padding.bottom, shape[2] + conv.padding.left + conv.padding.right)
    for axis, p, reach in zip(("rows", "columns"), padded, conv.reach, strict=True):
        if reach > p:
            raise InputError(
                f"chain.conv[{index}].kernel",
                f"{list(conv.kernel)} with dilation {list(conv.dilation)}, which reads {reach} {axis}",
                f"at most the {p} {axis} of its padded input; a smaller kernel, or {reach - p} more padding",
            )


def _check_taps(index: int, conv: Conv2d, output: tuple[int, int, int, int]) -> None:
    """Refuse a kernel as large as a large image: it is a slip, and its rows are too many to count."""
    for axis, taps, outputs in zip(("rows", "columns"), conv.kernel, output[1:3], strict=True):
        if taps * outputs > MOST_TAPS:
            raise InputError(
                f"chain.conv[{index}].kernel",
                f"{taps} {axis} for each of {outputs} {axis} of output, {taps * outputs} in all",
                f"up to {MOST_TAPS}; a smaller kernel, or a smaller image",
            )


def _check_dtype(index: int, conv: Conv2d, chain: Chain) -> None:
    """Refuse requantisation, tables and zero points in float chains, and other activations in integer chains."""
    where = f"chain.conv[{index}]"
    if not chain.is_integer:
        if conv.requantize or conv.filter_zero_point:
            raise InputError(f"{where}.requantize", f"one in a {chain.dtype} chain", "none; it is for integers")
        if conv.activation == TABLE:
            raise InputError(f"{where}.activation", f"a table in a {chain.dtype} chain", "none, relu or relu6")
        for limit in ("filter_l1", "bias_limit"):
            if getattr(conv, limit) is not None:
                raise InputError(f"{where}.{limit}", f"one in a {chain.dtype} chain", "none; it is for integers")
        return
    if conv.bias_limit is not None and not conv.bias:
        raise InputError(f"{where}.bias_limit", str(conv.bias_limit), "none where there is no bias, or bias = true")
    _check_table(where, conv, chain.dtype)
    if conv.requantize is None and index < len(chain.conv) - 1:
        change = "give multiplier, shift and zero_point; only the last conv of an integer chain may stay int32"
        raise InputError.because(f"{where}.requantize is missing", change)
    _check_zero_point(f"{where}.filter_zero_point", conv.filter_zero_point, chain.dtype_of_filters, "{} filters")
    if conv.requantize:
        _check_zero_point(f"{where}.requantize.zero_point", conv.requantize.zero_point, chain.dtype)
        low, high = INTEGER_RANGE[chain.dtype]
        if conv.requantize.clamp and not low <= conv.requantize.clamp[0] <= conv.requantize.clamp[1] <= high:
            given = str(list(conv.requantize.clamp))
            raise InputError(f"{where}.requantize.clamp", given, f"codes of {chain.dtype}, {low} to {high}")


def _check_table(where: str, conv: Conv2d, dtype: str) -> None:
    """Refuse an integer chain's activation unless it is a table of 8-bit codes that follows a requantisation."""
    if conv.activation not in ("none", TABLE):
        allowed = "none or table in an integer chain; say a relu's codes in requantize.clamp"
        raise InputError(f"{where}.activation", conv.activation, allowed)
    if conv.activation == TABLE and dtype == "int16":
        raise InputError(f"{where}.activation", "a table in an int16 chain", "none; a table has a code for each of 256")
    if conv.activation == TABLE and conv.requantize is None:
        raise InputError.because(
            f"{where}.requantize is missing", "give the multiplier, shift and zero_point that make codes"
        )
    if conv.activation != TABLE and conv.table_zero_point:
        raise InputError(f"{where}.table_zero_point", str(conv.table_zero_point), 'none, or activation = "table"')
    _check_zero_point(f"{where}.table_zero_point", conv.table_zero_point, dtype)


def _check_zero_point(where: str, zero_point: int, dtype: str, what: str = "a {} chain") -> None:
    """Refuse a zero point outside of the range of its dtype."""
    low, high = ZERO_POINTS.get(dtype, (0, 0))
    if not low <= zero_point <= high:
        raise InputError(where, str(zero_point), f"{low} to {high} in {what.format(dtype)}")
