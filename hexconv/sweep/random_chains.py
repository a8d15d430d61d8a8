"""Draw random chains: geometry and arithmetic, few channels, groups, the longest sums that are accepted.

Cases are drawn through `Draw` alone, so that the sweep, which draws from a seed, and the tests, where hypothesis draws
and looks for the smallest case that fails, draw from one description of the scope. The first of several choices, the
least number and False are the simplest: a search for small cases goes there.

In two chains of three most convs have pixels as lanes. In the others any zero point of a filter is as likely as 0, and
lanes are channels more often.

A conv in groups stands alone, behind a conv of 1x1, in front of one, or both; groups of its outputs and inputs may
differ in size, and blocks of 32 channels may begin inside of a group and end inside of another one.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2, prod, sqrt
from typing import Any, TypeVar

import numpy as np

from hexconv.compute.computable import check_supported
from hexconv.errors import InputError, Unsupported
from hexconv.kernel.tiles import WORD_CHANNELS
from hexconv.spec import Chain, Conv2d, Padding, Requantize
from hexconv.spec.activations import CLAMPS, CURVES, TABLE, Activation
from hexconv.spec.addition import Add
from hexconv.spec.chain import EDGE_LAYOUTS, EdgeLayout, with_exact
from hexconv.spec.choices import Engine
from hexconv.spec.dtypes import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS, Dtype
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.spec.kernels import KERNELS, MOST_ENGINE_PHASES, MOST_ENGINE_TAPS, Kernel
from hexconv.spec.knobs import KNOBS
from hexconv.spec.names import INPUT, conv_name
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.places import STORAGES, Storage
from hexconv.spec.requantize import LARGEST_MULTIPLIER, PER_CHANNEL, Rounding

Choice = TypeVar("Choice")


class Draw(ABC):
    """A source of whole numbers, with the choices that are made from them."""

    @abstractmethod
    def number(self, least: int, most: int) -> int:
        """Draw a number from `least` to `most`, both included."""

    def one_of(self, *choices: Choice) -> Choice:
        """Draw one of the choices; one that is listed twice is twice as likely."""
        return choices[self.number(0, len(choices) - 1)]

    def is_one_in(self, cases: int) -> bool:
        """Return True in one of `cases` draws."""
        return self.number(1, cases) == cases

    def size(self, most: int) -> int:
        """Draw a size from 1 to `most`, every power of two as likely as the others."""
        least = 1 << self.number(0, most.bit_length() - 1)
        return self.number(least, min(2 * least - 1, most))

    def around(self, least: int, most: int, middle: int = 0) -> int:
        """Draw `middle` or any number, one time in four each; else an end, or a neighbour of an end or the middle."""
        style = self.number(0, 3)
        if style == 0:
            return middle
        if style == 1:
            return self.number(least, most)
        marks = (least, least, most, most, least + 1, most - 1, middle - 1, middle + 1)
        return min(max(self.one_of(*marks), least), most)


class Seeded(Draw):
    """A source with a generator of numpy, every number as likely as the others."""

    def __init__(self, *seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def number(self, least: int, most: int) -> int:
        """See `Draw`."""
        return int(self._random.integers(least, most, endpoint=True))


@dataclass(frozen=True)
class Scope:
    """The largest numbers that are drawn.

    Attributes:
        dtypes: the dtypes of chains.
        kernels: the kernels that plans ask for.
        storages: the places of caches.
        turned: the knobs that may be drawn from their values; the others stay at their defaults.
        convs: the most convs in a chain.
        batch: the most images at a time.
        output: the most rows and columns of a chain's output, where padding doesn't add more.
        channels: the most channels of a tensor, except in chains with long sums.
        macs: the most multiply-adds of a case, recomputed ones included: some tenths of a second of scalar code.
        elements: the most elements of the input; strides may leave most of it unread.
        taps: the most taps that the matrix engine multiplies; each is some tenths of a millisecond of its emulator.
        images: the most phase images of a tensor for the matrix engine; each has code of its own.
    """

    dtypes: tuple[Dtype, ...] = ("float32", "float16", "int8", "uint8", "int16")
    kernels: tuple[Kernel, ...] = ("plain", "hvx")
    storages: tuple[Storage, ...] = STORAGES
    turned: tuple[str, ...] = tuple(KNOBS)
    convs: int = 4
    batch: int = 4
    output: int = 48
    channels: int = 192
    macs: int = 8_000_000
    elements: int = 2_000_000
    taps: int = 1 << 30
    images: int = MOST_ENGINE_PHASES**2


EVERYTHING = Scope()
"""The scope of the sweep."""

OF_ENGINE = Scope(dtypes=("uint8", "int8"), kernels=("hmx",), storages=("vtcm",))
"""Cases for the matrix engine."""
QUICK_OF_ENGINE = replace(
    OF_ENGINE, convs=3, batch=2, output=20, channels=80, macs=1_000_000, elements=100_000, taps=1000, images=4
)
"""Cases for the matrix engine that its emulator computes in a second."""
SWEPT: dict[Kernel, Scope] = {
    "plain": replace(EVERYTHING, kernels=("plain",)),
    "hvx": replace(EVERYTHING, kernels=("hvx",)),
    "hmx": QUICK_OF_ENGINE,
}
"""The scope of a sweep of one kernel."""


def shaped_for_engine(convs: Sequence[Conv2d], scope: Scope) -> list[Conv2d]:
    """Return convs with the kernels, dilations and strides that the matrix engine serves."""
    found, phases = list[Conv2d](), [1, 1]
    for conv in reversed(convs):
        kernel = (min(conv.kernel[0], MOST_ENGINE_TAPS), min(conv.kernel[1], MOST_ENGINE_TAPS))
        apart = [d if (k - 1) * d < MOST_ENGINE_TAPS else 1 for k, d in zip(kernel, conv.dilation, strict=True)]
        stride = [1, 1]
        for axis, some in enumerate(conv.stride):
            if phases[axis] * some <= MOST_ENGINE_PHASES and prod(phases) * some <= scope.images:
                stride[axis], phases[axis] = some, phases[axis] * some
        geometry = {"kernel": kernel, "stride": (stride[0], stride[1]), "dilation": (apart[0], apart[1])}
        found.insert(0, replace(conv, **geometry))
    return found


def for_engine(draw: Draw, chain: Chain, scope: Scope) -> Chain:
    """Return a chain of the same tensors' channels that the matrix engine serves, with the padding that fits.

    One conv in two is requantised by the engine's convert, where what then computes the chain has it. Two filters of
    three have the zero point for which it multiplies the fewest taps.
    """
    convs = list[Conv2d]()
    for conv in reversed(shaped_for_engine(chain.conv, scope)):
        how = conv.requantize or Requantize(multiplier=1 << 30, shift=-8, zero_point=3)
        shift = min(how.shift, 0) if isinstance(how.shift, int) else how.shift
        engine: Engine = "fast" if draw.is_one_in(2) else "exact"
        low = replace(how, shift=shift, saturates_at=None, engine=engine)
        usual = MADE_UNSIGNED if chain.dtype_of_filters == "uint8" else 0
        zero = conv.filter_zero_point if draw.is_one_in(3) else usual
        convs.insert(0, replace(conv, filter_zero_point=zero, requantize=low, sum_limit=None))
    made = replace(chain, conv=tuple(convs))
    return made if _has_converts(made) else with_exact(made)


def _has_converts(chain: Chain) -> bool:
    """Whether the converts of a chain can be computed: plain has those of one multiplier, and less room for sums."""
    hows = [conv.requantize for conv in chain.conv if conv.requantize and conv.requantize.engine == "fast"]
    is_engines = not any(KERNELS["hmx"].refusals(chain)) or not any(how.vectors for how in hows)
    return is_engines and is_supported(chain)


@dataclass(frozen=True)
class Kind:
    """The traits of a random case that stay fixed while smaller and smaller sizes are drawn.

    Attributes:
        dtype: the dtype of the chain.
        filter_dtype: the dtype of its filters, if it is another one.
        kernel: the kernel that the plan asks for.
        is_served: whether features that the kernel can't serve are left out: groups, and shifts to the left for hvx.
    """

    dtype: Dtype
    filter_dtype: Dtype | None
    kernel: Kernel
    is_served: bool

    @property
    def highest_shift(self) -> int:
        """The largest shift of requantisations."""
        return 0 if self.kernel == "hvx" and self.is_served else 30


LARGEST_L1 = 2**16 - 1
"""The largest `filter_l1` over int16 inputs: 32768 times as much, and a bias, fit an int32."""
LEAST_ODD = 2**9
"""The least odd part of multipliers with which no 8-bit result lies half way between two codes."""
SATURATIONS = (2**28, 2**29, 2**30)
"""Where sums of int16 mostly saturate; HVX has room for such limits beside sums of low bytes."""
INT32 = 2**31
LIFTED_BITS = 15
"""By how many bits int32 holds more than a product of two bytes; a sum that is lifted has to leave room for a bias."""
MOST_PLACES = 30
"""The most binary places that a product may be rounded to."""
MOST_EIGHTHS = 12
"""The largest slope and offset of an activation that are drawn, in eighths: some multiply errors."""
MOST_LEFT = 3
"""The largest shift to the left in a chain that hvx doesn't serve whole."""
ROUNDINGS: tuple[Rounding, ...] = ("up", "away", "even")
HVX_ROUNDINGS: tuple[Rounding, ...] = ("up", "up", "up", "away", "even", "even")


def drawn_filter_dtype(draw: Draw, dtype: Dtype) -> Dtype | None:
    """Draw a filter dtype: for integers None (the chain's own) or any that goes with the chain's; for floats None."""
    return draw.one_of(None, *FILTER_DTYPES.get(dtype, ()))


def drawn_zero_point(draw: Draw, dtype: Dtype) -> int:
    """Draw a zero point: zero, an end of the dtype's range, a value next to these, or any value. Floats have none."""
    least, most = ZERO_POINTS.get(dtype, (0, 0))
    return draw.around(least, most) if most else 0


def with_filters(draw: Draw, kind: Kind, conv: Conv2d) -> Conv2d:
    """Add what a conv sums: a bias or none, the filter's zero point and its limit; for floats the activation.

    Args:
        draw: the source of the draws.
        kind: the kind of the chain.
        conv: the conv's geometry and output channels.
    """
    conv = replace(conv, bias=draw.one_of(False, True))
    if kind.dtype not in INTEGER_RANGE:
        return _with_activation(draw, conv)
    zero_point = drawn_zero_point(draw, kind.filter_dtype or kind.dtype)
    return replace(conv, filter_zero_point=zero_point, filter_l1=_drawn_filter_l1(draw, kind.dtype))


def _with_activation(draw: Draw, conv: Conv2d) -> Conv2d:
    """Draw the activation of floats: as often a clamp as any other; every second slope and offset is stated."""
    name: Activation = draw.one_of(*(CLAMPS if draw.is_one_in(2) else tuple(CURVES)))
    curve, slope, offset = CURVES[name], None, None
    if curve.slope is not None and draw.is_one_in(2):
        slope = draw.number(1 if curve.is_rising else -MOST_EIGHTHS, MOST_EIGHTHS) / 8
    if curve.offset is not None and draw.is_one_in(2):
        offset = draw.number(-MOST_EIGHTHS, MOST_EIGHTHS) / 8
    return replace(conv, activation=name, activation_slope=slope, activation_offset=offset)


def with_requantisations(
    draw: Draw, kind: Kind, convs: Sequence[Conv2d], channels: Sequence[int], are_long: bool = False
) -> tuple[Conv2d, ...]:
    """Add what follows the sums of each conv: a requantisation for integers, though the last may lack one.

    Args:
        draw: the source of the draws.
        kind: the kind of the chain.
        convs: the convs that `with_filters` returned.
        channels: the channels of the input and of every output.
        are_long: whether sums come near the ends of an int32, so that what is made of such sums is tested.
    """
    if kind.dtype not in INTEGER_RANGE:
        return tuple(convs)
    leaves_sums = draw.is_one_in(4 if are_long else 2)
    fan_ins = [inputs // conv.groups * prod(conv.kernel) for conv, inputs in zip(convs, channels, strict=False)]
    finished = [
        _with_table(draw, kind, replace(conv, requantize=_drawn_requantize(draw, kind, fan_in, are_long)))
        for conv, fan_in in zip(convs, fan_ins, strict=True)
    ]
    if leaves_sums:
        finished[-1] = _leaving_sums(finished[-1])
    return tuple(_with_saturation(draw, kind, conv) for conv in finished)


def _with_saturation(draw: Draw, kind: Kind, conv: Conv2d) -> Conv2d:
    """Let the sums of one conv in two of int16, in six of 8 bits, saturate; half of the former have no limit."""
    if conv.requantize is None or not draw.is_one_in(2 if kind.dtype == "int16" else 6):
        return conv
    if kind.dtype != "int16":
        limit = draw.one_of(LARGEST_MULTIPLIER, draw.number(1, LARGEST_MULTIPLIER), draw.number(1, 1 << 16))
        return replace(conv, requantize=replace(conv.requantize, saturates_at=limit))
    for_hvx = kind.kernel == "hvx" and kind.is_served
    if for_hvx and kind.filter_dtype != "int8":
        return conv
    limit = draw.one_of(*SATURATIONS, draw.number(1, SATURATIONS[0] if for_hvx else LARGEST_MULTIPLIER))
    saturating = replace(conv, requantize=replace(conv.requantize, saturates_at=limit))
    return saturating if draw.is_one_in(2) else replace(saturating, filter_l1=None)


def _with_table(draw: Draw, kind: Kind, conv: Conv2d) -> Conv2d:
    """Give one conv in four of an 8-bit chain a table."""
    if kind.dtype == "int16" or not draw.is_one_in(4):
        return conv
    return replace(conv, activation=TABLE, table_zero_point=drawn_zero_point(draw, kind.dtype))


def _leaving_sums(conv: Conv2d) -> Conv2d:
    """Return a conv with nothing after its sums."""
    return replace(conv, requantize=None, activation="none", table_zero_point=0)


def _drawn_filter_l1(draw: Draw, dtype: Dtype) -> int | None:
    """Draw a `filter_l1`: mostly none where all sums fit; for int16 the most that an int32 holds, or less."""
    if dtype != "int16" and not draw.is_one_in(4):
        return None
    return LARGEST_L1 if draw.is_one_in(2) else draw.number(1, LARGEST_L1)


def _drawn_requantize(draw: Draw, kind: Kind, fan_in: int, is_long: bool) -> Requantize:
    """Draw a requantisation: mostly a scale that spreads sums over the dtype's range, sometimes any scale."""
    if draw.is_one_in(8):
        multiplier, shift = draw.around(1, 2**31 - 1, 2**30), draw.around(-31, kind.highest_shift)
    else:
        multiplier, shift = _spreading(draw, kind, fan_in, is_long)
    if kind.kernel == "hvx" and not kind.is_served and draw.is_one_in(2):
        multiplier, shift = _shifted_left(multiplier, shift, draw.number(1, MOST_LEFT))
    zero_point = drawn_zero_point(draw, kind.dtype)
    clamp = _drawn_clamp(draw, kind.dtype)
    rounding: Rounding = draw.one_of(*(HVX_ROUNDINGS if kind.kernel == "hvx" else ROUNDINGS))
    how = Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding=rounding, clamp=clamp)
    if rounding == "even" and draw.is_one_in(3):
        room = LIFTED_BITS - fan_in.bit_length() if kind.dtype != "int16" and not is_long else 0
        how = _of_few_places(draw, how, max(0, room))
    if not draw.is_one_in(4):
        return how
    if how.fraction_bits:
        return replace(how, multiplier=PER_CHANNEL)
    how = replace(how, multiplier=PER_CHANNEL, shift=PER_CHANNEL if draw.is_one_in(2) else min(shift, 0))
    return replace(how, least_odd=draw.around(1, LARGEST_MULTIPLIER, LEAST_ODD)) if draw.is_one_in(2) else how


def _of_few_places(draw: Draw, how: Requantize, most_lift: int) -> Requantize:
    """Round products to few binary places first, where sums are lifted by at most some bits."""
    assert isinstance(how.shift, int)
    places = draw.number(0, most_lift) - how.shift
    return replace(how, fraction_bits=places) if 1 <= places <= MOST_PLACES and how.shift <= 0 else how


def _shifted_left(multiplier: int, shift: int, left: int) -> tuple[int, int]:
    """Return about the same scale with a shift to the left, as far as a multiplier can be small enough."""
    return max(1, multiplier >> max(left - shift, 0)), left


def _drawn_clamp(draw: Draw, dtype: Dtype) -> tuple[int, int] | None:
    """Draw a clamp: mostly none, else any two codes, the ends of the dtype included."""
    if not draw.is_one_in(4):
        return None
    low, high = INTEGER_RANGE[dtype]
    one, other = draw.around(low, high), draw.around(low, high)
    return (min(one, other), max(one, other)) if one != other else None


def _spreading(draw: Draw, kind: Kind, fan_in: int, is_long: bool) -> tuple[int, int]:
    """Draw a multiplier and a shift that bring sums to the dtype's range or beyond; two of three are powers of two.

    Typical sums of random tensors reach a part of the range, the largest sums all of it.
    """
    is_wide = kind.dtype == "int16"
    if is_long or draw.is_one_in(3):
        largest_sum = INT32 if is_wide else min(2**15 * fan_in, INT32)
        bits, more = log2(largest_sum) - (16 if is_wide else 8), draw.number(0, 4)
    else:
        bits, more = 13 if is_wide else 7 + log2(sqrt(fan_in)), draw.number(0, 2)
    shift = max(-31, min(round(-bits) + more, kind.highest_shift))
    if draw.is_one_in(3):
        return draw.number(2**30, 2**31 - 1), shift
    moved = draw.number(0, min(30, max(-shift, 0)))
    return 2 ** (30 - moved), shift + moved


LARGEST_KERNEL, LARGEST_STRIDE, LARGEST_DILATION = 7, 3, 3
LONGEST_STRIDE = 20
"""The longest stride, in one conv of a chain: more than two blocks of rows, so that it steps over whole stripes."""
FARTHEST_PADDING = 34
"""The most padding on one side: more than four blocks of rows, so that whole stripes see nothing but padding."""


DEEPEST_PADDING = 9
"""The most padding on one side of each conv where padding alone makes a tall output: block rows are all padding."""


def geometries(draw: Draw, convs: int) -> list[Conv2d]:
    """Draw the convs of a chain, each with one output channel so far."""
    if draw.is_one_in(4):
        return [_padded(draw, is_first=index == 0) for index in range(convs)]
    strider = draw.number(0, convs - 1) if draw.is_one_in(4) else None
    return [_geometry(draw, LONGEST_STRIDE if index == strider else LARGEST_STRIDE) for index in range(convs)]


def _geometry(draw: Draw, longest_stride: int) -> Conv2d:
    """Draw a conv; where strides step over rows, few kernels are large, so that a conv reads less than it steps."""
    largest_kernel = LARGEST_KERNEL if longest_stride == LARGEST_STRIDE else draw.one_of(1, 3, LARGEST_KERNEL)
    kernel, stride, dilation = (
        (draw.number(1, largest), draw.number(1, largest))
        for largest in (largest_kernel, longest_stride, LARGEST_DILATION)
    )
    if draw.is_one_in(6):
        # With strides of one, stripes and padding meet in all ways before the padding ends.
        dense = Conv2d(out_channels=1, kernel=kernel, stride=draw.one_of((1, 1), stride), dilation=dilation)
        return replace(dense, padding=_far(draw))
    conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=dilation)
    return replace(conv, padding=_near(draw, conv))


def _padded(draw: Draw, is_first: bool) -> Conv2d:
    """Draw a conv of a chain that gets taller: small kernels, hardly a stride, rows of padding on both sides.

    The first makes parts of a block of an image of one row; the others often begin a whole block above theirs.
    """
    kernel = draw.number(1, 3), draw.number(1, 2)
    stride = draw.one_of(1, 2, 2) if is_first else draw.one_of(1, 1, 1, 1, 2)
    top, bottom = draw.number(0, DEEPEST_PADDING), draw.number(0, DEEPEST_PADDING)
    if is_first and not draw.is_one_in(4):
        made = ROW_BLOCK // draw.one_of(1, 2, 4, stride, stride, stride)
        bottom = max(0, (made - 1) * stride + kernel[0] - 1 - top)
    if not is_first:
        top = draw.one_of(0, 0, ROW_BLOCK, ROW_BLOCK, top)
    padding = Padding(top=top, left=draw.number(0, 1), bottom=bottom, right=draw.number(0, 1))
    return Conv2d(out_channels=1, kernel=kernel, stride=(stride, 1), padding=padding)


def _near(draw: Draw, conv: Conv2d) -> Padding:
    """Draw no padding, the same size for input and output at stride 1, or up to once or twice what an output reads."""
    rows, columns = conv.reach
    style = draw.number(0, 6)
    if style < 2:
        return Padding()
    if style < 4:
        return Padding(top=(rows - 1) // 2, left=(columns - 1) // 2, bottom=rows // 2, right=columns // 2)
    times = 1 if style < 6 else 2
    top, left, bottom, right = (draw.number(0, times * most) for most in (rows, columns, rows, columns))
    return Padding(top=top, left=left, bottom=bottom, right=right)


def _far(draw: Draw) -> Padding:
    """Draw padding far beyond the image on one side, and perhaps on the opposite one.

    Often by whole blocks of rows: a stripe begins where the image does.
    """
    blocks = ROW_BLOCK * draw.number(1, FARTHEST_PADDING // ROW_BLOCK)
    far = draw.one_of(blocks, draw.number(1, FARTHEST_PADDING))
    opposite = draw.number(0, FARTHEST_PADDING) if draw.is_one_in(3) else 0
    sides = (("top", "bottom"), ("top", "bottom"), ("bottom", "top"), ("left", "right"), ("right", "left"))
    side, other = draw.one_of(*sides)
    return Padding(**{side: far, other: opposite})


Skip = tuple[int, int]
"""A tensor, and the conv that adds it, each counted from 0."""
LONGEST_SKIP = 4
"""The most convs that an Add reaches over."""


def drawn_skips(draw: Draw, convs: int) -> list[Skip]:
    """Draw which tensors later convs add, over one to four convs: none in three chains of four; they may overlap."""
    found = dict[int, int]()
    while len(found) < convs and draw.is_one_in(2 if found else 4):
        index = draw.number(0, convs - 1)
        found[index] = max(0, index - draw.number(0, LONGEST_SKIP - 1))
    return sorted((tensor, index) for index, tensor in found.items())


def skipped(draw: Draw, convs: Sequence[Conv2d], skips: Sequence[Skip]) -> list[Conv2d]:
    """Return the convs with strides of 1 and as much padding under each skip as keeps the shape of its tensor.

    The padding of a conv is split between its sides at random, and some rows of it may belong to its neighbour.
    """
    found = list(convs)
    for index in sorted({index for tensor, last in skips for index in range(tensor, last + 1)}):
        rows, columns = (reach - 1 for reach in found[index].reach)
        top, left = draw.number(0, rows), draw.number(0, columns)
        padding = Padding(top=top, left=left, bottom=rows - top, right=columns - left)
        found[index] = replace(found[index], stride=(1, 1), padding=padding)
    for tensor, last in skips:
        alone = all(other == (tensor, last) or other[1] < tensor or last < other[0] for other in skips)
        if alone and last > tensor and draw.is_one_in(4):
            before, behind = found[last - 1].padding, found[last].padding
            found[last - 1] = replace(found[last - 1], padding=replace(before, top=before.top + behind.top))
            found[last] = replace(found[last], padding=replace(behind, top=0))
    return found


def with_adds(draw: Draw, chain: Chain, skips: Sequence[Skip]) -> Chain:
    """Add tensors to what later convs make, where they have the same shape and an integer form."""
    for tensor, index in skips:
        conv = chain.conv[index]
        if chain.dtype == "int16" or (chain.is_integer and conv.requantize is None):
            continue
        name: dict[str, Any] = {"from": conv_name(tensor) if tensor else INPUT}
        if chain.is_integer:
            name |= _drawn_sum(draw, chain.dtype)
        else:
            name["activation"] = draw.one_of("none", "relu", "relu6")
        convs = [*chain.conv[:index], replace(conv, add=Add(**name)), *chain.conv[index + 1 :]]
        try:
            chain = replace(chain, conv=tuple(convs))
        except InputError:  # another shape, or scales that put sums half way between codes
            continue
    return chain


def with_pools(draw: Draw, chain: Chain) -> Chain:
    """Make pools of some convs of one chain in eight, where the convs behind them take as many channels."""
    for index in range(len(chain.conv)) if draw.is_one_in(8) else ():
        conv, channels = chain.conv[index], chain.shapes[index][3]
        if not draw.is_one_in(2):
            continue
        shaped = Conv2d(out_channels=channels, kernel=conv.kernel, stride=conv.stride, dilation=conv.dilation)
        pool = replace(shaped, padding=conv.padding, pool="max")
        try:
            pooled = replace(chain, conv=(*chain.conv[:index], pool, *chain.conv[index + 1 :]))
            check_supported(pooled)
        except (InputError, Unsupported):  # groups that don't divide these channels, or sums that leave their integer
            continue
        chain = pooled
    return chain


def _drawn_sum(draw: Draw, dtype: Dtype) -> dict[str, Any]:
    """Draw the scales of a sum of codes, from one eighth of each other to eight times as much; its codes and clamp."""
    scales = tuple(2.0 ** (draw.number(-3000, 3000) / 1000) for _ in range(3))
    return {"scales": scales, "zero_point": drawn_zero_point(draw, dtype), "clamp": _drawn_clamp(draw, dtype)}


def input_axis(draw: Draw, convs: Sequence[Conv2d], axis: int, output: int) -> int:
    """Draw a size of the input, along rows (0) or columns (1), that gives at least `output` outputs.

    A conv needs `(output - 1) * stride + reach` elements, its padding included, and may be given up to `stride - 1`
    more that nothing reads.
    """
    size = output
    for conv in reversed(convs):
        pad = conv.padding
        padding = (pad.top + pad.bottom, pad.left + pad.right)[axis]
        unread = draw.number(0, conv.stride[axis] - 1)
        size = max(1, (size - 1) * conv.stride[axis] + conv.reach[axis] - padding + unread)
    return size


MOST_CHANNELS = 28
MANY_CHANNELS = (36, 40, 48, 56, 60)
"""More channels than a block of 32 has, which narrow blocks hold without filling up."""
LEAST_COLUMNS, MOST_COLUMNS = 8, 140
MOST_ROWS = 12


def few_channels(draw: Draw, kind: Kind) -> Iterator[Chain]:
    """Yield chains of one geometry with ever fewer rows, then with convs left out at the front."""
    convs = [_conv(draw) for _ in range(draw.number(2, 4))]
    channels = [draw.one_of(draw.number(1, MOST_CHANNELS), draw.number(1, 4)), *(_channels(draw) for _ in convs)]
    convs = [replace(conv, out_channels=out) for conv, out in zip(convs, channels[1:], strict=True)]
    width, zero_point = draw.number(LEAST_COLUMNS, MOST_COLUMNS), drawn_zero_point(draw, kind.dtype)
    keeps_zeros = draw.is_one_in(3)
    ends: list[EdgeLayout] = [draw.one_of(*EDGE_LAYOUTS) for _ in ("input", "output")]
    for rows, first in ((draw.number(1, MOST_ROWS), 0), (1, 0), *((1, first) for first in range(1, len(convs)))):
        left = convs[first:]
        height, columns = (input_axis(draw, left, axis, size) for axis, size in enumerate((rows, width)))
        filtered = [_with_filters(draw, kind, conv, keeps_zeros) for conv in left]
        yield Chain(
            input=(1, height, columns, channels[first]),
            dtype=kind.dtype,
            filter_dtype=kind.filter_dtype,
            zero_point=zero_point,
            input_layout=ends[0],
            output_layout=ends[1],
            conv=with_requantisations(draw, kind, filtered, channels[first:]),
        )


def _with_filters(draw: Draw, kind: Kind, conv: Conv2d, keeps_zeros: bool) -> Conv2d:
    """Add what a conv sums; unless zero points are kept, five in six of them are such that pixels as lanes serve."""
    filtered = with_filters(draw, kind, conv)
    if keeps_zeros or draw.is_one_in(6):
        return filtered
    is_signed = (kind.filter_dtype or kind.dtype) == "int8"
    return replace(filtered, filter_zero_point=0 if is_signed else draw.one_of(0, MADE_UNSIGNED))


def _channels(draw: Draw) -> int:
    """Draw the output channels of a conv; one in eight has more than 32, one in eight fills its block."""
    return draw.one_of(*[draw.number(1, MOST_CHANNELS)] * 6, draw.one_of(*MANY_CHANNELS), 32)


def _conv(draw: Draw) -> Conv2d:
    """Draw a conv; most are small, without stride, and keep the size of what they read."""
    kernel, dilation = (draw.number(1, 3), draw.number(1, 5)), (1, draw.one_of(1, 1, 1, 2))
    stride = draw.one_of((1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (2, 2))
    conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=dilation)
    rows, columns = conv.reach
    same = Padding(top=(rows - 1) // 2, left=(columns - 1) // 2, bottom=rows // 2, right=columns // 2)
    return replace(conv, padding=draw.one_of(Padding(), same))


SIZES = (4, 8, 16, 32, 64, 2, 6, 10, 12, 24, 40, 48, 80, 96)
"""Channels of a group, as networks have them, and sizes that fill no words."""
LEAST_CHANNELS = CHANNEL_BLOCK + WORD_CHANNELS
MOST_GROUPED_ROWS, MOST_GROUPED_COLUMNS = 9, 24
SMALLER = ((1.0, 1.0), (0.3, 1.0), (0.1, 0.3), (0.0, 0.0))
"""Shares of the largest rows and columns to draw from, one after the other."""


def grouped(draw: Draw, kind: Kind, scope: Scope) -> Iterator[Chain]:
    """Yield chains of one geometry and ever fewer pixels, then the conv in groups alone; none of few channels."""
    sizes = [size for size in SIZES if max(2, ceil(LEAST_CHANNELS / size)) * size <= scope.channels]
    if not sizes:
        return
    inputs = draw.one_of(*sizes)
    groups = draw.number(max(2, ceil(LEAST_CHANNELS / inputs)), scope.channels // inputs)
    outputs = draw.one_of(inputs, inputs, inputs, 2 * inputs, draw.number(1, CHANNEL_BLOCK))
    middle = replace(_grouped_conv(draw), out_channels=groups * outputs, groups=groups)
    before, behind = draw.is_one_in(2), draw.is_one_in(2)
    convs = [Conv2d(out_channels=groups * inputs)] * before + [middle]
    convs += [Conv2d(out_channels=draw.number(1, scope.channels))] * behind
    first = draw.number(1, scope.channels) if before else groups * inputs
    ends: list[EdgeLayout] = [draw.one_of(*EDGE_LAYOUTS) for _ in ("input", "output")]
    made = [(rows, columns, first, convs) for rows, columns in SMALLER]
    for rows, columns, channels, some in (*made, (0.0, 0.0, groups * inputs, [middle])):
        most = (max(1, round(MOST_GROUPED_ROWS * rows)), max(1, round(MOST_GROUPED_COLUMNS * columns)))
        height, width = (input_axis(draw, some, axis, draw.number(1, size)) for axis, size in enumerate(most))
        yield Chain(
            input=(1, height, width, channels),
            dtype=kind.dtype,
            filter_dtype=kind.filter_dtype,
            zero_point=drawn_zero_point(draw, kind.dtype),
            input_layout=ends[0],
            output_layout=ends[1],
            conv=with_requantisations(
                draw,
                kind,
                [with_filters(draw, kind, conv) for conv in some],
                [channels, *(conv.out_channels for conv in some)],
            ),
        )


def _grouped_conv(draw: Draw) -> Conv2d:
    """Draw a geometry: mostly 3x3 or 1x1, with any of a stride, a dilation and a padding."""
    kernel = draw.one_of((3, 3), (3, 3), (1, 1), (draw.number(1, 3), draw.number(1, 5)))
    stride = draw.one_of((1, 1), (1, 1), (2, 2), (1, 2), (2, 1), (3, 1))
    conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=draw.one_of((1, 1), (1, 1), (2, 2), (1, 3)))
    rows, columns = conv.reach
    same = Padding(top=(rows - 1) // 2, left=(columns - 1) // 2, bottom=rows // 2, right=columns // 2)
    return replace(conv, padding=draw.one_of(Padding(), same))


LONGEST_SUM = 2**17
"""The most products in a sum: int8 has the longest sums that an int32 holds, and floats have no limit."""
FEW_CHANNELS = 6


def long_sums(draw: Draw, kind: Kind) -> Iterator[Chain]:
    """Yield two chains whose first conv has one output pixel, with the most products that are accepted or half of them.

    The first conv of the second chain has one output channel.
    """
    first, zero_point = _long_conv(draw, kind), drawn_zero_point(draw, kind.dtype)
    rest = [with_filters(draw, kind, Conv2d(out_channels=draw.number(1, FEW_CHANNELS)))] if draw.is_one_in(3) else []
    height, width = (input_axis(draw, [first], axis, 1) for axis in (0, 1))
    alone = Chain(
        input=(1, height, width, 1),
        dtype=kind.dtype,
        filter_dtype=kind.filter_dtype,
        zero_point=zero_point,
        conv=(first,),
    )

    def with_channels(inputs: int) -> Chain:
        return replace(alone, input=(1, height, width, inputs))

    most = most_that(is_supported, with_channels, LONGEST_SUM // prod(first.kernel))
    inputs = most - draw.one_of(0, 0, draw.number(0, most // 2))
    for outputs in (draw.number(1, FEW_CHANNELS), 1):
        convs = (replace(first, out_channels=outputs), *rest)
        channels = [inputs, *(conv.out_channels for conv in convs)]
        finished = with_requantisations(draw, kind, convs, channels, are_long=True)
        yield replace(with_channels(inputs), conv=finished)


def most_that(holds: Callable[[Chain], bool], make: Callable[[int], Chain], largest: int) -> int:
    """Return the largest number up to `largest` whose chain holds, where those of smaller ones hold too; else 1."""
    return bisect_left(range(2, largest + 1), True, key=lambda number: not holds(make(number))) + 1


def is_supported(chain: Chain) -> bool:
    """Return whether a chain can be computed at all."""
    try:
        check_supported(chain)
    except Unsupported:
        return False
    return True


def _long_conv(draw: Draw, kind: Kind) -> Conv2d:
    """Draw a conv without stride and padding, dilated or not; its filter has a limit only where sums need one."""
    [geometry] = geometries(draw, 1)
    conv = with_filters(draw, kind, Conv2d(out_channels=1, kernel=geometry.kernel, dilation=geometry.dilation))
    return conv if kind.dtype == "int16" else replace(conv, filter_l1=None)
