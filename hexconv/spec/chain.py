"""A chain of convs, each feeding only the next: the convs, their shapes and dtypes, and the layouts of its two ends."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from math import prod
from typing import Annotated, Any, Literal, TypeVar, cast, get_args

from pydantic import BeforeValidator, Field, ValidationInfo
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError
from hexconv.hashed import hashed_once
from hexconv.spec.activations import CURVES, TABLE, Activation, Curve, check_parameters
from hexconv.spec.addition import Add, check_add
from hexconv.spec.code_sums import Summed, integer_form
from hexconv.spec.dtypes import FILTER_DTYPES, INTEGER_RANGE, LARGEST_INT32, ZERO_POINTS, Dtype
from hexconv.spec.fields import STRICT, Pair, Rows, Size, in_one_line
from hexconv.spec.requantize import Requantize, ZeroPoint
from hexconv.spec.unfolded import Unfolding

LARGEST_PARAMETER = 65504
"""The largest float16: a larger parameter of an activation is a slip."""
Parameter = Annotated[float, Field(ge=-LARGEST_PARAMETER, le=LARGEST_PARAMETER, allow_inf_nan=False)]


@in_one_line("chain.conv.padding")
@dataclass(frozen=True, kw_only=True, config=STRICT)
class Padding:
    """Rows and columns of zeros (of the zero point, in an integer chain) around a conv's input, per side."""

    top: Rows = 0
    left: Rows = 0
    bottom: Rows = 0
    right: Rows = 0


def _padding(value: object, info: ValidationInfo) -> object:
    """Read padding: one number for all sides, or [top, left, bottom, right]."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value] * 4
    if isinstance(value, (list, tuple)) and len(of_sides := cast(Sequence[Any], value)) == 4:
        sides = dict(zip(("top", "left", "bottom", "right"), of_sides, strict=True))
        # Sides from a file are still unchecked: each is checked here under its own path. Padding has checked those from
        # Python.
        return sides if info.mode == "json" else Padding(**sides)
    if isinstance(value, Padding):
        return value
    raise ValueError("one number, or four: [top, left, bottom, right]")


def _parameter(stated: float | None, default: float | None) -> float:
    return stated if stated is not None else default or 0.0


@in_one_line("chain.conv")
@hashed_once
@dataclass(frozen=True, kw_only=True, config=STRICT)
class Conv2d:
    """A conv2d over NHWC with an OIHW filter.

    Attributes:
        out_channels: K, the filter's O.
        kernel: (rows, columns) of the filter.
        stride: (rows, columns) between two outputs.
        dilation: (rows, columns) between two taps of the filter.
        padding: the rows and columns around this conv's input, per side.
        groups: parts into which the channels of input and output fall; each output channel sums over those of its part.
            As many groups as input channels are a depthwise conv.
        bias: whether a vector of K values, of the accumulator's dtype, is added.
        activation: what follows the bias. For float chains, of a sum x:
            `"relu"`, max(x, 0); `"relu6"`, that and at most 6; `"leaky_relu"`, x, or slope * x below 0; `"prelu"`, the
            same with a slope for each channel, which lie beside the filters; `"elu"`, x, or slope * (exp(x) - 1) below
            0; `"sigmoid"`, 1 / (1 + exp(-x)); `"hardsigmoid"`, slope * x + offset, at least 0 and at most 1; `"tanh"`;
            `"silu"`, x * sigmoid(x); `"hardswish"`, x * hardsigmoid(x); `"gelu"`, x * (1 + erf(x / sqrt(2))) / 2;
            `"gelu_tanh"`, x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2.
            For integer chains of 8 bits, `"table"`: each requantised code is looked up among 256 codes, which lie
            beside the filters.
        activation_slope: the slope of a leaky_relu (by default 0.01), an elu (1) or a hardsigmoid (1/6).
        activation_offset: what a hardsigmoid adds (by default 0.5).
        table_zero_point: the zero point of the codes in that table; the zero point in `requantize` belongs to the codes
            that are looked up.
        filter_zero_point: the number that is subtracted from each filter element, for integer chains.
        filter_l1: for integer chains, the largest sum of absolute values (zero point subtracted) that the filter of one
            output channel has; if left out, the largest that the dtype allows. Sums are int32: long sums of int16 are
            only known to fit if this says so.
        bias_limit: for integer chains, the largest absolute value that the bias has; if left out, the largest that
            int32 leaves beside the sums and the numbers that requantisation adds to them (`hexconv.spec.ranges`).
        sum_limit: for integer chains, the largest absolute value that a sum of any output channel has, bias included:
            the bias of each channel beside its own filter. If left out, the largest that `filter_l1` and `bias_limit`
            allow together, as if one channel had both. Beyond int32, plain sums in 64 bits.
        requantize: how an integer chain returns to its dtype; the last conv may leave it out and stay int32.
        add: an earlier tensor of the chain that is added to what the conv makes.
        pool: `"max"`: no conv but a pool, whose outputs are the largest element of their windows, channel by channel.
            It has no filter, as many outputs and groups as input channels, and the zero point of its input. Padding
            counts as the least value.
    """

    out_channels: Size
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Annotated[Padding, BeforeValidator(_padding)] = Padding()
    groups: Size = 1
    bias: bool = False
    activation: Activation = "none"
    activation_slope: Parameter | None = None
    activation_offset: Parameter | None = None
    table_zero_point: ZeroPoint = 0
    filter_zero_point: ZeroPoint = 0
    filter_l1: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    bias_limit: Annotated[int, Field(ge=0, le=2**31)] | None = None
    sum_limit: Annotated[int, Field(ge=0, le=2**62)] | None = None
    requantize: Requantize | None = None
    add: Add | None = None
    pool: Literal["max"] | None = None

    def __post_init__(self) -> None:
        """Give a pool its groups: each channel is one."""
        if self.pool and self.groups == 1:
            object.__setattr__(self, "groups", self.out_channels)

    @property
    def is_grouped(self) -> bool:
        """Whether outputs read some channels of the input alone; those of a pool always do."""
        return self.groups > 1 or self.pool is not None

    @cached_property
    def reach(self) -> tuple[int, int]:
        """The rows and columns that one output reads: the dilated kernel.

        >>> Conv2d(out_channels=1, kernel=(3, 1), dilation=(2, 2)).reach
        (5, 1)
        """
        (kh, kw), (dh, dw) = self.kernel, self.dilation
        return (kh - 1) * dh + 1, (kw - 1) * dw + 1

    @property
    def curve(self) -> Curve:
        """What is known of its activation; a table of an integer chain is no curve, and counts as none."""
        return CURVES.get(self.activation, CURVES["none"])

    @property
    def slope(self) -> float:
        """The slope of its activation: the stated one, or that of the activation; 0 where it has none.

        >>> Conv2d(out_channels=1, activation="leaky_relu").slope
        0.01
        """
        return _parameter(self.activation_slope, self.curve.slope)

    @property
    def offset(self) -> float:
        """The offset of its activation: the stated one, or that of the activation; 0 where it has none."""
        return _parameter(self.activation_offset, self.curve.offset)

    def rows_read(self, rows: int) -> int:
        """Count the rows of the padded input that neighbouring rows of the output read.

        >>> Conv2d(out_channels=1, kernel=(3, 3)).rows_read(8), Conv2d(out_channels=1, stride=(2, 2)).rows_read(8)
        (10, 15)
        """
        return (rows - 1) * self.stride[0] + self.reach[0]

    def columns_read(self, columns: int) -> int:
        """Count the columns of the padded input that neighbouring columns of the output read."""
        return (columns - 1) * self.stride[1] + self.reach[1]

    @property
    def slug(self) -> str:
        """A short name of the conv's geometry, for test ids and file names.

        >>> Conv2d(out_channels=64, kernel=(3, 3), stride=(2, 2)).slug
        'k64r3x3s2x2'
        """
        pad = (self.padding.top, self.padding.left, self.padding.bottom, self.padding.right)
        parts = [
            f"k{self.out_channels}r{self.kernel[0]}x{self.kernel[1]}",
            f"s{self.stride[0]}x{self.stride[1]}" if self.stride != (1, 1) else "",
            f"d{self.dilation[0]}x{self.dilation[1]}" if self.dilation != (1, 1) else "",
            "p" + "_".join(map(str, pad)) if any(pad) else "",
            self.pool or "",
            f"g{self.groups}" if self.groups != 1 and not self.pool else "",
            f"a{self.add.tensor}" if self.add else "",
        ]
        return "".join(parts)


MOST_TAPS = 2**24
"""The largest product of kernel size and outputs along one axis: sixteen taps for each of a million rows."""

Shape = tuple[int, int, int, int]


def output_shape(conv: Conv2d, shape: Shape) -> Shape:
    """Return the logical NHWC of a conv's output; sizes below one mean that the kernel does not fit."""
    n, h, w, _ = shape
    padded = (h + conv.padding.top + conv.padding.bottom, w + conv.padding.left + conv.padding.right)
    rows, columns = ((p - r) // s + 1 if p >= r else 0 for p, r, s in zip(padded, conv.reach, conv.stride, strict=True))
    return n, rows, columns, conv.out_channels


def check_shapes(where: str, conv: Conv2d, source: Shape) -> None:
    """Check that a conv takes an image of this shape.

    Args:
        where: the conv's place in its file, `chain.conv[0]`.
        conv: the conv.
        source: the logical NHWC of what it reads.

    Raises:
        InputError: its groups don't divide the channels, or its kernel doesn't fit the padded image, or is far too
            large.
    """
    _check_groups(where, conv, source[3])
    if conv.pool:
        _check_pool(where, conv, source)
    _check_kernel_fits(where, conv, source)
    _check_taps(where, conv, output_shape(conv, source))
    if conv.pool:
        _check_windows(where, conv, source)


def _check_groups(where: str, conv: Conv2d, channels: int) -> None:
    """Refuse a number of groups that doesn't divide the channels of input and output."""
    for what, count in (("input", channels), ("output", conv.out_channels)):
        if count % conv.groups:
            given = f"{conv.groups}, which leaves {count % conv.groups} of the {count} channels of its {what}"
            raise InputError(f"{where}.groups", given, f"a divisor of {count}")


def _check_pool(where: str, conv: Conv2d, source: Shape) -> None:
    """Refuse a pool that has what a conv has, or other channels than its input."""
    known = Conv2d(
        out_channels=source[3],
        kernel=conv.kernel,
        stride=conv.stride,
        dilation=conv.dilation,
        padding=conv.padding,
        pool=conv.pool,
    )
    for field in fields(conv):
        if (given := getattr(conv, field.name)) != (allowed := getattr(known, field.name)):
            given = "one" if is_dataclass(given) else given
            raise InputError(f"{where}.{field.name}", f"{given} in a pool", f"{allowed or 'none'}, or no pool")


def _check_windows(where: str, conv: Conv2d, source: Shape) -> None:
    """Refuse a pool of which a window lies in its padding alone: no element is the largest of none."""
    pad, made = conv.padding, output_shape(conv, source)[1:3]
    padded = (pad.top, pad.bottom), (pad.left, pad.right)
    sides = zip(("rows", "columns"), source[1:3], made, padded, conv.kernel, conv.stride, conv.dilation, strict=True)
    for axis, size, outputs, (begin, end), taps, stride, dilation in sides:
        inside = -(-begin // stride), (size + begin - (taps - 1) * dilation - 1) // stride + 1
        for place in (*range(min(outputs, inside[0])), *range(outputs - 1, max(inside) - 1, -1)):
            first = place * stride - begin
            seen = -(-max(-first, 0) // dilation)  # the first tap that is not before the image
            if seen >= taps or first + seen * dilation >= size:
                raise InputError(
                    f"{where}.padding",
                    f"{begin} and {end} {axis}, so that window {place} has padding alone",
                    f"padding with which each window reads some of the {size} {axis} of its input",
                )


def _check_kernel_fits(where: str, conv: Conv2d, shape: Shape) -> None:
    """Refuse a kernel larger than its padded input, which would have no output."""
    padded = (shape[1] + conv.padding.top + conv.padding.bottom, shape[2] + conv.padding.left + conv.padding.right)
    for axis, p, reach in zip(("rows", "columns"), padded, conv.reach, strict=True):
        if reach > p:
            raise InputError(
                f"{where}.kernel",
                f"{list(conv.kernel)} with dilation {list(conv.dilation)}, which reads {reach} {axis}",
                f"at most the {p} {axis} of its padded input; a smaller kernel, or {reach - p} more padding",
            )


def _check_taps(where: str, conv: Conv2d, output: Shape) -> None:
    """Refuse a kernel as large as a large image: it is a slip, and its rows are too many to count."""
    for axis, taps, outputs in zip(("rows", "columns"), conv.kernel, output[1:3], strict=True):
        if taps * outputs > MOST_TAPS:
            raise InputError(
                f"{where}.kernel",
                f"{taps} {axis} for each of {outputs} {axis} of output, {taps * outputs} in all",
                f"up to {MOST_TAPS}; a smaller kernel, or a smaller image",
            )


def check_filter_dtype(dtype: str, filter_dtype: str) -> None:
    """Check that filters of one dtype go with a chain of another.

    Raises:
        InputError: they don't; the text says which ones do.
    """
    allowed = FILTER_DTYPES.get(dtype, (dtype,))
    if filter_dtype not in allowed:
        raise InputError("chain.filter_dtype", filter_dtype, f"{' or '.join(allowed)} in a {dtype} chain")


def check_dtypes(where: str, conv: Conv2d, dtype: str, filter_dtype: str, is_last: bool) -> None:
    """Check that a conv states what its dtype wants, and nothing else.

    Args:
        where: the conv's place in its file, `chain.conv[0]`.
        conv: the conv.
        dtype: the dtype of the chain.
        filter_dtype: the dtype of the filter.
        is_last: whether it is the last conv, which alone may stay int32.

    Raises:
        InputError: a field does not go with the dtype, or one is missing.
    """
    if conv.pool:
        return
    if dtype in INTEGER_RANGE:
        _check_integers(where, conv, dtype, filter_dtype, is_last)
    else:
        _check_floats(where, conv, dtype)


def check_zero_point(where: str, zero_point: int, dtype: str, what: str = "a {} chain") -> None:
    """Check that a zero point is within the range of its dtype.

    Raises:
        InputError: it is outside; the text says the range.
    """
    low, high = ZERO_POINTS.get(dtype, (0, 0))
    if not low <= zero_point <= high:
        raise InputError(where, str(zero_point), f"{low} to {high} in {what.format(dtype)}")


def _check_floats(where: str, conv: Conv2d, dtype: str) -> None:
    """Refuse what is for integers alone."""
    if conv.activation == TABLE:
        raise InputError(f"{where}.activation", f"a table in a {dtype} chain", ", ".join(CURVES))
    check_parameters(where, conv.activation, conv.activation_slope, conv.activation_offset)
    for field in ("requantize", "filter_zero_point", "table_zero_point", "filter_l1", "bias_limit", "sum_limit"):
        if getattr(conv, field) != getattr(Conv2d, field):
            raise InputError(f"{where}.{field}", f"one in a {dtype} chain", "none; it is for integers")


def _check_integers(where: str, conv: Conv2d, dtype: str, filter_dtype: str, is_last: bool) -> None:
    """Refuse codes outside of their dtype, and sums that nothing narrows."""
    if conv.bias_limit is not None and not conv.bias:
        raise InputError(f"{where}.bias_limit", str(conv.bias_limit), "none where there is no bias, or bias = true")
    _check_table(where, conv, dtype)
    if conv.requantize is None and not is_last:
        change = "give multiplier, shift and zero_point; only the last conv of an integer chain may stay int32"
        raise InputError.because(f"{where}.requantize is missing", change)
    check_zero_point(f"{where}.filter_zero_point", conv.filter_zero_point, filter_dtype, "{} filters")
    if conv.requantize:
        check_zero_point(f"{where}.requantize.zero_point", conv.requantize.zero_point, dtype)
        _check_clamp(f"{where}.requantize.clamp", conv.requantize.clamp, dtype)
        if conv.requantize.engine == "fast" and dtype == "int16":
            allowed = '"exact"; the convert of the matrix engine gives 8 bits'
            raise InputError(f"{where}.requantize.engine", '"fast" in an int16 chain', allowed)


def _check_clamp(where: str, clamp: tuple[int, int] | None, dtype: str) -> None:
    """Refuse a clamp that is no range of codes."""
    low, high = INTEGER_RANGE[dtype]
    if clamp and not low <= clamp[0] <= clamp[1] <= high:
        raise InputError(where, str(list(clamp)), f"codes of {dtype}, {low} to {high}")


def _check_table(where: str, conv: Conv2d, dtype: str) -> None:
    """Refuse an integer chain's activation unless it is a table of 8-bit codes that follows a requantisation."""
    if conv.activation not in ("none", TABLE):
        allowed = "none or table in an integer chain; say a relu's codes in requantize.clamp"
        raise InputError(f"{where}.activation", conv.activation, allowed)
    for parameter in ("activation_slope", "activation_offset"):
        if getattr(conv, parameter) is not None:
            raise InputError(f"{where}.{parameter}", f"one in a {dtype} chain", "none; it is for floats")
    if conv.activation == TABLE and dtype == "int16":
        raise InputError(f"{where}.activation", "a table in an int16 chain", "none; a table has a code for each of 256")
    if conv.activation == TABLE and conv.requantize is None:
        raise InputError.because(
            f"{where}.requantize is missing", "give the multiplier, shift and zero_point that make codes"
        )
    if conv.activation != TABLE and conv.table_zero_point:
        raise InputError(f"{where}.table_zero_point", str(conv.table_zero_point), 'none, or activation = "table"')
    check_zero_point(f"{where}.table_zero_point", conv.table_zero_point, dtype)


LEAST_FLOAT = {"float32": -3.4028234663852886e38, "float16": -65504.0}
"""The least finite number of each dtype."""
EdgeLayout = Literal["NHWC8h8w32c", "NHWC", "NHCW32c"]
EDGE_LAYOUTS: tuple[EdgeLayout, ...] = get_args(EdgeLayout)
IN_BLOCKS: EdgeLayout = "NHWC8h8w32c"
"""The layout that outputs have where nothing is said."""
PIXELS: EdgeLayout = "NHWC"
"""The layout that inputs have where nothing is said."""


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
        for index, conv in enumerate(self.conv):
            if conv.add:
                self._check_add(index, conv.add)

    def _check_add(self, index: int, add: Add) -> None:
        """Refuse an Add of a tensor that isn't there, or that doesn't fit."""
        where, tensor = f"chain.conv[{index}].add", add.tensor
        check_add(where, add, self.dtype)
        if tensor > index:
            allowed = f"a tensor before it: input{f', or conv1 to conv{index}' if index else ''}"
            raise InputError(f"{where}.from", add.from_, allowed)
        theirs, own = self.shapes[tensor], self.shapes[index + 1]
        if theirs != own:
            raise InputError(
                f"{where}.from", f"{add.from_} of {list(theirs)}", f"a tensor of {list(own)}, as its conv's"
            )
        if any(conv.stride != (1, 1) for conv in self.conv[tensor : index + 1]):
            raise InputError(f"{where}.from", f"{add.from_}, behind which a conv has a stride", "convs of stride 1")
        if self.is_integer and self.conv[index].requantize is None:
            raise InputError.because(f"chain.conv[{index}].requantize is missing", "an Add sums codes of 8 bits")
        if self.is_integer and integer_form(self.summed(index)) is None:
            allowed = "scales that put no more than 4 of all 65,536 sums half way between two codes"
            raise InputError(f"{where}.scales", str(list(add.scales or ())), allowed)

    def summed(self, index: int) -> Summed:
        """What the Add of conv `index` stands for, in codes from 0 on."""
        add, low = self.conv[index].add, INTEGER_RANGE[self.dtype][0]
        assert add
        assert add.scales
        zeros = (self.own_zero_point(index), self.output_zero_point(add.tensor), add.zero_point)
        least, most = add.codes(self.dtype)
        return Summed(add.scales, (zeros[0] - low, zeros[1] - low, zeros[2] - low), (least - low, most - low))

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The convs, from 0, that read each tensor, the input first: the conv behind it, and those that add it.

        >>> convs = [Conv2d(out_channels=8), Conv2d(out_channels=8, add=Add(from_="input"))]
        >>> Chain(input=(1, 8, 8, 8), conv=tuple(convs)).readers
        ((0, 1), (1,), ())
        """
        convs = range(len(self.conv))
        adds = [conv.add.tensor if conv.add else None for conv in self.conv]
        return tuple(
            tuple(index for index in convs[tensor:] if tensor in (index, adds[index]))
            for tensor in range(len(self.conv) + 1)
        )

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """The conv, from 0, in whose steps each tensor but the output is made: the first around all of its readers.

        The steps of a conv stand in those of the home of what it makes, and so on to the last conv. A tensor that its
        own conv alone reads is made in the steps of that conv.

        >>> convs = [Conv2d(out_channels=8), Conv2d(out_channels=8, add=Add(from_="input"))]
        >>> Chain(input=(1, 8, 8, 8), conv=tuple(convs)).homes
        (1, 1)
        """
        found = dict[int, int]()
        around = {len(self.conv) - 1: {len(self.conv) - 1}}
        for tensor in reversed(range(len(self.conv))):
            home = tensor
            while not all(home in around[reader] for reader in self.readers[tensor]):
                home = found[home + 1]
            found[tensor] = home
            around[tensor - 1] = {tensor - 1, *around[home]}
        return tuple(found[tensor] for tensor in range(len(self.conv)))

    @cached_property
    def whole(self) -> frozenset[int]:
        """The tensors that one step of their home reads and makes whole: those between a tensor and its home.

        >>> convs = [Conv2d(out_channels=8), Conv2d(out_channels=8, add=Add(from_="input"))]
        >>> sorted(Chain(input=(1, 8, 8, 8), conv=tuple(convs)).whole)
        [1]
        """
        return frozenset(between for tensor, home in enumerate(self.homes) for between in range(tensor + 1, home + 1))

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

        A pool sums nothing: its filter has no input channels, and so no elements.

        >>> Chain(input=(1, 8, 8, 64), conv=(Conv2d(out_channels=32, kernel=(3, 1), groups=2),)).filter_shapes
        ((32, 32, 3, 1),)
        """
        sources = self.shapes[:-1]
        return tuple(
            (conv.out_channels, 0 if conv.pool else shape[3] // conv.groups, *conv.kernel)
            for conv, shape in zip(self.conv, sources, strict=True)
        )

    @cached_property
    def filters(self) -> tuple[int, ...]:
        """The numbers of the convs, from 1, that have a filter: all but pools."""
        return tuple(number for number, conv in enumerate(self.conv, 1) if not conv.pool)

    def elements_per_output(self, index: int) -> int:
        """How many elements of its source one output element of conv `index` is made of."""
        return prod(self.filter_shapes[index][1:]) or prod(self.conv[index].kernel)

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
    def phases(self) -> tuple[tuple[int, int], ...]:
        """The phase images of every tensor, down and across: 1 by 1 where a nest reads pixels that lie apart."""
        return ((1, 1),) * len(self.shapes)

    @property
    def unfolded(self) -> Unfolding | None:
        """How the input lies in memory, where its channels hold taps of the first conv's kernel."""
        return None

    @property
    def image(self) -> tuple[int, int, int, int]:
        """The input as it lies in memory, (N, H, W, C)."""
        return self.unfolded.image if self.unfolded else self.input

    @property
    def leaves_zeros_out(self) -> bool:
        """Whether columns of padding whose products are 0 are not stored: packets add nothing for them."""
        return False

    @property
    def pads_in_slabs(self) -> bool:
        """Whether padding above intermediates takes whole slabs (`hexconv.spec.extents`)."""
        return False

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
        """The dtype of the sums of conv `index`: that of biases, or int64 where they leave int32 and are scaled.

        A pool has elements of the chain.
        """
        conv = self.conv[index]
        if conv.pool:
            return self.dtype
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
        conv = self.conv[index]
        return "int32" if self.is_integer and not (conv.requantize or conv.pool) else self.dtype

    def padding_value(self, tensor: int) -> float:
        """What stands around the elements of a tensor that is read: its zero point, or what a pool takes for none."""
        if not self.conv[tensor].pool:
            return self.output_zero_point(tensor)
        return INTEGER_RANGE[self.dtype][0] if self.is_integer else LEAST_FLOAT[self.dtype]

    def output_zero_point(self, index: int) -> int:
        """The zero point of tensor `index`: tensor 0 is the input, tensor i the output of the i-th conv."""
        if index == 0:
            return self.zero_point
        add = self.conv[index - 1].add
        return add.zero_point if add else self.own_zero_point(index - 1)

    def own_zero_point(self, index: int) -> int:
        """The zero point of what conv `index` makes, before anything is added to it."""
        conv = self.conv[index]
        if conv.pool:
            return self.output_zero_point(index)
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


def with_exact(chain: Chain) -> Chain:
    """Return a chain whose convs all are requantised exactly, none by the matrix engine's convert."""
    exact = [conv.requantize and replace(conv.requantize, engine="exact") for conv in chain.conv]
    return replace(chain, conv=tuple(replace(c, requantize=how) for c, how in zip(chain.conv, exact, strict=True)))
