"""Chains whose rows and columns are read with holes: wide strides, dilations, padding beyond the reach."""

from dataclasses import replace
from math import gcd

from hypothesis import strategies as st

from hexconv.spec import Chain, Conv2d, Padding
from tests.strategies import with_arithmetic

MOST_ROWS = 120
STRIDES = st.one_of(st.integers(1, 3), st.integers(4, 20))
EXTRA = st.one_of(st.just(0), st.integers(0, 3), st.integers(4, 24))
"""Padding, up to twice the reach of the largest kernel and more."""


@st.composite
def _axis(draw: st.DrawFn, size: int) -> tuple[int, int, int, int, int]:
    """Kernel, stride, dilation and padding on both sides of one axis; some output is left."""
    kernel, dilation, stride = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(STRIDES)
    before, after = draw(EXTRA), draw(EXTRA)
    missing = max(0, (kernel - 1) * dilation + 1 - size - before - after)
    return kernel, stride, dilation, before + missing, after


@st.composite
def wide_chains(
    draw: st.DrawFn, dtypes: tuple[str, ...] = ("float32", "int8"), most_convs: int = 4, grouped: bool = True
) -> Chain:
    """Few channels, so that what is drawn is geometry."""
    dtype, channels = draw(st.sampled_from(dtypes)), st.sampled_from((1, 2, 6, 40))
    height, width, inputs = draw(st.integers(1, 40)), draw(st.sampled_from((1, 1, 9))), draw(channels)
    convs, counts = [], [inputs]
    image = (draw(st.integers(1, 2)), height, width, inputs)
    for _ in range(draw(st.integers(1, most_convs))):
        down, across = draw(_axis(height)), draw(_axis(width)) if width > 1 else (1, 1, 1, 0, 0)
        kernel, stride, dilation, before, after = zip(down, across, strict=True)
        padding = Padding(top=before[0], left=before[1], bottom=after[0], right=after[1])
        conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=dilation, padding=padding)
        height, width = (
            (size + start + end - reach) // step + 1
            for size, start, end, reach, step in zip((height, width), before, after, conv.reach, stride, strict=True)
        )
        if max(height, width) > MOST_ROWS:
            break
        conv = draw(with_arithmetic(dtype, dtype, conv, channels, is_last=False))
        groups = gcd(counts[-1], conv.out_channels) if grouped and draw(st.booleans()) else 1
        convs.append(replace(conv, groups=groups))
        counts.append(conv.out_channels)
    return Chain(input=image, dtype=dtype, conv=tuple(convs) or (Conv2d(out_channels=1),))
