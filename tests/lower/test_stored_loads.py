"""Packets that load what they store: taken apart where nothing stands against it."""

import pytest

from hexconv.lower import lower_case
from hexconv.lower.packets.stored_loads import without_stored_loads
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.sweep.random_case import random_case


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


@pytest.mark.simulator
def test_a_kernel_that_reads_back_its_stack_is_right() -> None:
    """QEMU 7.2 ran it into a trap: a packet got an old word of the stack as an address."""
    case = random_case(1, 1978)
    simulator = Simulator(case.settled.arch, case.settled.vtcm_bytes, slots=False)
    assert run_case(case, lower_case(case), simulator).check.passed
