"""One conv2d over packed tensors, and the packing of its first input, in TE."""

from tvm import te, tirx

from hexconv.compute.stored import Position
from hexconv.spec.conv import Conv2d
from hexconv.spec.extents import CHANNEL_BLOCK, Extents

FILTER_INNER_CHANNELS = 4


def pack_input(image: te.Tensor, extents: Extents, zero_point: int) -> te.Tensor:
    """The stored part of the logical NHWC input as NHWC8h8w32c, `zero_point` wherever no logical element is.

    Padding and packing are one stage, so that the schedule can make them the input cache read (seed document 003,
    "Packed input").
    """

    def element(*index: tirx.Var) -> tirx.Expr:
        at = Position.of(*index)
        logical = image[at.n, at.row - extents.top, at.column - extents.left, at.channel]
        return at.where_logical(extents, logical, tirx.const(zero_point, image.dtype))

    def packed(
        n: tirx.Var, ho: tirx.Var, wo: tirx.Var, co: tirx.Var, hi: tirx.Var, wi: tirx.Var, ci: tirx.Var
    ) -> tirx.Expr:
        return element(n, ho, wo, co, hi, wi, ci)

    return te.compute(extents.packed_shape, packed, name="input_cache")


def filter_shape(conv: Conv2d, in_channels: int) -> tuple[int, ...]:
    """OIHW8i32o4i: [O/32, I/32, H, W, 8, 32, 4], rounded up.

    >>> filter_shape(Conv2d(out_channels=40, kernel=(3, 1)), 64)
    (2, 2, 3, 1, 8, 32, 4)
    """
    blocks = (-(-conv.out_channels // CHANNEL_BLOCK), -(-in_channels // CHANNEL_BLOCK))
    return (*blocks, *conv.kernel, CHANNEL_BLOCK // FILTER_INNER_CHANNELS, CHANNEL_BLOCK, FILTER_INNER_CHANNELS)


def conv2d(
    conv: Conv2d,
    source: te.Tensor,
    filter: te.Tensor,
    zero_point: int,
    output: Extents,
    in_channels: int,
    dtype: str,
    name: str,
) -> te.Tensor:
    """The sums of a conv2d, NHWC8h8w32c in `dtype`; zero where the output has no logical element.

    Args:
        conv: the geometry.
        source: NHWC8h8w32c, stored as `hexconv.spec.extents` says.
        filter: OIHW8i32o4i.
        zero_point: of the source.
        output: stored extents of the result.
        in_channels: logical channels of the source; the rest of its last block is never read.
        dtype: of the accumulator.
        name: of the stage, its block and its buffer.

    The condition stands inside the sum and depends on no reduction axis: what lies outside is never read, so no index
    leaves its buffer (the 3x3 listing of seed document 003 reads past its caches here).
    """
    (sh, sw), (dh, dw) = conv.stride, conv.dilation
    rc = te.reduce_axis((0, in_channels), "rc")
    rh = te.reduce_axis((0, conv.kernel[0]), "rh")
    rw = te.reduce_axis((0, conv.kernel[1]), "rw")

    def product(to: Position, ko: tirx.Var, ki: tirx.Var) -> tirx.Expr:
        at = Position(to.n, to.row * sh + rh * dh, to.column * sw + rw * dw, rc)
        inner = rc % CHANNEL_BLOCK
        tap = filter[ko, rc // CHANNEL_BLOCK, rh, rw, inner // FILTER_INNER_CHANNELS, ki, inner % FILTER_INNER_CHANNELS]
        return _centred(source[at.packed], zero_point, dtype) * _centred(tap, conv.filter_zero_point, dtype)

    def element(
        n: tirx.Var, ho: tirx.Var, wo: tirx.Var, ko: tirx.Var, hi: tirx.Var, wi: tirx.Var, ki: tirx.Var
    ) -> tirx.Expr:
        to = Position.of(n, ho, wo, ko, hi, wi, ki)
        value = to.where_logical(output, product(to, ko, ki), tirx.const(0, dtype))
        return te.sum(value, axis=[rc, rh, rw])

    return te.compute(output.packed_shape, element, name=name)


def _centred(value: tirx.Expr, zero_point: int, dtype: str) -> tirx.Expr:
    """A value in the accumulator's dtype, its zero point subtracted."""
    wide = value.astype(dtype)
    return wide - tirx.const(zero_point, dtype) if zero_point else wide
