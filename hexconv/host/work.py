"""What the host kernels move and multiply, from the shapes and the plan alone: the closed form.

How many rows are computed is found by `hexconv.host.planned`. Rows of an intermediate at a seam count once if bands
hand them up, else twice. Rows of a cached input count once for every band that reads them.

MACs. Every pixel has whole vectors of output channels; the lanes that fill up the last vector count too.

Input. With an input cache, the new rows of every band count. An input that is read in place counts one element for
every tap and input channel of every pixel, and for every group of output channels that a tile computes together: no
cache of the plan holds it, so each load counts.

Filters count once, with whole words of four input channels and whole vectors of output channels, whether or not the
conv has that many. All of the output counts once, its fringe included. Biases are left out, as for the plain kernel.
"""

from math import ceil, prod

from hexconv.host.planned import PlannedBands
from hexconv.host.registers import ELEMENT_BYTES, Registers, registers_of
from hexconv.host.sizes import has_input_cache
from hexconv.host.tiles import split_evenly, tiling
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.names import INPUT, OUTPUT, conv_name, filter_name

WORD = 4
"""How many input channels lie together in a packed filter."""


def host_traffic(planned: PlannedBands) -> dict[str, int]:
    """The bytes that a float32 chain with `kernel = "host"` moves, by tensor: `input`, `filter1`, ..., `output`."""
    chain, rows, registers = planned.chain, planned.computed_rows, registers_of(planned.plan.simd)
    copied = rows[0] * prod(chain.input[2:])
    loaded = copied if has_input_cache(chain) else _loaded_in_place(chain, registers, rows[1])
    elements = {INPUT: chain.input[0] * loaded}
    elements |= {filter_name(i + 1): _filter_elements(chain, i, registers) for i in range(len(chain.conv))}
    elements[OUTPUT] = prod(tensor_extents(chain)[-1].packed_shape)
    return {name: count * ELEMENT_BYTES for name, count in elements.items()}


def host_macs(planned: PlannedBands) -> dict[str, int]:
    """The multiply-accumulates of a float32 chain with `kernel = "host"`, by conv: `conv1`, ...

    >>> from hexconv.spec import Conv2d, Plan
    >>> conv, plan = Conv2d(out_channels=128, kernel=(3, 3)), Plan(kernel="host", threads=2)
    >>> macs = host_macs(PlannedBands(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), plan))
    >>> macs["conv1"] == 62 * 62 * 128 * 9 * 128, macs["conv2"] == 60 * 60 * 128 * 9 * 128
    (True, True)
    """
    chain, rows, registers = planned.chain, planned.computed_rows, registers_of(planned.plan.simd)
    made = {conv_name(i + 1): rows[i + 1] * _row_macs(chain, i, registers) for i in range(len(chain.conv))}
    return {name: chain.input[0] * macs for name, macs in made.items()}


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
