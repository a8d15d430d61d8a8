"""A whole chain as one PrimFunc: packed input, convs, epilogues, in the order of the data."""

import tvm
from tvm import te

from hexconv.compute.conv2d import Source, conv2d, pack_input
from hexconv.compute.epilogue import epilogue, needs_epilogue
from hexconv.compute.stored import filter_layout
from hexconv.spec import Chain, Extents, tensor_extents


def chain_module(chain: Chain) -> tvm.IRModule:
    """The chain as an unscheduled module with one PrimFunc `main`.

    Its arguments: `input` (logical NHWC), `filter1`, `filter2`, ... (OIHW8i32o4i, or OIHW32o of small
    groups), `bias1`, ... where a conv has one
    ([K] in the accumulator's dtype), and `output` (NHWC8h8w32c) last.

    Its blocks: `input_cache`; per conv but the last `intermediateI`, at last `output`; and where a conv has an epilogue
    `accumulatorI` before it.
    """
    extents = tensor_extents(chain)
    image = te.placeholder(chain.input, chain.dtype, "input")
    filters = [_filter(chain, index) for index in range(len(chain.conv))]
    biases = [_bias(chain, index) for index in range(len(chain.conv))]
    tensor = pack_input(image, extents[0], chain.zero_point)
    for index in range(len(chain.conv)):
        source = Source(tensor, extents[index], chain.output_zero_point(index))
        tensor = _stage(chain, index, source, filters[index], biases[index], extents[index + 1])
    arguments = [image, *filters, *(bias for bias in biases if bias is not None), tensor]
    return tvm.IRModule({"main": te.create_prim_func(arguments)})


def output_name(chain: Chain, index: int) -> str:
    """Name of the tensor that conv `index` (from 0) writes."""
    return "output" if index == len(chain.conv) - 1 else f"intermediate{index + 1}"


def has_epilogue(chain: Chain, index: int) -> bool:
    """Whether conv `index` has an accumulator apart from its output."""
    return needs_epilogue(chain.conv[index], chain.accumulator_dtype, chain.output_dtype(index))


def _stage(
    chain: Chain, index: int, source: Source, filter: te.Tensor, bias: te.Tensor | None, output: Extents
) -> te.Tensor:
    """One conv with its epilogue."""
    conv, name = chain.conv[index], output_name(chain, index)
    sums_name = f"accumulator{index + 1}" if has_epilogue(chain, index) else name
    sums = conv2d(conv, source, filter, output, chain.accumulator_dtype, sums_name)
    if not has_epilogue(chain, index):
        return sums
    fringe = 0 if name == "output" else chain.output_zero_point(index + 1)
    return epilogue(conv, sums, bias, output, fringe, chain.output_dtype(index), name)


def _filter(chain: Chain, index: int) -> te.Tensor:
    """The packed filter of conv `index`."""
    shape = filter_layout(chain.conv[index], chain.shapes[index][3]).physical_shape
    return te.placeholder(shape, chain.dtype_of_filters, f"filter{index + 1}")


def _bias(chain: Chain, index: int) -> te.Tensor | None:
    """The bias of conv `index`, if it has one."""
    conv = chain.conv[index]
    return te.placeholder((conv.out_channels,), chain.accumulator_dtype, f"bias{index + 1}") if conv.bias else None
