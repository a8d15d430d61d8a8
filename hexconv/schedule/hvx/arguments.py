"""The arguments of the kernel of a chain."""

import math
from collections.abc import Sequence

from tvm import tirx

from hexconv.schedule.arguments import Arguments
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.stage import CHANNELS, Stage
from hexconv.spec import Chain, tensor_extents


def arguments_of(chain: Chain, stages: Sequence[Stage]) -> Arguments:
    """The buffers of a chain, as `hexconv.compute.chain_module` has them."""
    last, dtype = tensor_extents(chain)[-1], chain.output_dtype(len(stages) - 1)
    return Arguments(
        image=_argument("input", chain.input, chain.dtype),
        filters=tuple(
            _argument(
                f"filter{number}",
                (stage.out_blocks, stage.in_blocks, *stage.kernel, 8, CHANNELS, 4),
                chain.dtype_of_filters,
            )
            for number, stage in enumerate(stages, 1)
        ),
        biases=tuple(
            _argument(f"bias{number}", (stage.out_channels,), "int32") if stage.has_bias else None
            for number, stage in enumerate(stages, 1)
        ),
        output=_argument("output", last.packed_shape, dtype),
    )


def _argument(name: str, shape: tuple[int, ...], dtype: str) -> tirx.Buffer:
    """An argument; vectors are loaded and stored where a multiple of 128 bytes is known, so it has to start at one."""
    return tirx.decl_buffer(shape, dtype, name, data_alignment=vector.BYTES)


def elements(buffer: tirx.Buffer) -> int:
    """Elements of a buffer of constant shape."""
    return math.prod(int(extent) for extent in buffer.shape)
