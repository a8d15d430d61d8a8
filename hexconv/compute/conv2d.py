"""One conv2d over packed tensors, and the packing of its first input, in TE."""

from dataclasses import dataclass

from tvm import te, tirx

from hexconv.compute.stored import Position, activation_layout, filter_layout
from hexconv.spec import Conv2d, Extents


@dataclass(frozen=True)
class Source:
    """What a conv reads.

    Attributes:
        tensor: NHWC8h8w32c, stored as `hexconv.spec.extents` says.
        extents: its stored extents; the rest of its last channel block is never read.
        zero_point: of its elements.
    """

    tensor: te.Tensor
    extents: Extents
    zero_point: int


def pack_input(image: te.Tensor, extents: Extents, zero_point: int) -> te.Tensor:
    """The stored part of the logical NHWC input as NHWC8h8w32c, `zero_point` wherever no logical element is.

    Padding and packing are one stage, so that the schedule can make them the input cache read (seed document 003,
    "Packed input").
    """
    layout = activation_layout(extents)

    def element(
        n: tirx.Var, ho: tirx.Var, wo: tirx.Var, co: tirx.Var, hi: tirx.Var, wi: tirx.Var, ci: tirx.Var
    ) -> tirx.Expr:
        at = Position.of(layout, (n, ho, wo, co, hi, wi, ci))
        logical = image[at.n, at.row - extents.top, at.column - extents.left, at.channel]
        return at.where_logical(extents, logical, tirx.const(zero_point, image.dtype))

    return te.compute(layout.physical_shape, element, name="input_cache")


def conv2d(conv: Conv2d, source: Source, filter: te.Tensor, output: Extents, dtype: str, name: str) -> te.Tensor:
    """The sums of a conv2d, NHWC8h8w32c in `dtype`; zero where the output has no logical element.

    Args:
        conv: the geometry.
        source: what it reads.
        filter: as `filter_layout` says.
        output: stored extents of the result.
        dtype: of the accumulator.
        name: of the stage, its block and its buffer.

    The condition stands inside the sum and depends on no reduction axis: what lies outside is never read, so no index
    leaves its buffer (the 3x3 listing of seed document 003 reads past its caches here).
    """
    (sh, sw), (dh, dw) = conv.stride, conv.dilation
    from_layout, to_layout = activation_layout(source.extents), activation_layout(output)
    taps = filter_layout(conv, source.extents.channels)
    inputs, outputs = source.extents.channels // conv.groups, conv.out_channels // conv.groups
    rc = te.reduce_axis((0, inputs), "rc")
    rh = te.reduce_axis((0, conv.kernel[0]), "rh")
    rw = te.reduce_axis((0, conv.kernel[1]), "rw")

    def product(to: Position) -> tirx.Expr:
        channel = rc if conv.groups == 1 else tirx.floordiv(to.channel, outputs) * inputs + rc
        at = Position(to.n, to.row * sh + rh * dh, to.column * sw + rw * dw, channel)
        value = source.tensor[at.packed(from_layout)]
        tap = filter[taps.physical_index(o=to.channel, i=rc, h=rh, w=rw)]
        return _centred(value, source.zero_point, dtype) * _centred(tap, conv.filter_zero_point, dtype)

    def element(
        n: tirx.Var, ho: tirx.Var, wo: tirx.Var, ko: tirx.Var, hi: tirx.Var, wi: tirx.Var, ki: tirx.Var
    ) -> tirx.Expr:
        to = Position.of(to_layout, (n, ho, wo, ko, hi, wi, ki))
        value = to.where_logical(output, product(to), tirx.const(0, dtype))
        return te.sum(value, axis=[rc, rh, rw])

    return te.compute(to_layout.physical_shape, element, name=name)


def _centred(value: tirx.Expr, zero_point: int, dtype: str) -> tirx.Expr:
    """A value in the accumulator's dtype, its zero point subtracted."""
    wide = value.astype(dtype)
    return wide - tirx.const(zero_point, dtype) if zero_point else wide
