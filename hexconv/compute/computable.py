"""Refuse well-formed chains that can't be computed, with the reason, before anything is built."""

from math import prod

from hexconv.errors import Unsupported
from hexconv.kernel import input_layout
from hexconv.kernel.layouts import documented_filter
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.dtypes import LARGEST_INT32
from hexconv.spec.ranges import sums_refusal


def check_supported(chain: Chain) -> None:
    """Refuse a chain that TVM or the layouts can't compute.

    Raises:
        Unsupported: a tensor is too large for TVM's 32-bit indices, sums can overflow int32, or a conv reads nothing of
        its input but the padding.
    """
    _check_indices(chain)
    _check_sums(chain)
    _check_something_is_read(chain)


def _check_indices(chain: Chain) -> None:
    """Refuse tensors that 32-bit indices can't reach; the packed input may be a part of the logical one."""
    extents = tensor_extents(chain)
    shapes: dict[str, tuple[int, ...]] = {
        "the input": input_layout(chain).physical_shape,
        "the packed input": extents[0].packed_shape,
    }
    for index in range(len(chain.conv)):
        shapes[f"conv[{index}]'s output"] = extents[index + 1].packed_shape
        shapes[f"conv[{index}]'s filter"] = documented_filter(chain, index).physical_shape
    for name, shape in shapes.items():
        if prod(shape) > LARGEST_INT32:
            raise Unsupported(
                f"{name} has {prod(shape)} elements, TVM's indices reach {LARGEST_INT32}; make the chain smaller"
            )


def _check_sums(chain: Chain) -> None:
    """Refuse sums that int32 can't hold, bias included, as the plain kernel has them; other kernels check their own."""
    if chain.is_integer and (refusal := sums_refusal(chain, "plain")):
        raise Unsupported(refusal)


def _check_something_is_read(chain: Chain) -> None:
    """Refuse a conv whose output is never read: no schedule has a place for it (`hexconv.spec.extents`, at its end)."""
    for index, extents in enumerate(tensor_extents(chain)[1:-1], start=1):
        rows, columns = extents.valid_rows, extents.valid_columns
        if rows[0] >= rows[1] or columns[0] >= columns[1]:
            raise Unsupported(
                f"chain.conv[{index}] reads nothing but the padding of its input for all that is read of its output, "
                "so the output is constant whatever comes before it; use less padding or a smaller stride"
            )
