"""What goes into a run: seeded random tensors, logical, and the packed arguments made of them."""

from dataclasses import dataclass
from itertools import pairwise
from math import prod, sqrt

import numpy as np

from hexconv.kernel import Forms, documented_forms
from hexconv.run.runner import Array
from hexconv.spec import Chain, Conv2d, tensor_extents
from hexconv.spec.chain import INTEGER_RANGE

RELU6_SPREAD = 8.0
"""Then a tenth of the sums is above 6."""
SUM_BYTES = 8
"""The reference sums in float64 and int64."""


@dataclass(frozen=True)
class Tensors:
    """The logical inputs of a chain.

    Attributes:
        image: NHWC.
        filters: OIHW, one per conv.
        biases: [K] or None, one per conv.
    """

    image: Array
    filters: tuple[Array, ...]
    biases: tuple[Array | None, ...]


def random_tensors(chain: Chain, seed: int = 0) -> Tensors:
    """Tensors drawn from `seed`.

    Integers come from the whole range of their dtype. Floats are drawn from -1..1, filters scaled by the square root of
    their fan-in, so that every tensor of a chain has values of the order of one; before a relu6, which would else never
    meet its 6, of the order of that. Filters whose sums are limited keep to the limit, and mostly come near it.
    """
    random = np.random.default_rng(seed)
    return Tensors(
        image=_values(random, chain.input, chain.dtype, 1.0),
        filters=tuple(
            _filter(random, conv, shape, chain.dtype_of_filters)
            for conv, shape in zip(chain.conv, chain.filter_shapes, strict=True)
        ),
        biases=tuple(_bias(random, chain, index) for index in range(len(chain.conv))),
    )


def run_bytes(chain: Chain) -> int:
    """What a run and its reference hold in memory at least, in bytes: tensors logical and packed, sums in 8 bytes.

    >>> from hexconv.spec import Conv2d
    >>> run_bytes(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)))
    13376
    """
    filters = sum(prod(shape) for shape in chain.filter_shapes) * np.dtype(chain.dtype_of_filters).itemsize
    drawn = prod(chain.input) * np.dtype(chain.dtype).itemsize + filters
    packed_output = prod(output_shape(chain)) * np.dtype(chain.output_dtype(len(chain.conv) - 1)).itemsize
    sums = max(prod(source) + prod(target) for source, target in pairwise(chain.shapes)) * SUM_BYTES
    return 2 * drawn + packed_output + sums


def packed_arguments(chain: Chain, tensors: Tensors, forms: Forms | None = None) -> list[Array]:
    """The inputs of the chain's PrimFunc, in its order; the fringe of a filter holds what no result may depend on.

    Args:
        chain: the convs.
        tensors: the logical inputs.
        forms: the layouts of its filters, by default those of the document.
    """
    forms = forms or documented_forms(chain)
    rest = _rest(forms.filter_dtype)
    filters = [
        layout.pack(_shifted(filter, forms), fill=rest)
        for layout, filter in zip(forms.filters, tensors.filters, strict=True)
    ]
    return [tensors.image, *filters, *(bias for bias in tensors.biases if bias is not None)]


def _shifted(filter: Array, forms: Forms) -> Array:
    """A filter's elements as a kernel wants them."""
    return (filter.astype(np.int16) + forms.filter_shift).astype(forms.filter_dtype) if forms.filter_shift else filter


def output_shape(chain: Chain) -> tuple[int, ...]:
    """NHWC8h8w32c shape of what leaves the chain."""
    return tensor_extents(chain)[-1].packed_shape


def _rest(dtype: str) -> float:
    """A value that would be seen in any result that it reached."""
    return INTEGER_RANGE[dtype][1] if dtype in INTEGER_RANGE else float("nan")


def _spread(conv: Conv2d) -> float:
    """Of the order of which a conv's sums should be."""
    return RELU6_SPREAD if conv.activation == "relu6" else 1.0


def _filter(random: np.random.Generator, conv: Conv2d, shape: tuple[int, ...], dtype: str) -> Array:
    """A random filter, OIHW."""
    if conv.filter_l1 is None:
        return _values(random, shape, dtype, _spread(conv) * sqrt(3 / prod(shape[1:])))
    (low, high), zero_point = INTEGER_RANGE[dtype], conv.filter_zero_point
    most = max(1, 2 * conv.filter_l1 // prod(shape[1:]))
    filter = random.integers(max(low, zero_point - most), min(high, zero_point + most), shape, dtype, endpoint=True)
    sums = np.cumsum(np.abs(filter.astype(np.int64) - zero_point).reshape(shape[0], -1), axis=1).reshape(shape)
    return np.where(sums <= conv.filter_l1, filter, np.asarray(zero_point, dtype))


def _values(random: np.random.Generator, shape: tuple[int, ...], dtype: str, scale: float) -> Array:
    """Random values of one tensor."""
    if dtype in INTEGER_RANGE:
        low, high = INTEGER_RANGE[dtype]
        return random.integers(low, high, shape, dtype, endpoint=True)
    return (random.uniform(-1, 1, shape) * scale).astype(dtype)


def _bias(random: np.random.Generator, chain: Chain, index: int) -> Array | None:
    """A bias that matters beside the sums."""
    conv = chain.conv[index]
    if not conv.bias:
        return None
    if chain.is_integer:
        return random.integers(-(2**12), 2**12, conv.out_channels, "int32")
    return random.uniform(-0.5, 0.5, conv.out_channels).astype(chain.accumulator_dtype)
