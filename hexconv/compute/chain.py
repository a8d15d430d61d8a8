"""Build a whole chain as one PrimFunc: the packed input, then each conv with its epilogue."""

from dataclasses import replace
from functools import partial

import tvm
from tvm import te, tirx

from hexconv.compute.conv2d import Filter, Image, Source, conv2d, pack_input, write_output
from hexconv.compute.epilogue import Beside, Vectors, epilogue, needs_epilogue
from hexconv.compute.stored import Index, Stored
from hexconv.kernel import Forms, documented_forms, input_layout
from hexconv.kernel.grouped import diagonal_of, without_groups
from hexconv.kernel.table import lookup_place
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.names import OUTPUT, OUTPUT_CACHE, accumulator, bias_name, filter_name, intermediate
from hexconv.spec.strips import Strips
from hexconv.spec.vectors import OF_CHANNELS, vector_names, whole_channels


def chain_module(chain: Chain, forms: Forms | None = None, strips: Strips | None = None) -> tvm.IRModule:
    """The chain as an unscheduled module with one PrimFunc `main`.

    Its arguments: `input` (`Chain.input_layout`), `filter1`, `filter2`, ... (as `forms` says), `bias1`, ... where a
    conv has one ([K] of int32, or float32), `multiplier1`, `shift1`, ... where a conv has one value per channel
    (int32, [K]; a nest of rows rounds K up to whole blocks of 32), `table1`, ... where a conv has one ([256] codes; a
    nest of rows keeps them in the order of `hexconv.kernel.table`), and `output` (`Chain.output_layout`) last.

    Its blocks: `input_cache`; then `intermediateI` for each conv I but the last, and `output` for the last one, after
    `output_cache` where the output cache has another layout. A conv with an epilogue has a block `accumulatorI` before
    its result.

    Args:
        chain: what to compute.
        forms: the layouts of all tensors, by default those of the document.
        strips: the strips that the chain is a batch of, where it is one: `input` is then the whole images.
    """
    forms = forms or documented_forms(chain)
    chain = without_groups(chain) if forms.has_rows else chain
    stored = _all_stored(chain, forms, strips)
    layout = input_layout(chain, strips.images if strips else None)
    image = Image(te.placeholder(layout.physical_shape, chain.dtype, "input"), layout)
    filters = [_filter(chain, forms, index) for index in range(len(chain.conv))]
    biases = [_bias(chain, index) for index in range(len(chain.conv))]
    vectors = _vectors(chain, forms)
    tensor = pack_input(image, stored[0], chain.zero_point, strips)
    for index in range(len(chain.conv)):
        source = Source(tensor, stored[index], chain.output_zero_point(index))
        ends = has_epilogue(chain, index, forms)
        beside = Beside(biases[index], vectors[index], lookup_place if forms.has_rows else _as_it_is)
        name = output_name(chain, index, forms)
        tensor = _stage(chain, index, source, filters[index], beside, stored[index + 1], ends, name)
    if forms.lays_output_out:
        tensor = write_output(tensor, stored[-1], Stored(tensor_extents(chain)[-1], forms.output))
    packed = [filter.tensor for filter in filters]
    beside = [tensor for of_conv in vectors for tensor in of_conv.values()]
    arguments = [image.tensor, *packed, *(bias for bias in biases if bias is not None), *beside, tensor]
    return tvm.IRModule({"main": te.create_prim_func(arguments)})


def _all_stored(chain: Chain, forms: Forms, strips: Strips | None) -> list[Stored]:
    """Every tensor as it is stored; a strip has the columns of a tensor that lie in the image."""
    stored = [Stored(*each) for each in zip(tensor_extents(chain), forms.activations, strict=True)]
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


def output_name(chain: Chain, index: int, forms: Forms) -> str:
    """The name of the tensor that conv `index` (from 0) writes."""
    if index < len(chain.conv) - 1:
        return intermediate(index + 1)
    return OUTPUT_CACHE if forms.lays_output_out else OUTPUT


def has_epilogue(chain: Chain, index: int, forms: Forms) -> bool:
    """Whether conv `index` (from 0) has an accumulator apart from its output; in a nest of rows each conv has one."""
    return forms.has_rows or needs_epilogue(chain.conv[index], chain.sum_dtype(index), chain.output_dtype(index))


def _stage(
    chain: Chain,
    index: int,
    source: Source,
    filter: Filter,
    beside: Beside,
    output: Stored,
    ends: bool,
    name: str,
) -> te.Tensor:
    """The stages of one conv: its sums, and its epilogue if it `ends` in one."""
    conv = chain.conv[index]
    sums = conv2d(conv, source, filter, output, chain.sum_dtype(index), accumulator(index + 1) if ends else name)
    if not ends:
        return sums
    fringe = 0 if index == len(chain.conv) - 1 else chain.output_zero_point(index + 1)
    return epilogue(conv, sums, beside, output, fringe, chain.output_dtype(index), name)


def _filter(chain: Chain, forms: Forms, index: int) -> Filter:
    """The packed filter of conv `index`."""
    layout = forms.filters[index]
    packing = forms.packings[index]
    tensor = te.placeholder(layout.physical_shape, packing.dtype, filter_name(index + 1))
    channels = chain.filter_shapes[index][1]
    diagonal = diagonal_of(chain, index) if forms.has_rows else None
    return Filter(tensor, layout, channels, chain.conv[index].filter_zero_point + packing.shift, diagonal)


def _bias(chain: Chain, index: int) -> te.Tensor | None:
    """The bias of conv `index`, if it has one."""
    conv = chain.conv[index]
    return te.placeholder((conv.out_channels,), chain.bias_dtype, bias_name(index + 1)) if conv.bias else None


def _vectors(chain: Chain, forms: Forms) -> list[Vectors]:
    """For each conv, the per-channel values of its requantisation, and its table."""
    found: list[dict[str, te.Tensor]] = [{} for _ in chain.conv]
    for name, each in vector_names(chain).items():
        in_blocks = forms.has_rows and each.what in OF_CHANNELS
        elements = whole_channels(each.elements) if in_blocks else each.elements
        found[each.number - 1][each.what] = te.placeholder((elements,), each.dtype, name)
    return [*found]


def _as_it_is(code: tirx.Expr) -> tirx.Expr:
    """The place of a code's entry in a table whose entries stand in the order of codes: the code itself."""
    return code
