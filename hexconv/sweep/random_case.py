"""Random cases over the whole scope: any mix of sizes, kernels, strides, dilations, paddings, splits and dtypes.

The geometry of all convs is drawn first, then the size of the output, from which the input's follows. (Drawn from the
input on, most chains of large kernels would not fit it, and what is left would be a test of small kernels.) Sizes are
drawn from ever smaller ranges until a run costs no more than `MAC_BUDGET`; kernels, strides and dtypes stay as drawn.

Case i of seed S is the same in every sweep that has it: each case has a generator of its own.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, tensor_extents
from hexconv.spec.chain import Dtype
from hexconv.spec.kernel import refusal
from hexconv.spec.plan import Halo, Order, Simd
from hexconv.sweep.arithmetic import Random, random_filter_dtype, random_zero_point, with_arithmetic
from hexconv.sweep.work import executed_macs

MAC_BUDGET = 8_000_000
"""Multiply-adds of a case, redone ones included: some tenths of a second of scalar code."""

MOST_CONVS, LARGEST_BATCH = 4, 4
LARGEST_KERNEL, LARGEST_STRIDE, LARGEST_DILATION = 7, 3, 3
LARGEST_OUTPUT, LARGEST_CHANNELS = 48, 192
MOST_BANDS = 4
SETS: tuple[Simd, ...] = ("avx2", "avx512")  # tiles for either run on any machine
GROUP_STYLES, LARGEST_MULTIPLIER = 6, 2
"""One conv in six is depthwise, with one or two outputs per input; another is in any number of groups."""
ROW_BLOCK, CHANNEL_BLOCK = 8, 32
DTYPES: tuple[Dtype, ...] = ("float32", "float16", "int8", "uint8", "int16")
ORDERS_AND_HALOS: tuple[tuple[Order, Halo], ...] = (
    ("k_outer", "recompute"),
    ("h_outer", "recompute"),
    ("h_outer", "roll"),
)
SIZE_SCALES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.0)
"""Parts of the largest sizes to draw from, one after the other; the last leaves nothing but sizes of one."""


def random_case(seed: int, index: int) -> Case:
    """Case `index` of `seed`, named `random-SEED-INDEX`."""
    random = np.random.default_rng([seed, index])
    dtype = DTYPES[random.integers(len(DTYPES))]
    geometry = [_geometry(random) for _ in range(_one_to(random, MOST_CONVS))]
    chains = (_chain(random, dtype, geometry, scale) for scale in SIZE_SCALES)
    cases = [Case(f"random-{seed}-{index}", chain, _plan(random, chain)) for chain in chains]
    return next((case for case in cases if executed_macs(case) <= MAC_BUDGET), cases[-1])


def _geometry(random: Random) -> Conv2d:
    """Kernel, stride, dilation and padding of one conv."""
    kernel, stride, dilation = (
        (_one_to(random, largest), _one_to(random, largest))
        for largest in (LARGEST_KERNEL, LARGEST_STRIDE, LARGEST_DILATION)
    )
    conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=dilation)
    return replace(conv, padding=_padding(random, conv))


def _padding(random: Random, conv: Conv2d) -> Padding:
    """None; as many outputs as inputs where the stride is 1; or four numbers up to what one output reads."""
    rows, columns = conv.reach
    style = random.integers(3)
    if style == 0:
        return Padding()
    if style == 1:
        return Padding(top=(rows - 1) // 2, left=(columns - 1) // 2, bottom=rows // 2, right=columns // 2)
    top, left, bottom, right = (int(random.integers(0, largest + 1)) for largest in (rows, columns, rows, columns))
    return Padding(top=top, left=left, bottom=bottom, right=right)


def _chain(random: Random, dtype: Dtype, geometry: Sequence[Conv2d], scale: float) -> Chain:
    """A chain of given geometry with sizes of its own."""
    channels = [_size(random, LARGEST_CHANNELS * scale, CHANNEL_BLOCK) for _ in range(len(geometry) + 1)]
    convs = []
    for index, conv in enumerate(geometry):
        groups, channels[index + 1] = _groups(random, *channels[index : index + 2])
        convs.append(replace(conv, out_channels=channels[index + 1], groups=groups))
    # One output of one row and column in eight cases: with padding that leaves inputs down to 1x1.
    largest = LARGEST_OUTPUT * scale if random.integers(8) else 1
    height, width = (_input_axis(random, convs, axis, _size(random, largest, ROW_BLOCK)) for axis in (0, 1))
    batch, filter_dtype = _one_to(random, LARGEST_BATCH), random_filter_dtype(random, dtype)
    return Chain(
        input=(batch, height, width, channels[0]),
        dtype=dtype,
        filter_dtype=filter_dtype,
        zero_point=random_zero_point(random, dtype),
        conv=with_arithmetic(random, dtype, filter_dtype or dtype, convs, channels),
    )


def _groups(random: Random, inputs: int, outputs: int) -> tuple[int, int]:
    """Groups of a conv, and its output channels made to go with them: one; one per input channel; any other number."""
    style = random.integers(GROUP_STYLES)
    if style == 0:
        return inputs, inputs * _one_to(random, LARGEST_MULTIPLIER)
    if style == 1:
        # Groups of whole blocks have filters of their own: they are drawn wherever that many channels come to be.
        whole = inputs // CHANNEL_BLOCK if inputs % CHANNEL_BLOCK == 0 else 1
        parts = whole if whole > 1 else inputs
        divisors = [count for count in range(2, parts + 1) if parts % count == 0] or [1]
        groups = divisors[random.integers(len(divisors))]
        return groups, -(-outputs // groups) * groups
    return 1, outputs


def _input_axis(random: Random, convs: Sequence[Conv2d], axis: int, output: int) -> int:
    """A size of the input, along rows (0) or columns (1), that gives at least so many outputs.

    A conv needs `(output - 1) * stride + reach` elements, its padding included, and may be given up to `stride - 1`
    more that nothing reads.
    """
    size = output
    for conv in reversed(convs):
        pad = conv.padding
        padding = (pad.top + pad.bottom, pad.left + pad.right)[axis]
        unread = int(random.integers(conv.stride[axis]))
        size = max(1, (size - 1) * conv.stride[axis] + conv.reach[axis] - padding + unread)
    return size


def _plan(random: Random, chain: Chain) -> Plan:
    """Any legal splits, dividing or not, and any legal mix of the other knobs; or the host kernel, where it serves."""
    if not refusal(chain, "host") and random.integers(2):
        return Plan(kernel="host", threads=_one_to(random, MOST_BANDS), simd=SETS[random.integers(len(SETS))])
    outputs = tensor_extents(chain)[1:]
    order, halo = ORDERS_AND_HALOS[random.integers(len(ORDERS_AND_HALOS))]
    return Plan(
        k_split=_one_to(random, max(output.channel_blocks for output in outputs)),
        h_split=_one_to(random, max(output.row_blocks for output in outputs)),
        order=order,
        halo=halo,
        filters="resident" if random.integers(2) else "per_tile",
        buffering="double" if random.integers(2) else "single",
        kernel="plain",
        storage="vtcm" if random.integers(4) == 0 else "global",
    )


def _size(random: Random, largest: float, block: int) -> int:
    """1 to `largest`, every order of magnitude as likely as the others; one in four is a whole number of blocks."""
    size = max(1, round(float(np.exp(random.uniform(0, np.log(max(largest, 1)))))))
    return -(-size // block) * block if random.integers(4) == 0 and size <= largest // block * block else size


def _one_to(random: Random, largest: int) -> int:
    """1 to `largest`, all alike."""
    return int(random.integers(1, largest + 1))
