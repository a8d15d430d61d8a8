"""A whole chain in TE as one PrimFunc: packed input, convs, and their epilogues: bias, activation, requantisation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import tvm
from tvm import te, tirx

from hexconv.compute.activation_code import activation
from hexconv.compute.requantised import LARGEST_SCALE, SCALE_BITS, VALUE_BITS, VALUE_SHIFT, converts
from hexconv.compute.stored import Index, Position, Stored
from hexconv.errors import Unsupported
from hexconv.kernel import NestLayouts, documented_layouts, has_bytes_apart, has_runs, input_layout
from hexconv.kernel.form import without_groups
from hexconv.kernel.layouts import Diagonal, Packing
from hexconv.layout import Layout
from hexconv.spec import Chain, Conv2d, tensor_extents
from hexconv.spec.activations import PRELU, SLOPE, TABLE
from hexconv.spec.addition import Add
from hexconv.spec.code_sums import CodeSum, integer_form
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.extents import CHANNEL_BLOCK, added_at, unstored_columns
from hexconv.spec.names import (
    INPUT_CACHE,
    OUTPUT,
    OUTPUT_CACHE,
    accumulator,
    bias_name,
    filter_cache,
    filter_name,
    intermediate,
)
from hexconv.spec.requantize import FRACTION_BITS, Requantize
from hexconv.spec.strips import Strips
from hexconv.spec.unfolded import Unfolding
from hexconv.spec.vectors import OF_CHANNELS, lookup_place, vector_names, whole_channels


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

    def unfolded_at(self, by: Unfolding, at: Position) -> tuple[tirx.Expr, list[tirx.Expr]]:
        """One element of the unfolded input, and the conditions of its being in the image."""
        channels = by.image[3]
        tap = at.channel // channels
        place = by.place(0, at.row, tap // by.kernel[1]), by.place(1, at.column, tap % by.kernel[1])
        inside: list[tirx.Expr] = []
        for axis, index in enumerate(place):
            before, behind = by.leaves(axis)
            inside += [index >= 0] if before else []
            inside += [index < by.image[axis + 1]] if behind else []
        return self.element_at(at.n, *place, at.channel % channels), inside


@dataclass(frozen=True)
class Source:
    """The tensor that a conv reads.

    Attributes:
        tensor: the packed tensor.
        stored: which part of it is stored, and how; the rest of its last channel block is never read.
        zero_point: the zero point of its elements.
        unstored: the columns of padding left of those that are stored; None where all padding is. Where some isn't,
            packets that know which columns are there take the place of the sums, which read the nearest.
    """

    tensor: te.Tensor
    stored: Stored
    zero_point: int
    unstored: int | None = None

    def row(self, row: Index) -> Index:
        """The stored row of one that is counted from the first that is read."""
        return row + self.stored.extents.lead

    def column(self, column: Index) -> Index:
        """The stored column of one that is counted from the first of padding."""
        if self.unstored is None:
            return column
        return tirx.min(tirx.max(column - self.unstored, 0), self.stored.extents.columns - 1)


@dataclass(frozen=True)
class Filter:
    """The filter that a conv multiplies with.

    Attributes:
        tensor: the packed filter that is multiplied: the argument, or what is made of it.
        layout: the layout of the filter that is multiplied.
        channels: the input channels that an output channel has weights for.
        zero_point: the zero point of its elements.
        diagonal: the input channels that it has for each output channel, if these differ; else None.
        rows: where it has several kernels, one below the other, of which a weight is the sum: the rows of each.
    """

    tensor: te.Tensor
    layout: Layout
    channels: int
    zero_point: int
    diagonal: Diagonal | None = None
    rows: int | None = None

    def element_at(self, output: Index, channel: Index, row: Index, column: Index) -> tirx.Expr:
        """One weight; what of it lies in several kernels is summed."""
        if self.rows is None:
            return self._stored_at(output, channel, row, column)
        firsts = range(0, self.layout.stored_extent("H"), self.rows)
        return sum(
            (self._stored_at(output, channel, first + row, column).astype("int32") for first in firsts),
            start=tirx.const(0, "int32"),
        )

    def _stored_at(self, output: Index, channel: Index, row: Index, column: Index) -> tirx.Expr:
        """One stored weight; where the bytes of a weight lie apart, they are put together."""
        if has_runs(self.layout):
            return self.tensor[self.layout.physical_index(o=output, h=row, r=column * self.channels + channel)]
        place = {"o": output, "i": channel, "h": row, "w": column}
        if not has_bytes_apart(self.layout):
            return self.tensor[self.layout.physical_index(**place)]
        high, low = (self.tensor[self.layout.physical_index(**place, b=byte)] for byte in (0, 1))
        return high.astype("int32") * 256 + low.astype("int32")


def pack_input(
    image: Image, stored: Stored, padding: float, strips: Strips | None = None, by: Unfolding | None = None
) -> te.Tensor:
    """Pack the stored part of the input, with `padding` wherever there is no logical element, or none of a tap.

    Of strips, each is read where it begins in its image.

    Padding and packing are one stage, so that the schedule can turn it into the input cache read (the Hexagon document,
    "Packed input").
    """
    extents = stored.extents

    def element(*index: tirx.Var) -> tirx.Expr:
        at = Position.of(stored.layout, index)
        fringe = stored.flipped(tirx.const(padding, image.tensor.dtype))
        if by:
            place = Position(at.n, at.row - extents.top, at.column - extents.left, at.channel)
            element, inside = image.unfolded_at(by, place)
            value = stored.flipped(element)
            return at.where_logical(
                stored, te.if_then_else(te.all(*inside), value, fringe) if inside else value, fringe
            )
        n, first = (strips.image_of(at.n), strips.first_read(at.n, tirx.min)) if strips else (at.n, -extents.left)
        logical = image.element_at(n, at.row - extents.top, first + at.column, at.channel)
        return at.where_logical(stored, stored.flipped(logical), fringe)

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
    is read for other elements, and no index leaves its buffer (the 3x3 listing of the Hexagon document reads past its
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
        at = Position(to.n, source.row(to.row * sh + rh * dh), source.column(to.column * sw + rw * dw), channel)
        value = source.stored.element_at(source.tensor, at)
        tap = filter.element_at(to.channel, rc, rh, rw)
        factors = centred(value, source.zero_point, of_product), centred(tap, filter.zero_point, of_product)
        return (factors[0] * factors[1]).astype(dtype)

    def element(*index: tirx.Var) -> tirx.Expr:
        to = Position.of(output.layout, index)
        value = to.where_logical(output, product(to), tirx.const(0, dtype))
        return te.sum(value, axis=[rc, rh, rw])

    return te.compute(output.layout.physical_shape, element, name=name)


def pool2d(conv: Conv2d, source: Source, output: Stored, fringe: float, name: str) -> te.Tensor:
    """Compute the largest element of each window, packed; `fringe` wherever the output has no logical element.

    Args:
        conv: the geometry of the pool.
        source: the tensor that it reads.
        output: which part of the result is stored, and how.
        fringe: what the next conv must read where there is no element.
        name: the name of the stage, of its block and of its buffer.
    """
    (sh, sw), (dh, dw) = conv.stride, conv.dilation
    rh, rw = te.reduce_axis((0, conv.kernel[0]), "rh"), te.reduce_axis((0, conv.kernel[1]), "rw")
    rc = te.reduce_axis((0, 1), "rc")  # as a conv has it

    def element(*index: tirx.Var) -> tirx.Expr:
        to = Position.of(output.layout, index)
        at = Position(to.n, to.row * sh + rh * dh, to.column * sw + rw * dw, to.channel + rc)
        value = source.stored.element_at(source.tensor, at)
        return te.max(to.where_logical(output, value, tirx.const(fringe, source.tensor.dtype)), axis=[rc, rh, rw])

    return te.compute(output.layout.physical_shape, element, name=name)


def first_channel(diagonal: Diagonal, output: Index) -> Index:
    """The first input channel that a filter has for an output channel."""
    return diagonal.first_plane(output // CHANNEL_BLOCK, tirx.min) * CHANNEL_BLOCK


def centred(value: tirx.Expr, zero_point: int, dtype: str) -> tirx.Expr:
    """A value in the accumulator's dtype, with its zero point subtracted."""
    wide = value.astype(dtype)
    return wide - tirx.const(zero_point, dtype) if zero_point else wide


Vectors = Mapping[str, te.Tensor]
"""What a conv has beside its filter and bias: per-channel `multiplier` and `shift`, `table`, or `slope`."""


@dataclass(frozen=True)
class ConvOperands:
    """The arguments of a conv after its filter: bias, requantisation, table and addend.

    Attributes:
        bias: [K] of int32, or of float32 for floats, or None. It may be a buffer instead of a TE tensor, as may all
            vectors.
        vectors: the per-channel values of its requantisation, [K] or more each, and its table, [256].
        place_of_entry: from a code, 0 to 255, to the place of its entry in the table.
        addend: from the position of an element of the output to the element that is added to it; None where none is.
        summed: the integer form of that sum, for integers.
    """

    bias: te.Tensor | None
    vectors: Vectors
    place_of_entry: Callable[[tirx.Expr], tirx.Expr]
    addend: Callable[[Position], tirx.Expr] | None = None
    summed: CodeSum | None = None


def needs_epilogue(conv: Conv2d, accumulator_dtype: str, output_dtype: str) -> bool:
    """Whether the sums are not yet the output, so that they need an accumulator tile of their own."""
    changes = conv.bias or conv.activation != "none" or conv.requantize is not None or conv.add is not None
    return changes or accumulator_dtype != output_dtype


def epilogue(
    conv: Conv2d,
    sums: te.Tensor,
    operands: ConvOperands,
    output: Stored,
    fringe: float,
    dtype: str,
    name: str,
) -> te.Tensor:
    """Compute the output of a conv from its sums, packed as they are; `fringe` wherever there is no logical element.

    Args:
        conv: the conv whose epilogue is applied.
        sums: the packed sums, in the accumulator's dtype.
        operands: the conv's bias, vectors and table.
        output: which part of the sums and of the output is stored, and how.
        fringe: the value outside of the logical region: what the next conv must read there, or 0 at the end of a chain.
        dtype: the dtype of the output.
        name: the name of the stage, of its block and of its buffer.
    """

    def element(*index: tirx.Var) -> tirx.Expr:
        at = Position.of(output.layout, index)
        value = finished(conv, sums(*index), sums.dtype, operands, at, dtype)
        outside = tirx.const(fringe, dtype)
        return at.where_logical(output, output.as_stored(value, at), output.as_stored(outside, at))

    return te.compute(output.layout.physical_shape, element, name=name)


def finished(
    conv: Conv2d, total: tirx.Expr, of_sums: str, operands: ConvOperands, at: Position, dtype: str
) -> tirx.Expr:
    """One element of the output, in `dtype`, from its sum, in the dtype `of_sums`."""
    channel = at.channel
    value = total if operands.bias is None else total + operands.bias[channel].astype(of_sums)
    if conv.activation != TABLE:
        value = activation(conv, value, operands.vectors[SLOPE][channel] if conv.activation == PRELU else None)
    if conv.requantize:
        by_channel = {what: operands.vectors[what][channel] for what in conv.requantize.vectors}
        value = requantized(value, conv.requantize, by_channel, dtype)
    if conv.activation == TABLE:
        value = operands.vectors[TABLE][operands.place_of_entry(value.astype("int32") - INTEGER_RANGE[dtype][0])]
    return _added(conv.add, value, operands, at, of_sums, dtype) if conv.add else value.astype(dtype)


def _added(add: Add, value: tirx.Expr, operands: ConvOperands, at: Position, of_sums: str, dtype: str) -> tirx.Expr:
    """The sum of an element of the conv and of another tensor's, in `dtype`; floats are added in `of_sums`."""
    assert operands.addend
    other = operands.addend(at)
    if operands.summed is None:
        total = value + other.astype(of_sums)
        least = total if add.activation == "none" else te.max(total, tirx.const(0, of_sums))
        return (te.min(least, tirx.const(6, of_sums)) if add.activation == "relu6" else least).astype(dtype)
    low = INTEGER_RANGE[dtype][0]
    one, another = (each.astype("int32") - low for each in (value, other))
    return (summed_codes(operands.summed, one, another) + low).astype(dtype)


def summed_codes(form: CodeSum, one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """The sum of two codes that count from 0 on, int32 (numpy's twin is `CodeSum.of_codes`)."""
    total = _hidden((one * form.one + other * form.other + form.constant) >> form.shift, "int32")
    made = te.min(te.max(total, tirx.const(form.ends[0], "int32")), tirx.const(form.ends[1], "int32"))
    for first, second, result in form.mended:
        made = tirx.Select(te.all(one == first, other == second), tirx.const(result, "int32"), made)
    return made


def requantized(value: tirx.Expr, by: Requantize, by_channel: Mapping[str, tirx.Expr], dtype: str) -> tirx.Expr:
    """Requantise a sum in TIR, in 64 bits so that nothing overflows (numpy's twin is `reference.requantized`)."""
    multiplier, shift = (
        by_channel[what].astype("int64") if what in by_channel else tirx.const(getattr(by, what), "int64")
        for what in ("multiplier", "shift")
    )
    wide = value.astype("int64")
    wide = wide if by.saturates_at is None else _clamped(wide, -by.saturates_at, by.saturates_at)
    if by.engine == "fast":
        return _converted(wide, by, dtype)
    rounded = (
        _to_even(wide * multiplier, by, FRACTION_BITS - shift)
        if by.rounding == "even"
        else _twice(wide, by, multiplier, shift)
    )
    moved = rounded + tirx.const(by.zero_point, "int64")
    shown = _hidden(moved) if by.clamp or _is_little(by) else moved
    return _clamped(shown, *by.codes(*INTEGER_RANGE[dtype])).astype(dtype)


def _converted(wide: tirx.Expr, by: Requantize, dtype: str) -> tirx.Expr:
    """Convert a sum to a code as the matrix engine does (numpy's twin is `requantised.converted`).

    Raises:
        Unsupported: each channel has a multiplier of its own, and this code has no tables.
    """
    if by.vectors:
        raise Unsupported(
            'plain has the convert of requantize.engine = "fast" for one multiplier, not for one a channel; '
            'plan kernel = "hmx" for hexagon, or say engine = "exact"'
        )
    found = converts(by, dtype)
    numbers = (found.added, found.exponent, found.scale, found.offset)
    added, exponent, scale, offset = (tirx.const(int(each.item()), "int64") for each in numbers)
    most = 1 << VALUE_BITS
    value = ((wide + added) << exponent) >> tirx.const(VALUE_SHIFT, "int64")
    # What has more bits than a value saturates at either end. A scale is 0 where no sum reaches another code; TVM
    # emits no code that reinterprets a 0.
    scaled = (_hidden(scale + 1) - 1) * 2 * _clamped(value, -most, most - 1)
    sixteenths = (scaled >> tirx.const(SCALE_BITS, "int64")) + offset
    code = (_clamped(sixteenths, 0, LARGEST_SCALE) >> tirx.const(4, "int64")) + INTEGER_RANGE[dtype][0]
    return _clamped(_hidden(code), *by.codes(*INTEGER_RANGE[dtype])).astype(dtype)


def _is_little(by: Requantize) -> bool:
    """Whether scaling makes any 32-bit sum less than one: a zero point at an end of the range then leaves one code."""
    return isinstance(by.shift, int) and by.shift < 0 and by.most_multiplier < 1 << -by.shift


def _hidden(value: tirx.Expr, dtype: str = "int64") -> tirx.Expr:
    """A value whose range is hidden from TVM.

    Where TVM can prove that a clamp or a scale leaves one code, it makes the result a constant: the conv reads nothing.
    """
    return tirx.reinterpret(dtype, tirx.reinterpret(f"u{dtype}", value))


def _to_even(product: tirx.Expr, by: Requantize, bits: tirx.Expr) -> tirx.Expr:
    """Round `product / 2**bits` half to even, after it is rounded half up to the stated binary places, if any are."""
    if by.fraction_bits is None:
        return _once(product, bits)
    dropped = FRACTION_BITS - by.lift
    kept = (product + tirx.const(1 << (dropped - 1), "int64")) >> tirx.const(dropped, "int64")
    return _once(kept, tirx.const(by.fraction_bits, "int64"))


def _once(product: tirx.Expr, bits: tirx.Expr) -> tirx.Expr:
    """`product / 2**bits` rounded to nearest, ties to even; `bits` is 1 or more."""
    one = tirx.const(1, "int64")
    is_odd = tirx.bitwise_and(product >> bits, one)
    return (product + ((one << (bits - one)) - one) + is_odd) >> bits


def _twice(wide: tirx.Expr, by: Requantize, multiplier: tirx.Expr, shift: tirx.Expr) -> tirx.Expr:
    """Scale as TFLite does: round the high half of the product, then round again in the shift."""
    left = max(by.shift, 0) if isinstance(by.shift, int) else 0
    wide = _clamped(wide * (1 << left), -(2**31), 2**31 - 1)
    if left:  # so that LLVM knows that it multiplies 32-bit words
        wide = wide.astype("int32").astype("int64")
    high = (wide * multiplier + tirx.const(1 << 30, "int64")) >> tirx.const(FRACTION_BITS, "int64")
    if isinstance(by.shift, int) and by.shift >= 0:
        return high
    bits, one = tirx.const(0, "int64") - shift, tirx.const(1, "int64")
    half = (one << bits) >> one
    # An arithmetic shift by 63 is -1 for negative values: their ties then fall away from zero, where there are any.
    away = (high >> tirx.const(63, "int64")) * te.min(bits, one) if by.rounding == "away" else tirx.const(0, "int64")
    return (high + half + away) >> bits


def _clamped(value: tirx.Expr, low: int, high: int) -> tirx.Expr:
    """`value` held between two 64-bit constants."""
    return te.min(te.max(value, tirx.const(low, "int64")), tirx.const(high, "int64"))


def chain_module(chain: Chain, layouts: NestLayouts | None = None, strips: Strips | None = None) -> tvm.IRModule:
    """The chain as an unscheduled module with one PrimFunc `main`.

    Its arguments: `input` (`Chain.input_layout`), `filter1`, `filter2`, ... (as `layouts` says), `bias1`, ... where a
    conv has one ([K] of int32, or float32), `multiplier1`, `shift1`, ... where a conv has one value per channel
    (int32, [K]; a nest of rows rounds K up to whole blocks of 32), `table1`, ... where a conv has one ([256] codes; a
    nest of rows keeps them in the order of `hexconv.spec.vectors`), and `output` (`Chain.output_layout`) last.

    Its blocks: `input_cache`; then `intermediateI` for each conv I but the last, and `output` for the last one, after
    `output_cache` where the output cache has another layout. A conv with an epilogue has a block `accumulatorI` before
    its result.

    Args:
        chain: what to compute.
        layouts: the layouts of all tensors, by default those of the document.
        strips: the strips that the chain is a batch of, where it is one: `input` is then the whole images.
    """
    layouts = layouts or documented_layouts(chain)
    chain = without_groups(chain) if layouts.has_rows else chain
    stored = _all_stored(chain, layouts, strips)
    layout = input_layout(chain, strips.images if strips else None)
    image = Image(te.placeholder(layout.physical_shape, chain.dtype, "input"), layout)
    packed = [_filter_argument(layouts, index) for index in range(len(chain.conv))]
    filters = [_filter(chain, layouts, index, argument) for index, argument in enumerate(packed)]
    biases = [_bias(chain, index) for index in range(len(chain.conv))]
    vectors = _vectors(chain, layouts)
    tensors = [pack_input(image, stored[0], chain.padding_value(0), strips, chain.unfolded)]
    for index in range(len(chain.conv)):
        unstored = unstored_columns(chain, index, stored[index + 1].extents)
        source = Source(tensors[index], stored[index], chain.output_zero_point(index), unstored)
        ends = has_epilogue(chain, index, layouts)
        operands = ConvOperands(biases[index], vectors[index], lookup_place if layouts.has_rows else _as_it_is)
        operands = with_addend(chain, index, operands, stored, tensors)
        name = output_name(chain, index, layouts)
        tensors.append(_stage(chain, index, source, filters[index], operands, stored[index + 1], ends, name))
    tensor = tensors[-1]
    if layouts.lays_output_out:
        tensor = write_output(tensor, stored[-1], Stored(tensor_extents(chain)[-1], layouts.output))
    packed = [argument for argument, conv in zip(packed, chain.conv, strict=True) if not conv.pool]
    beside = [tensor for of_conv in vectors for tensor in of_conv.values()]
    arguments = [image.tensor, *packed, *(bias for bias in biases if bias is not None), *beside, tensor]
    return tvm.IRModule({"main": te.create_prim_func(arguments)})


def with_addend(
    chain: Chain, index: int, operands: ConvOperands, stored: Sequence[Stored], tensors: Sequence[te.Tensor]
) -> ConvOperands:
    """Add to the arguments of conv `index` the element that it adds to another one; tensors may be buffers."""
    add = chain.conv[index].add
    if not add:
        return operands
    rows, columns = added_at(chain, index)

    def addend(at: Position) -> tirx.Expr:
        place = Position(at.n, at.row + rows, at.column + columns, at.channel)
        return stored[add.tensor].element_at(tensors[add.tensor], place)

    return replace(operands, addend=addend, summed=integer_form(chain.summed(index)) if chain.is_integer else None)


def _all_stored(chain: Chain, layouts: NestLayouts, strips: Strips | None) -> list[Stored]:
    """Every tensor as it is stored; a strip has the columns of a tensor that lie in the image."""
    stored = [Stored(*each) for each in zip(tensor_extents(chain), layouts.activations, strict=True)]
    if layouts.flips:
        stored = [*(replace(each, flips=True) for each in stored[:-1]), stored[-1]]
    for tensor in range(len(stored)):
        if strips and not strips.is_inside(tensor):
            valid = partial(_kept_valid if strips.keeps else _valid, strips, tensor)
            stored[tensor] = replace(stored[tensor], columns=valid)
    return stored


def _valid(strips: Strips, tensor: int, number: Index) -> tuple[Index, Index]:
    """The columns of strip `number` that lie in the image."""
    return strips.valid_columns(tensor, number, tirx.min, tirx.max)


def _kept_valid(strips: Strips, tensor: int, number: Index) -> tuple[Index, Index]:
    """The same of those that it makes. They may begin left of it: TVM can take two bounds apart, not three."""
    begin, end = strips.image_columns(tensor, number, tirx.min)
    return begin, tirx.min(end, strips.tensors[tensor].made)


def output_name(chain: Chain, index: int, layouts: NestLayouts) -> str:
    """The name of the tensor that conv `index` (from 0) writes."""
    if index < len(chain.conv) - 1:
        return intermediate(index + 1)
    return OUTPUT_CACHE if layouts.lays_output_out else OUTPUT


def has_epilogue(chain: Chain, index: int, layouts: NestLayouts) -> bool:
    """Whether conv `index` (from 0) has an accumulator apart from its output; in a nest of rows each conv has one."""
    return layouts.has_rows or needs_epilogue(chain.conv[index], chain.sum_dtype(index), chain.output_dtype(index))


def _stage(
    chain: Chain,
    index: int,
    source: Source,
    filter: Filter,
    operands: ConvOperands,
    output: Stored,
    ends: bool,
    name: str,
) -> te.Tensor:
    """The stages of one conv: its sums, and its epilogue if it `ends` in one."""
    conv, of_sums = chain.conv[index], accumulator(index + 1) if ends else name
    fringe = 0 if index == len(chain.conv) - 1 else chain.padding_value(index + 1)
    if conv.pool:
        sums = pool2d(conv, source, output, fringe, of_sums)
    else:
        sums = conv2d(conv, source, filter, output, chain.sum_dtype(index), of_sums)
    if not ends:
        return sums
    return epilogue(conv, sums, operands, output, fringe, chain.output_dtype(index), name)


def _filter_argument(layouts: NestLayouts, index: int) -> te.Tensor:
    """The argument with the packed filter of conv `index`."""
    shape, dtype = layouts.filter_arguments[index].physical_shape, layouts.packings[index].dtype
    return te.placeholder(shape, dtype, filter_name(index + 1))


def _filter(chain: Chain, layouts: NestLayouts, index: int, argument: te.Tensor) -> Filter:
    """The packed filter of conv `index`."""
    layout, packing = layouts.filters[index], layouts.packings[index]
    tensor = widened(argument, layout, packing, index) if packing.memory else argument
    channels = chain.filter_shapes[index][1]
    if packing.added:
        return Filter(tensor, layout, channels, 0, packing.diagonal, chain.conv[index].kernel[0])
    zero_point = chain.conv[index].filter_zero_point + packing.shift
    return Filter(tensor, layout, channels, zero_point, packing.diagonal)


def widened(argument: te.Tensor, layout: Layout, packing: Packing, index: int) -> te.Tensor:
    """Widen the filter of conv `index` to the layout of its cache, with zeros where memory has no weights.

    Args:
        argument: the filter in memory.
        layout: the layout of the cache.
        packing: how the filter lies in memory; where each output has one input of its own, the diagonal of blocks.
        index: the number of the conv, from 0.
    """
    memory = packing.memory
    assert memory, "a filter that memory holds without some zeros"

    def element(*at: tirx.Var) -> tirx.Expr:
        output, channel, row, column = layout.logical_index(at)
        if packing.diagonal:
            is_there = tirx.EQ(tirx.floormod(output, CHANNEL_BLOCK), channel)
            channel = 0
        else:
            is_there = channel < memory.stored_extent("I")
        weight = argument[memory.physical_index(o=output, i=channel, h=row, w=column)]
        return te.if_then_else(is_there, weight, tirx.const(0, packing.dtype))

    return te.compute(layout.physical_shape, element, name=filter_cache(index + 1))


def _bias(chain: Chain, index: int) -> te.Tensor | None:
    """The bias of conv `index`, if it has one."""
    conv = chain.conv[index]
    return te.placeholder((conv.out_channels,), chain.bias_dtype, bias_name(index + 1)) if conv.bias else None


def _vectors(chain: Chain, layouts: NestLayouts) -> list[Vectors]:
    """For each conv, the per-channel values of its requantisation, and its table."""
    found: list[dict[str, te.Tensor]] = [{} for _ in chain.conv]
    for name, each in vector_names(chain).items():
        in_blocks = layouts.has_rows and each.what in OF_CHANNELS
        elements = whole_channels(each.elements) if in_blocks else each.elements
        found[each.number - 1][each.what] = te.placeholder((elements,), each.dtype, name)
    return [*found]


def _as_it_is(code: tirx.Expr) -> tirx.Expr:
    """The place of a code's entry in a table whose entries stand in the order of codes: the code itself."""
    return code
