"""The account of issue slots counts what ran: the counter's packets, and stalls that a second count finds as well."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from hexconv.errors import RunFailed
from hexconv.lower import lower_case
from hexconv.lower.assembly import Packet, listing
from hexconv.lower.hexagon_object import HexagonObject, compile_for_hexagon
from hexconv.lower.hexagon_target import hexagon_target
from hexconv.lower.object_file import assembled
from hexconv.lower.stalls import stall
from hexconv.run.measure import run_case
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.slots import Slots, slots_of
from hexconv.run.simulator.trace import Blocks, Reader
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from tests.lower.test_packets import MANUAL

KERNEL = b"""IN: main
0x00000100:  0x2819e532\t{\tV1 = vmem(R25+#0x0) }
0x00000104:  0x19027182\t{\tV2.uw += vrmpy(V1.ub,R2.ub) }
0x00000108:  0x19027182\t{\tV4.uw += vrmpy(V3.ub,R2.ub)
0x0000010c:  0x2819c312\t\tV3 = vmem(R25+#0x1) }:endloop0
"""


def trace(*blocks: str) -> bytes:
    """QEMU's words for blocks: `0x100 main` ran, `Stopped` before it ran after all."""
    lines = [
        f"{block} execution of TB chain before 0x7f9 [00000100] main"
        if block == "Stopped"
        else f"Trace 0: 0x7f93 [00000000/{int(block.split()[0], 16):08x}/00000000/00080200] {block.partition(' ')[2]}"
        for block in blocks
    ]
    return KERNEL + "\n".join(lines).encode() + b"\n"


RESUME, PAUSE, HANDLER = "0x010 counters_resume", "0x020 counters_pause", "0x030 take_sample"
TRAP, CALLED, NAMELESS = "0x040 perform_packet", "0x050 memset", "0x060 "
BACK, BLOCK = "0x3fff0000 ", "0x100 main"
NOTHING = (RESUME, PAUSE)
"""The harness counts nothing once, before it counts a kernel."""


@pytest.mark.parametrize(
    ("ran", "packets", "stalls"),
    [
        ((BLOCK,), 3, 1),  # the load in front of the multiply
        ((BLOCK, BLOCK), 6, 2),  # what the last packet loads isn't what the first one reads
        ((BLOCK, HANDLER, BACK, BLOCK), 6, 2),  # the handler of a signal isn't the kernel's
        ((BLOCK, TRAP, CALLED, NAMELESS, CALLED, TRAP, BACK, BLOCK), 6, 2),  # nor is what that of a packet runs
        ((BLOCK, BLOCK, "Stopped", HANDLER, BACK, BLOCK), 6, 2),  # a block that was left before it began
        ((BLOCK, PAUSE, "Stopped", PAUSE, BLOCK, RESUME, "Stopped", RESUME, BLOCK), 6, 2),
        ((BLOCK, PAUSE, BLOCK, "Stopped", BLOCK, RESUME, BLOCK), 6, 2),  # what the harness does in between
    ],
)
def test_blocks_are_counted_where_the_harness_counts(ran: tuple[str, ...], packets: int, stalls: int) -> None:
    text, reader = trace(*NOTHING, RESUME, *ran, PAUSE, BLOCK), Reader()
    middle = text.index(b"\n", len(KERNEL) + 100) + 1
    reader.read(text[:middle])  # in pieces, as a pipe gives them
    reader.read(text[middle:])
    slots = slots_of(reader.blocks, "v68", packets)
    assert (slots.packets, slots.stalls) == (packets, {"load to multiply": stalls})
    assert (slots.issue_slots, slots.vector_loads) == (packets + stalls, packets // 3 * 2)
    with pytest.raises(RunFailed, match="--no-slots"):
        slots_of(reader.blocks, "v68", packets + 1)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("body", "stalls"),
    [
        ([text for text, _ in MANUAL], {"alu to multiply": 1, "alu to permute": 1}),
        (["v1 = vmem(r3+#-1)", "v2.uw += vrmpy(v1.ub,r1.ub)", "v3.uw += vrmpy(v1.ub,r1.ub)"], {"load to multiply": 1}),
        (
            ["v2.uw += vrmpy(v1.ub,r1.ub)", "r2 = add(r2,#1)", "v1 = vmem(r3+#-1)"],
            {"load to multiply": 1},
        ),  # round the loop
        (["v1 = vmem(r3+#-1)", "r2 = add(r2,#1)", "v2.uw += vrmpy(v1.ub,r1.ub)"], {}),
    ],
)
def test_packets_written_by_hand_stall_as_often_as_their_loop_goes_round(
    body: list[str], stalls: dict[str, int]
) -> None:
    trips, qemu = 1000, find_qemu()
    packets = ["{ r0 = #0\n r3 = and(r29,#-128) }", f"loop0(.Lbody,#{trips})", ".Lbody:", *body[:-1]]
    text = "\n".join([*packets, f"{{ {body[-1]} }} :endloop0", "{ r0 = #0\n jumpr r31 }"])
    head = ".text\n.globl __tvm_ffi_main\n.type __tvm_ffi_main,@function\n__tvm_ffi_main:\n"
    kernel = HexagonObject(qemu.isa, assembled(f"{head}{text}\n", hexagon_target(qemu.isa)), (), ())
    slots, bare = Simulator().run_object(kernel, [], []).slots, Simulator(slots=False).run_object(kernel, [], [])
    assert slots
    assert bare.counts
    first_has_none = 1 if body[0] == "v2.uw += vrmpy(v1.ub,r1.ub)" else 0  # nothing was loaded before the first round
    assert slots.stalls == {cause: each * trips - first_has_none for cause, each in stalls.items()}
    assert slots.packets == bare.counts.packets
    assert slots.packets >= len(body) * trips
    assert bare.slots is None


BODY = """
{ r29 = add(r29,#-16); r6 = memw(##__TVMBackendAllocWorkspace) }
{ memd(r29+#0) = r17:16; memw(r29+#8) = r31 }
{ r0 = #1; r1 = #1; r3:2 = combine(#0,##2048) }
{ r4 = #0; r5 = #8; callr r6 }
{ r16 = r0; r7 = add(r29,#-256); r8 = #2; p1 = !cmp.eq(r0,r0) }
{ r9 = #0; memw(r0+#0) = r8 }
loop0(.Lbody,#100)
.Lbody:
{ r3:2 = memd(r16+#8); r1 = memw(r16+r8<<#2) }
{ r1 = memw(r29+#0); r0 = memub(r16+#2047) }
{ r1 = memh(r7+#0); r10 = r16 }
{ r5 = memub(r10++#1); p0 = cmp.gt(r9,#49); if (p0.new) r4 = memw(r16+#4) }
{ if (p1) r1 = memw(r16+#0); if (!p1) r0 = memw(r16+#0) }
{ v1 = vmem(r16+#0); r9 = add(r9,#1) } :endloop0
{ r6 = memw(##__TVMBackendFreeWorkspace); r2 = r16 }
{ r0 = #1; r1 = #1; callr r6 }
{ r0 = #0; r31 = memw(r29+#8) }
{ r17:16 = memd(r29+#0); r29 = add(r29,#16); jumpr r31 }
"""
READING_VTCM = 100 * (2 + 1 + 1 + 1) + 50
"""Two of the first packet, one of the second, one by r10, one under !p1; one under p0 in the last 50 trips."""


@pytest.mark.simulator
def test_scalar_loads_from_vtcm_are_counted_one_by_one() -> None:
    """Not those from the stack, by vectors, from outside of VTCM, or that a guard keeps from happening."""
    isa = find_qemu().isa
    lines = [line.strip() for line in BODY.strip().splitlines()]
    packets = [_packet(line) if line.startswith("{") else f"\t{line}" for line in lines]
    head = "\t.text\n\t.globl __tvm_ffi_main\n\t.type __tvm_ffi_main,@function\n__tvm_ffi_main:\n"
    text = head + "\n".join(packets).replace("\t.Lbody:", ".Lbody:") + "\n"
    kernel = HexagonObject(isa, assembled(text, hexagon_target(isa)), (), (2048,), text=text)
    measured = Simulator().run_object(kernel, [], [])
    assert measured.slots
    assert measured.slots.vtcm_scalar_loads == READING_VTCM
    assert (measured.slots.scalar_loads or 0) > READING_VTCM
    unknown = HexagonObject(isa, kernel.elf, (), (2048,), text="\tcall memcpy\n")
    slots = Simulator().run_object(unknown, [], []).slots
    assert slots
    assert slots.vtcm_scalar_loads is None


def _packet(line: str) -> str:
    """A packet as LLVM writes it: an instruction a line."""
    inside, end = line[1:].rsplit("}", 1)
    return "\n".join(["\t{", *(f"\t\t{each.strip()}" for each in inside.split(";")), f"\t}}{end}"])


@pytest.mark.simulator
def test_loops_stall_as_often_in_the_trace_as_in_the_assembly_that_was_assembled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second count, of the text that the compiler wrote, loop by loop, against QEMU's words for what ran."""
    kept: list[Blocks] = []

    def keeping(blocks: Blocks, arch: str, packets: int) -> Slots:
        kept.append(blocks)
        return slots_of(blocks, arch, packets)

    monkeypatch.setattr("hexconv.run.simulator.runner.slots_of", keeping)
    conv = Conv2d(out_channels=64, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30, shift=-8))
    case = Case("loops", Chain(input=(1, 8, 14, 64), dtype="uint8", conv=(conv, conv)), Plan(kernel="hvx", k_split=2))
    lowered = lower_case(case)
    assert run_case(case, lowered, Simulator()).check.passed
    text = listing(compile_for_hexagon(lowered.module, find_qemu().isa).text)
    assert text
    written = [block for place, block in enumerate(text.blocks) if place in block.next]
    by_packets = {
        _operations(packets): packets for block in written for packets in [[line.packet for line in block.lines]]
    }
    ran, (blocks,) = 0, kept
    packets = blocks.packets()
    for before, block, times in blocks.pairs():
        if before == block and times > 0:
            known = by_packets[_operations(packets[block])]
            assert _stalls_of_trip(packets[block]) == _stalls_of_trip(known)
            ran += times * len(known)
    assert ran > sum(times * len(packets[block]) for block, times in blocks.runs().items()) / 2


def _operations(packets: Sequence[Packet]) -> tuple[tuple[str, ...], ...]:
    """What the packets of a loop do, in words that both languages share."""
    return tuple(tuple(sorted(each.operation for each in packet)) for packet in packets)


def _stalls_of_trip(packets: Sequence[Packet]) -> int:
    """Stalls of a trip, the way back included."""
    return sum(stall(before, after, "v68") is not None for before, after in pairwise([*packets, packets[0]]))
