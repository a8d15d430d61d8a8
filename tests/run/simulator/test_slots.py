"""The account of issue slots counts what ran: the counter's packets, and stalls that a second count finds as well."""

import pytest

from hexconv.errors import RunFailed
from hexconv.run.simulator.slots import slots_of
from hexconv.run.simulator.trace import Reader

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
