"""Small chains whose stripes see nothing but padding, or are stepped over: what rolls through caches must bear both."""

from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from hexconv.compute.computable import check_supported
from hexconv.errors import HexconvError
from hexconv.spec import Case, Chain, Conv2d, Padding, Requantize
from hexconv.spec.dtypes import Dtype
from tests.schedule.integer_chains import planned

LARGEST_IMAGE = 20
LONGEST_ROWS = 60  # of any tensor: what follows a tall one only repeats
CHANNELS = st.sampled_from([1, 3, 4, 8, 32, 36, 128, 160])
DTYPES: tuple[tuple[Dtype, Dtype | None], ...] = (
    *(("uint8", None), ("uint8", "int8"), ("int8", None)),
    *(("int16", "int8"), ("int16", None)),
)


@st.composite
def far_padded_cases(draw: st.DrawFn) -> Case:
    """Images from one pixel on, padding up to twice the reach and beyond the image, strides longer than kernels."""
    dtype, filter_dtype = draw(st.sampled_from(DTYPES))
    convs = [draw(_convs()) for _ in range(draw(st.integers(1, 3)))]
    convs = [draw(_quantised(conv, dtype, filter_dtype or dtype)) for conv in convs]
    image = (draw(st.integers(1, 2)), draw(_sizes()), draw(_sizes()), draw(CHANNELS))
    try:
        chain = Chain(input=image, dtype=dtype, filter_dtype=filter_dtype, conv=tuple(convs))
        assume(max(shape[1] for shape in chain.shapes) <= LONGEST_ROWS)
        check_supported(chain)
    except HexconvError:
        assume(False)
    return draw(planned(chain, most_h=2))


def _sizes() -> st.SearchStrategy[int]:
    return st.one_of(st.just(1), st.integers(1, LARGEST_IMAGE))


@st.composite
def _convs(draw: st.DrawFn) -> Conv2d:
    pair = st.tuples(st.integers(1, 4), st.integers(1, 4))
    conv = Conv2d(
        out_channels=draw(CHANNELS),
        kernel=draw(pair),
        stride=draw(st.one_of(st.just((1, 1)), pair, st.just((9, 9)), st.just((17, 2)))),
        dilation=draw(st.one_of(st.just((1, 1)), pair)),
        bias=draw(st.booleans()),
    )
    rows, columns = conv.reach
    top, bottom = (draw(_padding(rows)) for _ in range(2))
    left, right = (draw(_padding(columns)) for _ in range(2))
    return replace(conv, padding=Padding(top=top, left=left, bottom=bottom, right=right))


def _padding(reach: int) -> st.SearchStrategy[int]:
    return st.one_of(st.just(0), st.integers(0, 2 * reach), st.integers(0, LARGEST_IMAGE + reach))


@st.composite
def _quantised(draw: st.DrawFn, conv: Conv2d, dtype: Dtype, filter_dtype: Dtype) -> Conv2d:
    zero_point = 0 if filter_dtype == "int16" else draw(st.sampled_from([0, 100]))
    shift = draw(st.integers(-12, -4))
    return replace(
        conv,
        filter_zero_point=zero_point,
        filter_l1=60000 if dtype == "int16" else None,
        requantize=Requantize(multiplier=0x5A7B3C1D, shift=shift, zero_point=0 if dtype == "int16" else 7),
    )
