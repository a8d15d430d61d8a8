"""The account of issue slots counts what ran: the counter's packets, and stalls that a second count finds as well."""

import pytest

from hexconv.errors import RunFailed
from hexconv.lower.hexagon import HexagonObject, hexagon_target
from hexconv.lower.packets.assembled import assembled
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.slots import slots_of
from hexconv.run.simulator.trace import Reader
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
        else f"Trace 0: 0x7f93 [00000000/{int(block.split()[0], 16):08x}/00000000/00080200] {block[6:]}"
        for block in blocks
    ]
    return KERNEL + "\n".join(lines).encode() + b"\n"


RESUME, PAUSE, HANDLER = "0x010 counters_resume", "0x020 counters_pause", "0x030 take_sample"
BACK, BLOCK = "0xfff ", "0x100 main"
NOTHING = (RESUME, PAUSE)
"""The harness counts nothing once, before it counts a kernel."""


@pytest.mark.parametrize(
    ("ran", "packets", "stalls"),
    [
        ((BLOCK,), 3, 1),  # the load in front of the multiply
        ((BLOCK, BLOCK), 6, 2),  # what the last packet loads isn't what the first one reads
        ((BLOCK, HANDLER, BACK, BLOCK), 6, 2),  # the handler of a signal isn't the kernel's
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
