"""Draw chains with the longest sums that are accepted: int32 has no room left in them for a term that was forgotten."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

from hexconv.compute.limits import check_supported
from hexconv.errors import Unsupported
from hexconv.spec import Chain, Conv2d
from hexconv.sweep.arithmetic import drawn_zero_point, with_filters, with_requantisations
from hexconv.sweep.draw import Draw
from hexconv.sweep.geometry import geometries, input_axis
from hexconv.sweep.scope import Kind

LONGEST_SUM = 2**17
"""The most products in a sum: int8 has the longest sums that an int32 holds, and floats have no limit."""
FEW_CHANNELS = 6


def long_sums(draw: Draw, kind: Kind) -> Iterator[Chain]:
    """Yield two chains whose first conv has one output pixel, with the most products that are accepted or half of them.

    The first conv of the second chain has one output channel.
    """
    first, zero_point = _conv(draw, kind), drawn_zero_point(draw, kind.dtype)
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


def _conv(draw: Draw, kind: Kind) -> Conv2d:
    """Draw a conv without stride and padding, dilated or not; its filter has a limit only where sums need one."""
    [geometry] = geometries(draw, 1)
    conv = with_filters(draw, kind, Conv2d(out_channels=1, kernel=geometry.kernel, dilation=geometry.dilation))
    return conv if kind.dtype == "int16" else replace(conv, filter_l1=None)
