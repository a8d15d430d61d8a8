"""Packets that load what they store: taken apart where nothing stands against it."""

import pytest

from hexconv.lower import lower_case
from hexconv.lower.encodable import without_stored_loads
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case


def packet(*lines: str, end: str = "\t} :mem_noshuf") -> str:
    return "\n".join(["\t{", *(f"\t\t{line}" for line in lines), end]) + "\n"


STORE, LOAD = "memw(r29+#3584) = r0", "r6 = memw(r29+#3584)"


def test_a_load_of_what_its_packet_stores_comes_after_it() -> None:
    changed = without_stored_loads(packet("r18 = lsr(r6,#3)", "r7 = add(r29,#2048)", STORE, LOAD))
    assert changed == packet("r18 = lsr(r6,#3)", "r7 = add(r29,#2048)", STORE, end="\t}") + packet(LOAD, end="\t}")


@pytest.mark.parametrize(
    "lines",
    [
        (LOAD, STORE),
        (STORE, "r6 = memw(r29+#3580)"),
        (STORE, LOAD, "jump .LBB0_1"),
        ("memw(r3+#0) = r0", "r6 = memw(r3+#0)", "r3 = add(r3,#4)"),
        ("memw(r3+#0) = r0", "r6 = memw(r3+#0)", "if (p0) r3 = #4"),
        ("memw(r3+#0) = r0", "r6 = memw(r3+#0)", "r3 ^= asl(r1,#2)"),
        ("memw(r3+#0) = r0", "r6 = memw(r3+#0)", "r5:4 = combine(r1,r0)", "p0 = cmp.eq(r6.new,#0)"),
    ],
    ids=[
        "a load before its store",
        "another address",
        "a jump",
        "another base behind it",
        "perhaps another base",
        "a base that is combined",
        "its result is taken at once",
    ],
)
def test_all_other_packets_stay(lines: tuple[str, ...]) -> None:
    assert without_stored_loads(packet(*lines)) == packet(*lines)


def test_a_packet_that_ends_a_loop_stays() -> None:
    text = packet(STORE, LOAD, end="\t} :mem_noshuf :endloop0")
    assert without_stored_loads(text) == text


READS_ITS_STACK = """
[chain]
input = [4, 1, 7, 10]
dtype = "int8"
zero_point = 1
[[chain.conv]]
out_channels = 4
kernel = [2, 2]
stride = [2, 1]
padding = [2, 1, 9, 0]
groups = 2
bias = true
requantize = { multiplier = "per_channel", shift = "per_channel", zero_point = -128, rounding = "away", least_odd = 2 }
[[chain.conv]]
out_channels = 8
kernel = [2, 2]
padding = [5, 0, 7, 1]
groups = 4
filter_zero_point = -1
requantize = { multiplier = "per_channel", shift = "per_channel", zero_point = 0, rounding = "away" }
[[chain.conv]]
out_channels = 8
kernel = [1, 2]
stride = [2, 1]
padding = [7, 0, 6, 1]
groups = 8
activation = "table"
table_zero_point = 127
filter_zero_point = 126
filter_l1 = 20919
requantize = { multiplier = 1332349566, shift = -5, zero_point = 126, rounding = "even", clamp = [1, 28] }
[[chain.conv]]
out_channels = 53
kernel = [3, 1]
stride = [2, 1]
padding = [1, 0, 5, 1]
bias = true
filter_zero_point = -128
requantize = { multiplier = 1557747621, shift = -8, zero_point = -1, rounding = "away" }
[plan]
k_split = 2
filters = "resident"
buffering = "double"
kernel = "hvx"
storage = "input+filters"
activations = "splats"
arch = "v65"
"""
"""The random sweep drew this."""


@pytest.mark.simulator
def test_a_kernel_that_reads_back_its_stack_is_right() -> None:
    """QEMU 7.2 ran it into a trap: a packet got an old word of the stack as an address."""
    case = Case.parse(READS_ITS_STACK, "stack")
    simulator = Simulator(case.settled.arch, case.settled.vtcm_bytes, slots=False)
    assert run_case(case, lower_case(case), simulator).check.passed
