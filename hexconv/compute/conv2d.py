"""One conv2d over packed tensors, and the packing of its first input, in TE."""

from dataclasses import dataclass

from tvm import te, tirx

from hexconv.compute.stored import Index, Position, Stored
from hexconv.kernel import has_bytes_apart, has_runs
from hexconv.kernel.grouped import Diagonal
from hexconv.layout import Layout
from hexconv.spec import Conv2d
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import INPUT_CACHE, OUTPUT
from hexconv.spec.strips import Strips


@dataclass(frozen=True)
class Image:
    """The input as it comes.

    Attributes:
        tensor: the argument.
        layout: its layout.
    """

    tensor: te.Tensor
    layout: Layout

    def element_at(self, image: Index, row: Index, column: Index, channel: Index) -> tirx.Expr:
        """One logical element."""
        return self.tensor[self.layout.physical_index(n=image, h=row, w=column, c=channel)]


@dataclass(frozen=True)
class Source:
    """The tensor that a conv reads.

    Attributes:
        tensor: the packed tensor.
        stored: which part of it is stored, and how; the rest of its last channel block is never read.
        zero_point: the zero point of its elements.
    """

    tensor: te.Tensor
    stored: Stored
    zero_point: int


@dataclass(frozen=True)
class Filter:
    """The filter that a conv multiplies with.

    Attributes:
        tensor: the packed filter.
        layout: the layout of the packed filter.
        channels: the input channels that an output channel has weights for.
        zero_point: the zero point of its elements.
        diagonal: the input channels that it has for each output channel, if these differ; else None.
    """

    tensor: te.Tensor
    layout: Layout
    channels: int
    zero_point: int
    diagonal: Diagonal | None = None

    def element_at(self, output: Index, channel: Index, row: Index, column: Index) -> tirx.Expr:
        """One weight; where the bytes of a weight lie apart, they are put together."""
        if has_runs(self.layout):
            return self.tensor[self.layout.physical_index(o=output, h=row, r=column * self.channels + channel)]
        place = {"o": output, "i": channel, "h": row, "w": column}
        if not has_bytes_apart(self.layout):
            return self.tensor[self.layout.physical_index(**place)]
        high, low = (self.tensor[self.layout.physical_index(**place, b=byte)] for byte in (0, 1))
        return high.astype("int32") * 256 + low.astype("int32")


def pack_input(image: Image, stored: Stored, zero_point: int, strips: Strips | None = None) -> te.Tensor:
    """Pack the stored part of the input, with `zero_point` wherever there is no logical element.

    Of strips, each is read where it begins in its image.

    Padding and packing are one stage, so that the schedule can turn it into the input cache read (seed document 003,
    "Packed input").
    """
    extents = stored.extents

    def element(*index: tirx.Var) -> tirx.Expr:
        at = Position.of(stored.layout, index)
        n, first = (strips.image_of(at.n), strips.first_read(at.n, tirx.min)) if strips else (at.n, -extents.left)
        logical = image.element_at(n, at.row - extents.top, first + at.column, at.channel)
        return at.where_logical(stored, logical, tirx.const(zero_point, image.tensor.dtype))

    return te.compute(stored.layout.physical_shape, element, name=INPUT_CACHE)


def write_output(cache: te.Tensor, stored: Stored, output: Stored) -> te.Tensor:
    """Copy the output from a cache of another layout, which holds all of the output, its fringe included.

    Args:
        cache: the output cache, which the last conv fills.
        stored: how the output cache lies.
        output: how the output lies.
    """

    def element(*index: tirx.Var) -> tirx.Expr:
        return stored.element_at(cache, Position.of(output.layout, index))

    return te.compute(output.layout.physical_shape, element, name=OUTPUT)


def conv2d(conv: Conv2d, source: Source, filter: Filter, output: Stored, dtype: str, name: str) -> te.Tensor:
    """Compute the packed sums of a conv2d in `dtype`; they are zero where the output has no logical element.

    Args:
        conv: the geometry of the conv.
        source: the tensor that the conv reads.
        filter: the filter that it multiplies with.
        output: which part of the result is stored, and how.
        dtype: the dtype of the accumulator.
        name: the name of the stage, of its block and of its buffer.

    The condition that an output element is logical stands inside the sum and depends on no reduction axis. So nothing
    is read for other elements, and no index leaves its buffer (the 3x3 listing of seed document 003 reads past its
    caches here).
    """
    (sh, sw), (dh, dw) = conv.stride, conv.dilation
    inputs, outputs = source.stored.extents.channels // conv.groups, conv.out_channels // conv.groups
    rc = te.reduce_axis((0, filter.diagonal.channels if filter.diagonal else inputs), "rc")
    rh = te.reduce_axis((0, conv.kernel[0]), "rh")
    rw = te.reduce_axis((0, conv.kernel[1]), "rw")
    of_product = "int32" if dtype == "int64" else dtype  # a product of int16 fits int32

    def product(to: Position) -> tirx.Expr:
        first = first_channel(filter.diagonal, to.channel) if filter.diagonal else to.channel // outputs * inputs
        channel = rc if conv.groups == 1 else first + rc
        at = Position(to.n, to.row * sh + rh * dh, to.column * sw + rw * dw, channel)
        value = source.stored.element_at(source.tensor, at)
        tap = filter.element_at(to.channel, rc, rh, rw)
        factors = centred(value, source.zero_point, of_product), centred(tap, filter.zero_point, of_product)
        return (factors[0] * factors[1]).astype(dtype)

    def element(*index: tirx.Var) -> tirx.Expr:
        to = Position.of(output.layout, index)
        value = to.where_logical(output, product(to), tirx.const(0, dtype))
        return te.sum(value, axis=[rc, rh, rw])

    return te.compute(output.layout.physical_shape, element, name=name)


def first_channel(diagonal: Diagonal, output: Index) -> Index:
    """The first input channel that a filter has for an output channel."""
    return diagonal.first_plane(output // CHANNEL_BLOCK, tirx.min) * CHANNEL_BLOCK


def centred(value: tirx.Expr, zero_point: int, dtype: str) -> tirx.Expr:
    """A value in the accumulator's dtype, with its zero point subtracted."""
    wide = value.astype(dtype)
    return wide - tirx.const(zero_point, dtype) if zero_point else wide
