"""Reference of a chain in numpy, from the definition of a convolution, and magnitudes to judge rounding errors by.

Floats are summed in float64 and rounded to the chain's dtype wherever a tensor is stored; integers in int64, exactly.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import inf, prod

import numpy as np

from hexconv.compute.requantised import NO_VECTORS, Array, requantized
from hexconv.spec.activations import PRELU, SLOPE, TABLE
from hexconv.spec.chain import Chain, Conv2d, output_shape
from hexconv.spec.code_sums import clipped
from hexconv.spec.curves import activated
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.names import numbered
from hexconv.spec.vectors import NAMES, looked_up

DOUBLES_EXACT_BELOW, SINGLES_EXACT_BELOW = 1 << 53, 1 << 24
ENDS = {"none": (-inf, inf), "relu": (0, inf), "relu6": (0, 6)}
"""The least and the largest of a sum of floats, by what follows it."""


def reference(
    chain: Chain,
    image: Array,
    filters: Sequence[Array],
    biases: Sequence[Array | None],
    vectors: Mapping[str, Array] = NO_VECTORS,
) -> Array:
    """Compute the chain's output in numpy, logical NHWC.

    Args:
        chain: what to compute.
        image: the input, logical NHWC.
        filters: one OIHW array per conv.
        biases: one [K] array, or None, per conv.
        vectors: `multiplier1`, `shift1`, ..., [K] each, where a requantisation has one value per channel, and `table1`,
        ..., [256], where a conv has a table.

    Returns:
        NHWC; integers in their output dtype, floats in float64 (the last tensor is not rounded).
    """
    tensors = [image]
    for index, (conv, filter, bias) in enumerate(zip(chain.conv, filters, biases, strict=True)):
        if conv.pool:
            tensors.append(pooled(conv, tensors[-1], chain.padding_value(index)))
            continue
        sums = convolution(conv, tensors[-1], filter, chain.output_zero_point(index))
        sums = sums + bias if bias is not None else sums
        is_last = index == len(chain.conv) - 1
        of_this, dtype = of_conv(vectors, index + 1), chain.output_dtype(index)
        made = _made(conv, sums, of_this, dtype)
        made = added(chain, index, made, tensors[conv.add.tensor]) if conv.add else made
        tensors.append(made if is_last and dtype.startswith("float") else made.astype(dtype))
    return tensors[-1]


def added(chain: Chain, index: int, made: Array, other: Array) -> Array:
    """Add an earlier tensor to what conv `index` makes, by the definition of the sum."""
    add = chain.conv[index].add
    assert add
    if chain.is_integer:
        low = INTEGER_RANGE[chain.dtype][0]
        one, another = (codes.astype(np.int64) - low for codes in (made, other))
        return chain.summed(index).defined(one, another) + low
    return clipped(made + other.astype(np.float64), ENDS[add.activation])


def convolution(conv: Conv2d, image: Array, filter: Array, zero_point: int) -> Array:
    """`out[n, y, x, k] = sum of in[n, y*sh + rh*dh - top, x*sw + rw*dw - left, c] * filter[k, c, rh, rw]`.

    Zero points are subtracted first; what lies outside of the image is zero. With groups, k and c count within a group.
    """
    exact = np.int64 if np.issubdtype(image.dtype, np.integer) else np.float64
    pad = conv.padding
    padded = np.pad(image.astype(exact) - zero_point, ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0)))
    taps = filter.astype(exact) - conv.filter_zero_point
    if exact is np.int64 and prod(taps.shape[1:]) * _largest_product(padded, taps) < DOUBLES_EXACT_BELOW:
        is_single = taps.shape[1] * _largest_product(padded, taps) < SINGLES_EXACT_BELOW
        padded, taps = (values.astype(np.float32 if is_single else np.float64) for values in (padded, taps))
    rows, columns = (
        (size - reach) // stride + 1
        for size, reach, stride in zip(padded.shape[1:3], conv.reach, conv.stride, strict=True)
    )
    wide = np.int64 if taps.dtype == np.int64 else np.float64
    total = np.zeros((image.shape[0], rows, columns, conv.out_channels), wide)
    for rh, rw in product(*map(range, conv.kernel)):
        seen = _seen_by_tap(conv, padded, rh, rw, rows, columns)
        if taps.shape[1] == 1:  # each output sees one channel
            total += np.repeat(seen, conv.out_channels // conv.groups, axis=3) * taps[:, 0, rh, rw]
            continue
        for group in range(conv.groups):
            outputs = _part(conv.out_channels, conv.groups, group)
            inputs = _part(image.shape[3], conv.groups, group)
            total[..., outputs] += seen[..., inputs] @ np.transpose(taps[outputs, :, rh, rw])
    return total.astype(exact, copy=False)


def pooled(conv: Conv2d, image: Array, padding: float) -> Array:
    """`out[n, y, x, c] = most of in[n, y*sh + rh*dh - top, x*sw + rw*dw - left, c]`, in the dtype of the image.

    Args:
        conv: the pool.
        image: NHWC.
        padding: what lies outside of the image.
    """
    pad = conv.padding
    sides = ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0))
    padded = np.pad(image, sides, constant_values=padding)
    _, rows, columns, _ = output_shape(conv, (1, *image.shape[1:]))
    taps = product(*map(range, conv.kernel))
    return np.stack([_seen_by_tap(conv, padded, rh, rw, rows, columns) for rh, rw in taps]).max(axis=0)


def _largest_product(padded: Array, taps: Array) -> int:
    """The largest absolute value that a product may have.

    BLAS sums in doubles if they hold every full and partial sum exactly; it sums the channels that one tap sees in
    floats if those hold that.
    """
    return prod(max(int(-values.min(initial=0)), int(values.max(initial=0))) for values in (padded, taps))


def _part(channels: int, groups: int, group: int) -> slice:
    """The channels of one group."""
    size = channels // groups
    return slice(group * size, (group + 1) * size)


def _seen_by_tap(conv: Conv2d, padded: Array, rh: int, rw: int, rows: int, columns: int) -> Array:
    """The inputs that one tap of the filter multiplies, one for each output pixel."""
    (sh, sw), (dh, dw) = conv.stride, conv.dilation
    top, left = rh * dh, rw * dw
    return padded[:, top : top + (rows - 1) * sh + 1 : sh, left : left + (columns - 1) * sw + 1 : sw, :]


def of_conv(vectors: Mapping[str, Array], number: int) -> dict[str, Array]:
    """The entries of `vectors` that belong to one conv, under names without its number.

    >>> sorted(of_conv({"shift1": np.zeros(1), "shift2": np.ones(1), "table2": np.ones(1), "shift12": np.ones(1)}, 2))
    ['shift', 'table']
    """
    return {what: vectors[name] for what in (*NAMES, SLOPE, TABLE) if (name := numbered(what, number)) in vectors}


def quantised(conv: Conv2d, sums: Array, dtype: str, of_this: Mapping[str, Array]) -> Array:
    """Apply the conv's requantisation to its sums, and then its table if it has one.

    Args:
        conv: a conv with a requantisation.
        sums: int64, bias included, channels last.
        dtype: the dtype of the codes.
        of_this: `multiplier`, `shift` and `table`, where the conv has them.
    """
    assert conv.requantize
    codes = requantized(sums, conv.requantize, dtype, {name: of_this[name] for name in conv.requantize.vectors})
    return looked_up(codes, of_this[TABLE]) if conv.activation == TABLE else codes


def _made(conv: Conv2d, sums: Array, of_this: Mapping[str, Array], dtype: str) -> Array:
    """What a conv makes of its sums, before it is stored or anything is added to it."""
    if conv.requantize:
        return quantised(conv, sums, dtype, of_this)
    return activated(sums, conv, of_this.get(SLOPE))


def magnitude(
    chain: Chain,
    image: Array,
    filters: Sequence[Array],
    biases: Sequence[Array | None],
    vectors: Mapping[str, Array] = NO_VECTORS,
) -> float:
    """Estimate the output's values as if all summed terms were independent: the root of the sum of their squares.

    The rounding errors of a sum grow with its terms, not with its result: where signs cancel, or a relu leaves little,
    the outputs are small but their errors aren't. The next filter scales a tensor's errors as it scales its values.

    An activation multiplies an error by its steepest slope s at most, so values of a size v are taken for s * v + f(0)
    behind it, which no result exceeds. A bound b keeps the next conv's values small: sums beyond it make results, and
    errors, of s * b or less. It doesn't make the errors of its own conv smaller, so it is left out for the last conv.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 1, 1, 2), conv=(Conv2d(out_channels=1),))
    >>> filter = np.array([[[[3.0]], [[-4.0]]]])
    >>> magnitude(chain, np.array([[[[4.0, 3.0]]]]), [filter], [None])
    20.0
    >>> limited = Chain(input=(1, 1, 1, 2), conv=(Conv2d(out_channels=1, activation="relu6"),))
    >>> magnitude(limited, np.array([[[[4.0, 3.0]]]]), [filter], [None])
    20.0
    >>> steep = Conv2d(out_channels=1, activation="leaky_relu", activation_slope=-3.0)
    >>> magnitude(Chain(input=(1, 1, 1, 2), conv=(steep,)), np.array([[[[4.0, 3.0]]]]), [filter], [None])
    60.0
    """
    size, most = float(np.max(np.abs(image.astype(np.float64)), initial=0.0)), inf
    sizes = [size]
    for number, (conv, filter, bias) in enumerate(zip(chain.conv, filters, biases, strict=True), 1):
        size = min(size, most)
        squares = size**2 * np.square(filter.astype(np.float64)).sum(axis=(1, 2, 3))
        squares = squares if bias is None else squares + np.square(bias.astype(np.float64))
        steepest = conv.curve.steepest(_slope(conv, number, vectors))
        size, most = float(np.sqrt(squares.max())) * steepest + conv.curve.at_zero, max(steepest, 1) * conv.curve.bound
        if conv.add:
            size, most = min(size, most) + sizes[conv.add.tensor], 6.0 if conv.add.activation == "relu6" else inf
        sizes.append(size)
    return size


def _slope(conv: Conv2d, number: int, vectors: Mapping[str, Array]) -> float:
    """The slope of a conv's activation; of a prelu the largest of all channels."""
    return float(np.abs(vectors[numbered(SLOPE, number)]).max()) if conv.activation == PRELU else conv.slope
