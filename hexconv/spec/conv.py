"""One convolution of a chain, as a user states it: logical, with no layout and no schedule."""

from functools import cached_property
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo
from pydantic.dataclasses import dataclass

from hexconv.hashed import hashed_once
from hexconv.spec.activations import CURVES, Activation, Curve
from hexconv.spec.fields import STRICT, Pair, Rows, Size
from hexconv.spec.requantize import Requantize, ZeroPoint
from hexconv.spec.wrong import in_one_line

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
    if isinstance(value, (list, tuple)) and len(value) == 4:
        sides = dict(zip(("top", "left", "bottom", "right"), value, strict=True))
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
            int32 leaves beside the sums and the numbers that requantisation adds to them (`hexconv.spec.sums`).
        sum_limit: for integer chains, the largest absolute value that a sum of any output channel has, bias included:
            the bias of each channel beside its own filter. If left out, the largest that `filter_l1` and `bias_limit`
            allow together, as if one channel had both. Beyond int32, plain sums in 64 bits.
        requantize: how an integer chain returns to its dtype; the last conv may leave it out and stay int32.
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
            f"g{self.groups}" if self.groups != 1 else "",
        ]
        return "".join(parts)
