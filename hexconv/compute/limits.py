"""What a well-formed chain may still ask that can't be computed, refused by name before anything is built."""

from math import prod

from hexconv.errors import Unsupported
from hexconv.kernel.forms import documented_filter
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.chain import INTEGER_RANGE

LARGEST_INT32 = 2**31 - 1
BIAS_ROOM = 2**12
"""How much of the 32-bit range is kept for a bias."""


def check_supported(chain: Chain) -> None:
    """Refuse a chain that the scheme or TVM can't do.

    Raises:
        Unsupported: a tensor too large for TVM's 32-bit indices, sums that overflow int32, or a conv of whose output
            only the padding is read.
    """
    _check_indices(chain)
    _check_sums(chain)
    _check_something_is_read(chain)


def _check_indices(chain: Chain) -> None:
    """Every tensor is indexed in 32 bits; of the input, a part may be all that is packed."""
    extents = tensor_extents(chain)
    shapes: dict[str, tuple[int, ...]] = {"the input": chain.input, "the packed input": extents[0].packed_shape}
    for index in range(len(chain.conv)):
        shapes[f"conv[{index}]'s output"] = extents[index + 1].packed_shape
        shapes[f"conv[{index}]'s filter"] = documented_filter(chain, index).physical_shape
    for name, shape in shapes.items():
        if prod(shape) > LARGEST_INT32:
            raise Unsupported(
                f"{name} has {prod(shape)} elements, TVM's indices reach {LARGEST_INT32}; make the chain smaller"
            )


def _check_sums(chain: Chain) -> None:
    """An int32 accumulator holds every sum that the dtype allows."""
    if not chain.is_integer:
        return
    (low, high), (smallest, largest_tap) = INTEGER_RANGE[chain.dtype], INTEGER_RANGE[chain.dtype_of_filters]
    for index, conv in enumerate(chain.conv):
        fan_in = prod(chain.filter_shapes[index][1:])
        source = max(high - chain.output_zero_point(index), chain.output_zero_point(index) - low)
        tap = max(largest_tap - conv.filter_zero_point, conv.filter_zero_point - smallest)
        taps = fan_in * tap if conv.filter_l1 is None else min(fan_in * tap, conv.filter_l1)
        largest = taps * source + BIAS_ROOM
        if largest > LARGEST_INT32:
            most = (LARGEST_INT32 - BIAS_ROOM) // source
            raise Unsupported(
                f"chain.conv[{index}]: {fan_in} products can sum to {largest}, int32 holds {LARGEST_INT32}; "
                f"use fewer input channels or a smaller kernel, or state a filter_l1 of up to {most}"
            )


def _check_something_is_read(chain: Chain) -> None:
    """A conv of which nothing would be stored has no place in the schedule (`hexconv.spec.extents`, last paragraph)."""
    for index, extents in enumerate(tensor_extents(chain)[1:-1], start=1):
        rows, columns = extents.valid_rows, extents.valid_columns
        if rows[0] >= rows[1] or columns[0] >= columns[1]:
            raise Unsupported(
                f"chain.conv[{index}] reads nothing but the padding of its input, so the output is constant whatever "
                "comes before it; use less padding or a smaller stride"
            )
