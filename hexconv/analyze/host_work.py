"""What the host kernels move and multiply, from the shapes and the plan alone: the closed form.

How many rows are computed is found by `hexconv.analyze.bands`. Rows of an intermediate at a seam count once if bands
hand them up, else twice. Rows of a cached input count once for every band that reads them.

MACs. Every pixel has whole vectors of output channels; the lanes that fill up the last vector count too.

Input. With an input cache, the new rows of every band count. An input that is read in place counts one element for
every tap and input channel of every pixel, and for every group of output channels that a tile computes together: no
cache of the plan holds it, so each load counts.

Filters count once, with whole words of four input channels and whole vectors of output channels, whether or not the
conv has that many. All of the output counts once, its fringe included. Biases are left out, as for the plain kernel.
"""

from math import ceil, prod

from hexconv.analyze.bands import PlannedBands
from hexconv.analyze.cache import DTYPE_BYTES
from hexconv.analyze.host import has_input_cache
from hexconv.analyze.needed import Work
from hexconv.kernel.host.registers import Registers, registers_of
from hexconv.kernel.host.tiles import split_evenly, tiling
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.names import conv_name, filter_name

WORD = 4
"""How many input channels lie together in a packed filter."""

ELEMENT_BYTES = DTYPE_BYTES["float32"]


def host_work(planned: PlannedBands) -> Work:
    """What a float32 chain with `kernel = "host"` moves and multiplies.

    >>> from hexconv.spec import Conv2d, Plan
    >>> conv, plan = Conv2d(out_channels=128, kernel=(3, 3)), Plan(kernel="host", threads=2)
    >>> work = host_work(PlannedBands(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), plan))
    >>> work.macs["conv1"] == 62 * 62 * 128 * 9 * 128, work.macs["conv2"] == 60 * 60 * 128 * 9 * 128
    (True, True)
    """
    chain, rows, registers = planned.chain, planned.computed_rows, registers_of(planned.plan.simd)
    images, order = chain.input[0], range(len(chain.conv))
    copied = rows[0] * prod(chain.input[2:])
    loaded = copied if has_input_cache(chain) else _loaded_in_place(chain, registers, rows[1])
    traffic = {"input": images * loaded * ELEMENT_BYTES}
    traffic |= {filter_name(index + 1): _filter_elements(chain, index, registers) * ELEMENT_BYTES for index in order}
    traffic["output"] = prod(tensor_extents(chain)[-1].packed_shape) * ELEMENT_BYTES
    macs = {conv_name(i + 1): images * rows[i + 1] * _row_macs(chain, i, registers) for i in order}
    return Work(traffic, macs)


def _loaded_in_place(chain: Chain, registers: Registers, rows: int) -> int:
    """How many elements of one image the first conv loads from the argument for `rows` rows of its output."""
    (_, height, width, _), depth, vectors = chain.shapes[1], _depth(chain, 0), _vectors(chain, 0, registers)
    groups = split_evenly(vectors, tiling(registers, height, width, vectors).vectors)
    return rows * width * depth * sum(count for count, _ in groups)


def _filter_elements(chain: Chain, index: int, registers: Registers) -> int:
    """How many elements of the packed filter of conv `index` are loaded."""
    words = prod(chain.conv[index].kernel) * ceil(chain.shapes[index][3] / WORD)
    return _vectors(chain, index, registers) * registers.lanes * words * WORD


def _row_macs(chain: Chain, index: int, registers: Registers) -> int:
    """How many multiply-accumulates one row of the output of conv `index` takes."""
    return chain.shapes[index + 1][2] * _vectors(chain, index, registers) * registers.lanes * _depth(chain, index)


def _depth(chain: Chain, index: int) -> int:
    """How many products one output element of conv `index` sums."""
    return prod(chain.conv[index].kernel) * chain.shapes[index][3]


def _vectors(chain: Chain, index: int, registers: Registers) -> int:
    """How many vectors the output channels of conv `index` fill."""
    return ceil(chain.conv[index].out_channels / registers.lanes)
