"""Rows below 128 bytes are rows of one copy where one descriptor can hold them; the chains were drawn by the sweep."""

import pytest

from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case
from hexconv.sweep.verdict import short_copies

HOW = 'requantize = { multiplier = 134217728, shift = -10, zero_point = 0, rounding = "up" }'
PLAN = '[plan]\norder = "h_outer"\nbuffering = "double"\nkernel = "hvx"'
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
    "an image of one row, in stripes that might have many": f"""
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


@pytest.mark.parametrize("name", CASES)
def test_no_short_row_is_a_copy_of_its_own(name: str) -> None:
    case = Case.parse(CASES[name], "short")
    run = run_case(case, lower_case(case), Simulator(slots=False))
    assert run.check.passed
    assert list(short_copies(run)) == []
