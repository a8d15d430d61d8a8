"""Inputs of a run: logical tensors from a seed, and the packed arguments made of them.

With the packing of filters (`hexconv.run.tensors`) this is all that lays weights out. It is done in numpy, before a
run, and by `build` for the file of weights: no code of a kernel does it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod, sqrt

import numpy as np

from hexconv.kernel import (
    NestLayouts,
    Packing,
    documented_layouts,
    has_bytes_apart,
    has_runs,
    input_layout,
    layouts_of,
    output_layout,
)
from hexconv.kernel.form import without_groups
from hexconv.layout import Layout
from hexconv.run.fills import Fill, Fills, drawn_vectors, fills_of_run
from hexconv.run.measurement import Array
from hexconv.spec import Chain, Conv2d, Plan, choose_kernels
from hexconv.spec.case import check_weights, sums_by_channel
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import INPUT, bias_name, filter_name, numbered
from hexconv.spec.ranges import bias_limit
from hexconv.spec.strips import in_strips
from hexconv.spec.vectors import OF_CHANNELS, Vector, check_vectors, in_lookup_order, in_whole_blocks, vector_names


def laid_out(chain: Chain, plan: Plan, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arguments of a lowered chain by name, in the order of its parameters.

    Args:
        chain: the chain.
        plan: its plan, settled.
        given: the packed input and filters, then biases and vectors, by name and in the order of `chain_module`.
    """
    from hexconv.lower.step_calls import LAID_OUT_BY

    layouts, (nest, of_nest) = layouts_of(chain, plan), in_strips(chain, plan)
    constants, replaced = dict[str, Array](), set[str]()
    for index, choice in enumerate(choose_kernels(chain, plan)):
        if lay_out := LAID_OUT_BY.get(choice.used):
            constants |= lay_out(nest, index, layouts, of_nest, given)
            replaced |= {numbered(what, index + 1) for what in OF_CHANNELS}
    return {name: array for name, array in given.items() if name not in replaced} | constants


SUM_BYTES = 8
"""Bytes of a sum in the reference, which sums in float64 and int64."""


@dataclass(frozen=True)
class Tensors:
    """The logical inputs of a chain.

    Attributes:
        image: the input, NHWC.
        filters: the filters, OIHW, one per conv; that of a pool has no elements.
        biases: the biases, [K] or None, one per conv.
        vectors: the other vectors of the chain by name: multipliers and shifts per channel, tables of codes, slopes
            (`hexconv.spec.vectors`).
    """

    image: Array
    filters: tuple[Array, ...]
    biases: tuple[Array | None, ...]
    vectors: Mapping[str, Array] = field(default_factory=dict)

    @property
    def logical(self) -> tuple[Array, tuple[Array, ...], tuple[Array | None, ...], Mapping[str, Array]]:
        """The arguments that `hexconv.compute.reference` takes after the chain."""
        return self.image, self.filters, self.biases, self.vectors


def random_tensors(chain: Chain, seed: int = 0) -> Tensors:
    """Return tensors that are all random, drawn from `seed` (`filled_tensors`)."""
    return filled_tensors(chain, fills_of_run(chain, 0, seed), seed)


def random_image(chain: Chain, seed: int = 0) -> Array:
    """Return the image of `random_tensors`, for a run whose weights are given: none are drawn."""
    return _image(np.random.default_rng(seed), chain, fills_of_run(chain, 0, seed)[0])


def filled_tensors(chain: Chain, fills: Fills, seed: int = 0) -> Tensors:
    """Return tensors with the given fills; random values are drawn from `seed`.

    Integers. `random` draws from the whole range of a tensor, `least` and `most` are the ends of that range, and
    `alternating` switches between both ends. `one_hot` is the zero point everywhere but in one element of an image, of
    an output channel's filter, or of a bias; that element is the end farther from the zero point. The range is that of
    the dtype; for a bias it is what `bias_limit` says.

    Floats. The same, over -1 to 1. Filters are scaled so that every tensor of a chain has values of the order of one,
    or so much larger before an activation whose limits would else never act: 8 times before a relu6, of which a tenth
    is then above 6, or 4 times before a sigmoid (`hexconv.spec.activations`). The scale is the square root of their
    fan-in where signs are random, and the fan-in where all signs may agree.

    Filters with a limit on their sums (`filter_l1`) keep to it, and mostly come near it; the bias of each channel keeps
    to what its filter leaves of a `sum_limit`. The vectors of requantisations are always random
    (`hexconv.run.fills`).

    Args:
        chain: the chain whose tensors are made.
        fills: one fill for each tensor (`hexconv.run.fills`).
        seed: the seed of the random values.
    """
    random, convs = np.random.default_rng(seed), range(len(chain.conv))
    last = len(chain.filters) + 1
    of_filters, of_biases = dict(zip(chain.filters, fills[1:last], strict=True)), iter(fills[last:])
    image = _image(random, chain, fills[0])
    filters = tuple(_filter(random, chain, index, of_filters.get(index + 1)) for index in convs)
    biases = (
        _bias(random, chain, index, next(of_biases), filters[index]) if chain.conv[index].bias else None
        for index in convs
    )
    return Tensors(image, filters, tuple(biases), drawn_vectors(chain, seed))


def run_bytes(chain: Chain) -> int:
    """Return the least bytes of memory that a run and its reference need: tensors logical and packed, sums of 8 bytes.

    >>> from hexconv.spec import Conv2d
    >>> run_bytes(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)))
    13376
    """
    filters = sum(prod(shape) for shape in chain.filter_shapes) * np.dtype(chain.dtype_of_filters).itemsize
    image = (prod(chain.input) + prod(input_layout(chain).physical_shape)) * np.dtype(chain.dtype).itemsize
    packed_output = prod(output_shape(chain)) * np.dtype(chain.output_dtype(len(chain.conv) - 1)).itemsize
    sums = max(prod(source) + prod(target) for source, target in pairwise(chain.shapes)) * SUM_BYTES
    return image + 2 * filters + packed_output + sums


def packed_arguments(chain: Chain, tensors: Tensors, plan: Plan | None = None) -> list[Array]:
    """Return the inputs of the chain's lowered function, in order; what kernels want laid out is laid out here, once.

    The fringe of the input and of a filter holds values that no result may use.

    Args:
        chain: the chain.
        tensors: its logical inputs.
        plan: its plan, settled; without one, arguments are those of the documents.

    Raises:
        InputError: integer weights beyond the limits of the chain.
    """
    check_weights(chain, tensors.filters, tensors.biases)
    check_vectors(chain, tensors.vectors)
    layouts = layouts_of(chain, plan) if plan else documented_layouts(chain)
    filters = [
        _packed(filter, layout, packing) if filter.size else filter
        for filter, layout, packing in zip(
            _as_computed(chain, tensors.filters, layouts), layouts.filter_arguments, layouts.packings, strict=True
        )
    ]
    arguments = {INPUT: packed_image(chain, tensors.image)}
    arguments |= {filter_name(number): filters[number - 1] for number in chain.filters}
    arguments |= {bias_name(number): bias for number, bias in enumerate(tensors.biases, 1) if bias is not None}
    arguments |= {name: _vector(tensors.vectors[name], each, layouts) for name, each in vector_names(chain).items()}
    return list((laid_out(chain, plan, arguments) if plan else arguments).values())


def packed_image(chain: Chain, image: Array) -> Array:
    """Return the input of a chain in its layout; its fringe holds values that no result may use."""
    return input_layout(chain).pack(image, fill=_rest(chain.dtype))


def _vector(values: Array, vector: Vector, layouts: NestLayouts) -> Array:
    """Return a vector of values per channel, or a table, in the form that the kernels read."""
    if not layouts.has_rows:
        return values
    return in_whole_blocks(values) if vector.what in OF_CHANNELS else in_lookup_order(values)


def _as_computed(chain: Chain, filters: Sequence[Array], layouts: NestLayouts) -> Iterator[Array]:
    """Return filters as the nest has them: in a nest of rows, zero points fill the gaps of groups that it has."""
    computed = without_groups(chain) if layouts.has_rows else chain
    for index, (conv, filter) in enumerate(zip(computed.conv, filters, strict=True)):
        if layouts.packings[index].memory:
            yield filter
        elif diagonal := layouts.packings[index].diagonal:
            yield diagonal.blocks_of(_filled_up(conv, diagonal.groups, filter, diagonal.planes * CHANNEL_BLOCK))
        else:
            groups = chain.conv[index].groups
            yield filter if conv.groups == groups else _filled_up(conv, groups, filter, groups * filter.shape[1])


def _filled_up(conv: Conv2d, groups: int, filter: Array, channels: int) -> Array:
    """Return the filter of groups as that of one group of some channels, with the zero point in the gaps."""
    filled = np.full((len(filter), channels, *filter.shape[2:]), conv.filter_zero_point, filter.dtype)
    outputs, inputs = len(filter) // groups, filter.shape[1]
    for group in range(groups):
        own = slice(group * outputs, (group + 1) * outputs)
        filled[own, group * inputs : (group + 1) * inputs] = filter[own]
    return filled


def _packed(filter: Array, layout: Layout, packing: Packing) -> Array:
    """Return a filter as its kernel wants it."""
    moves = packing.shift or packing.added
    shifted = filter.astype(np.int32) + packing.shift if moves else filter
    shifted = _unfolded(shifted, packing.unfolded)
    if packing.taps:
        shifted = shifted.reshape(*shifted.shape[:2], -1)[..., packing.taps].reshape(shifted.shape)
    if packing.added:
        shifted = np.concatenate([shifted, *(np.full_like(shifted, each) for each in packing.added)], axis=2)
    rest = 0 if packing.pads_zeros else _rest(packing.dtype)
    return layout.pack(_with_axes_of(layout, shifted), fill=rest).astype(packing.dtype)


def _unfolded(filter: Array, taps: tuple[int, int]) -> Array:
    """Return a filter, OIHW, of which rows or columns of taps, all of them, are input channels; 1 stands for none."""
    outputs, inputs, rows, columns = filter.shape
    down, across = (1 if size == 1 else most for size, most in zip(taps, (rows, columns), strict=True))
    apart = filter.reshape(outputs, inputs, down, rows // down, across, columns // across)
    left = rows // down, columns // across
    return apart.transpose(0, 2, 4, 1, 3, 5).reshape(outputs, down * across * inputs, *left)


def _with_axes_of(layout: Layout, filter: Array) -> Array:
    """Give a filter, OIHW, the axes of its layout: bytes along an own axis, the high one first, or runs of weights."""
    if has_bytes_apart(layout):
        return np.stack(np.divmod(filter, 256), axis=-1)
    if has_runs(layout):
        outputs, _, rows, _ = filter.shape
        return np.moveaxis(filter, 1, -1).reshape(outputs, rows, -1)
    return filter


def output_shape(chain: Chain) -> tuple[int, ...]:
    """Shape of what leaves the chain, as its layout says."""
    return output_layout(chain).physical_shape


def _rest(dtype: str) -> float:
    """Return a value that would show in every result that used it."""
    return INTEGER_RANGE[dtype][1] if dtype in INTEGER_RANGE else float("nan")


def _image(random: np.random.Generator, chain: Chain, fill: Fill) -> Array:
    """Fill the chain's input, NHWC."""
    if not chain.is_integer:
        return _filled(random, fill, chain.input, -1.0, 1.0, 0.0, chain.dtype)
    return _filled(random, fill, chain.input, *INTEGER_RANGE[chain.dtype], chain.zero_point, chain.dtype)


def _filter(random: np.random.Generator, chain: Chain, index: int, fill: Fill | None) -> Array:
    """Fill the filter of conv `index`, OIHW; a pool has none, without elements."""
    conv, shape, dtype = chain.conv[index], chain.filter_shapes[index], chain.dtype_of_filters
    if fill is None:
        return np.zeros(shape, dtype)
    fan_in = prod(shape[1:])
    if not chain.is_integer:
        scale = conv.curve.spread * {"random": sqrt(3 / fan_in), "one_hot": 1.0}.get(fill, 1 / fan_in)
        return _filled(random, fill, shape, -scale, scale, 0.0, dtype)
    (low, high), zero_point = INTEGER_RANGE[dtype], conv.filter_zero_point
    if (limit := _limit_of_filter(chain, index)) is None:
        return _filled(random, fill, shape, low, high, zero_point, dtype)
    # Random taps share the limit; of extremes a few take all of it.
    most = max(1, 2 * limit // fan_in) if fill == "random" else limit
    ends = max(low, zero_point - most), min(high, zero_point + most)
    return _kept_to(limit, zero_point, _filled(random, fill, shape, *ends, zero_point, dtype))


def _limit_of_filter(chain: Chain, index: int) -> int | None:
    """Return the largest sum of absolute values that a channel of a filter may have by all that its conv states."""
    conv = chain.conv[index]
    if conv.sum_limit is None:
        return conv.filter_l1
    furthest = max(abs(end - chain.output_zero_point(index)) for end in INTEGER_RANGE[chain.dtype])
    limit = conv.sum_limit // furthest
    return limit if conv.filter_l1 is None else min(conv.filter_l1, limit)


def _kept_to(limit: int, zero_point: int, filter: Array) -> Array:
    """Keep the first taps of each output channel, as many as the limit on their absolute sum allows; clear the rest."""
    flat = filter.reshape(filter.shape[0], -1)
    sums = np.cumsum(np.abs(flat.astype(np.int64) - zero_point), axis=1)
    return np.where(sums <= limit, flat, np.asarray(zero_point, filter.dtype)).reshape(filter.shape)


def _bias(random: np.random.Generator, chain: Chain, index: int, fill: Fill, filter: Array) -> Array:
    """Fill the bias of conv `index` with values large enough to matter beside the sums."""
    shape = (1, chain.conv[index].out_channels)  # as a filter: one element of it is hot
    if not chain.is_integer:
        return _filled(random, fill, shape, -0.5, 0.5, 0.0, chain.bias_dtype)[0]
    limit = bias_limit(chain, index)
    if fill == "random":
        drawn = _of_every_size(random, limit, shape[1])
    else:
        drawn = _filled(random, fill, shape, -limit, limit, 0, "int32")[0]
    if (most := chain.conv[index].sum_limit) is None:
        return drawn
    least_sums, most_sums = sums_by_channel(chain, index, filter, None)
    return np.clip(drawn, -most - least_sums, most - most_sums).astype(np.int32)


def _of_every_size(random: np.random.Generator, limit: int, channels: int) -> Array:
    """Draw biases of either sign up to a limit: some outweigh the sums, and some don't."""
    sizes = np.floor((limit + 1.0) ** random.uniform(0, 1, channels))
    return (random.choice((-1, 1), channels) * np.minimum(sizes, limit)).astype(np.int32)


def _filled(
    random: np.random.Generator, fill: Fill, shape: tuple[int, ...], low: float, high: float, zero: float, dtype: str
) -> Array:
    """Fill one tensor with values from `low` to `high`; `zero` is its zero point."""
    if fill == "random":
        if np.issubdtype(dtype, np.integer):
            return random.integers(int(low), int(high), shape, dtype, endpoint=True)
        return random.uniform(low, high, shape).astype(dtype)
    if fill == "alternating":
        return np.resize(np.array([low, high], dtype), prod(shape)).reshape(shape)
    if fill == "one_hot":
        values = np.full((shape[0], prod(shape[1:])), zero, dtype)
        hot = random.integers(values.shape[1], size=shape[0])
        values[np.arange(shape[0]), hot] = high if high - zero >= zero - low else low
        return values.reshape(shape)
    return np.full(shape, high if fill == "most" else low, dtype)
