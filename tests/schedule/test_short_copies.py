"""Rows below 128 bytes are rows of one copy where one descriptor can hold them; the chains were drawn by the sweep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.chain import EdgeLayout
from hexconv.spec.dtypes import Dtype
from hexconv.spec.knobs import Filters, Halo, Order
from hexconv.spec.places import Storage
from hexconv.sweep.judging import short_copies
from tests.deep import DEEP
from tests.draws import SAME_LOWERED, SAME_RUN
from tests.lower.descriptors import groups_of

HOW = 'requantize = { multiplier = 134217728, shift = -10, zero_point = 0, rounding = "up" }'
PLAN = '[plan]\norder = "h_outer"\nbuffering = "double"\nkernel = "hvx"'
SLOWEST = "an image of one row, in stripes that might have many"
CASES = {
    "a strip begins in padding, and a clamp of its columns holds by itself": f"""
[chain]
input = [1, 96, 17, 1]
dtype = "uint8"
input_layout = "NHCW32c"
output_layout = "NHCW32c"
[[chain.conv]]
out_channels = 2
kernel = [2, 2]
stride = [2, 1]
padding = [2, 1, 5, 0]
{HOW}
[[chain.conv]]
out_channels = 2
kernel = [2, 1]
stride = [2, 1]
padding = [3, 0, 3, 1]
{HOW}
{PLAN}
rows = 10
w_split = 2
filters = "resident"
""",
    "one column of an image in blocks, with a last block of three channels": f"""
[chain]
input = [1, 3, 1, 99]
dtype = "uint8"
input_layout = "NHWC8h8w32c"
[[chain.conv]]
out_channels = 32
kernel = [2, 2]
dilation = [2, 2]
padding = [0, 13, 0, 0]
{HOW}
{PLAN}
""",
    "a last tile of one block of channels, where others have two": f"""
[chain]
input = [1, 20, 3, 8]
dtype = "uint8"
output_layout = "NHCW32c"
[[chain.conv]]
out_channels = 66
{HOW}
{PLAN}
k_split = 2
h_split = 2
threads = 3
""",
    "blocks of channels side by side, of which the last one is not whole": f"""
[chain]
input = [1, 9, 2, 8]
dtype = "uint8"
output_layout = "NHWC"
[[chain.conv]]
out_channels = 152
kernel = [3, 2]
{HOW}
{PLAN}
k_split = 4
rows = 1
""",
    "rows of a thread's band, up to the last one that there is": f"""
[chain]
input = [1, 126, 1, 13]
dtype = "uint8"
[[chain.conv]]
out_channels = 2
kernel = [7, 7]
stride = [3, 3]
padding = [0, 32, 0, 19]
{HOW}
[[chain.conv]]
out_channels = 32
kernel = [5, 7]
dilation = [2, 1]
padding = [0, 32, 0, 11]
{HOW}
[plan]
rows = 1
buffering = "double"
kernel = "hvx"
threads = 3
""",
    "a last strip of one column, and a stripe of three rows": f"""
[chain]
input = [2, 11, 30, 11]
dtype = "uint8"
input_layout = "NHCW32c"
output_layout = "NHWC"
[[chain.conv]]
out_channels = 17
kernel = [3, 4]
stride = [1, 3]
{HOW}
{PLAN}
rows = 3
w_split = 1
halo = "roll"
threads = 3
""",
    "rows of a ring, up to where it begins anew": f"""
[chain]
input = [4, 488, 2, 32]
dtype = "int8"
zero_point = 56
output_layout = "NHCW32c"
[[chain.conv]]
out_channels = 32
stride = [20, 6]
{HOW}
[[chain.conv]]
out_channels = 32
kernel = [4, 1]
dilation = [3, 1]
padding = [0, 16, 0, 0]
{HOW}
{PLAN}
rows = 1
w_split = 2
halo = "roll"
""",
    "blocks of columns that a strip begins inside of, so that their rows differ from block to block": f"""
[chain]
input = [1, 20, 91, 9]
dtype = "int8"
input_layout = "NHWC8h8w32c"
output_layout = "NHWC"
[[chain.conv]]
out_channels = 19
kernel = [1, 3]
stride = [2, 1]
dilation = [1, 2]
{HOW}
[[chain.conv]]
out_channels = 32
stride = [2, 2]
{HOW}
[plan]
w_split = 3
order = "h_outer"
halo = "roll"
filters = "resident"
kernel = "hvx"
""",
    "a last strip of one column, and a last tile of one block of channels": f"""
[chain]
input = [1, 4, 17, 128]
dtype = "int16"
output_layout = "NHWC"
[[chain.conv]]
out_channels = 128
groups = 2
filter_l1 = 65535
{HOW}
[plan]
k_split = 3
w_split = 2
buffering = "double"
kernel = "hvx"
storage = "vtcm"
""",
    SLOWEST: f"""
[chain]
input = [2, 1, 20, 1]
dtype = "uint8"
[[chain.conv]]
out_channels = 11
kernel = [3, 1]
stride = [2, 1]
padding = [9, 1, 0, 1]
{HOW}
[[chain.conv]]
out_channels = 32
kernel = [2, 1]
padding = [0, 0, 3, 0]
{HOW}
[[chain.conv]]
out_channels = 32
kernel = [3, 1]
padding = [8, 1, 7, 0]
{HOW}
[plan]
filters = "resident"
buffering = "double"
kernel = "hvx"
threads = 2
""",
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=DEEP if name == SLOWEST else ()) for name in CASES])
def test_no_short_row_is_a_copy_of_its_own(name: str) -> None:
    check(Case.parse(CASES[name], "short"))


@st.composite
def narrow_ends(draw: st.DrawFn) -> Case:
    """Chains whose last strip has one new column or two, and whose last tile of channels has one block, or less."""
    columns, blocks, k_split = draw(st.integers(1, 2)), draw(st.integers(3, 5)), draw(st.integers(2, 3))
    channels = 32 * blocks - draw(st.sampled_from([0, 0, 20]))
    conv = Conv2d(out_channels=channels, filter_l1=65535, requantize=Requantize(multiplier=1 << 24, shift=-8))
    size = (1, draw(st.integers(1, 9)), 16 + columns, 32)
    dtype: Dtype = draw(st.sampled_from(["uint8", "int16"]))
    layout: EdgeLayout = draw(st.sampled_from(["NHWC", "NHCW32c"]))
    chain = Chain(input=size, dtype=dtype, output_layout=layout, conv=(conv,))
    halo: Halo = draw(st.sampled_from(["recompute", "roll"]))
    plan = Plan(
        kernel="hvx", k_split=k_split, w_split=2, order="h_outer", halo=halo, buffering="double", storage="vtcm"
    )
    return Case("narrow", chain, plan)


@pytest.mark.simulator
@SAME_RUN
@given(narrow_ends())
def test_no_short_row_of_a_last_column_is_a_copy_of_its_own(case: Case) -> None:
    check(case)


@st.composite
def unpadded_strips(draw: st.DrawFn) -> Case:
    """Chains in strips of columns that no padding guards, in which steps start what the next strip reads."""
    channels, size = draw(st.sampled_from([3, 24, 32, 96])), draw(st.sampled_from([1, 3]))
    stride, columns = draw(st.integers(1, 2)), 8 * draw(st.integers(2, 4)) - draw(st.sampled_from([0, 0, 0, 3]))
    conv = Conv2d(
        out_channels=draw(st.sampled_from([16, 32, 40])),
        kernel=(size, size),
        stride=(stride, stride),
        requantize=Requantize(multiplier=1 << 24, shift=-8),
    )
    image = (draw(st.integers(1, 2)), draw(st.integers(9, 18)), (columns - 1) * stride + size, channels)
    layout: EdgeLayout = draw(st.sampled_from(["NHWC", "NHCW32c"]))
    chain = Chain(input=image, dtype="uint8", input_layout=layout, output_layout="NHWC", conv=(conv,))
    order: Order = draw(st.sampled_from(["k_outer", "h_outer"]))
    filters: Filters = draw(st.sampled_from(["per_tile", "resident"]))
    plan = Plan(
        kernel="hvx",
        rows=draw(st.sampled_from([None, 2])),
        w_split=1,
        order=order,
        filters=filters,
        buffering="double",
        storage="vtcm",
    )
    return Case("strips", chain, plan)


@pytest.mark.simulator
@SAME_RUN
@given(unpadded_strips())
def test_rows_of_strips_without_padding_are_copied_whole(case: Case) -> None:
    """The last step's successor must not clamp columns: what is clamped is copied pixel by pixel."""
    check(case)


@st.composite
def rows_of_blocks(draw: st.DrawFn) -> Case:
    """Images in blocks of eight rows and one of columns, which far padding and the bands of threads cut anywhere."""
    stride, dilation, size = (draw(st.integers(1, 3)) for _ in range(3))
    top, bottom = (draw(st.integers(0, 24)) for _ in range(2))
    conv = Conv2d(
        out_channels=32,
        kernel=(size, 1),
        stride=(stride, 1),
        dilation=(dilation, 1),
        padding=Padding(top=top, left=0, bottom=bottom, right=0),
        requantize=Requantize(multiplier=1 << 24, shift=-8),
    )
    image = (1, draw(st.integers(9, 100)), 1, draw(st.integers(1, 32)))
    dtype: Dtype = draw(st.sampled_from(["uint8", "int8"]))
    chain = Chain(input=image, dtype=dtype, input_layout="NHWC8h8w32c", output_layout="NHCW32c", conv=(conv,))
    storage: Storage = draw(st.sampled_from(["vtcm", "input+intermediates"]))
    order: Order = draw(st.sampled_from(["k_outer", "h_outer"]))
    plan = Plan(kernel="hvx", threads=draw(st.integers(1, 3)), order=order, buffering="double", storage=storage)
    return Case("rows", chain, plan)


@SAME_LOWERED
@given(rows_of_blocks())
def test_rows_of_a_column_in_blocks_are_one_copy(case: Case) -> None:
    """Rows of blocks that lie one behind the other are at equal distances, in whichever of them a band begins."""
    for group in groups_of(lower_case(case).module):
        assert sum(each.source[0].startswith("input") for each in group) <= 1


def test_pixels_of_a_whole_block_are_one_row() -> None:
    """Eight pixels of 32 channels lie side by side in both buffers, though the last block of 40 channels has 8."""
    case = Case.parse(
        f"""
[chain]
input = [1, 11, 16, 40]
dtype = "uint8"
input_layout = "NHWC8h8w32c"
output_layout = "NHCW32c"
[[chain.conv]]
out_channels = 40
kernel = [3, 3]
padding = 1
groups = 40
{HOW}
[plan]
h_split = 2
buffering = "double"
kernel = "hvx"
storage = "vtcm"
""",
        "blocks",
    )
    read = [each for group in groups_of(lower_case(case).module) for each in group if each.queue == 0]
    assert not [each for each in read if each.rows > 1 and each.bytes == 32], "rows of 32 bytes at a distance of 32"
    assert [each.bytes for each in read if each.bytes >= 256]


def check(case: Case) -> None:
    run = run_case(case, lower_case(case), Simulator(slots=False))
    assert run.check.passed
    assert list(short_copies(run)) == []
