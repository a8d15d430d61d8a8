"""Stalls are those of the published rules; packets are read as the assembler reads them."""

import itertools

import pytest

from hexconv.lower.assembly import Line, Packet, instruction, packet
from hexconv.lower.fewer_stalls import has_room
from hexconv.lower.stalls import RULES, stall

MANUAL = (
    ("v8.w = vadd(v0.w,v0.w)", False),
    ("v0.w = vadd(v8.w,v9.w)", False),  # an addition takes its sources late
    ("v1.h = vmpy(v0.h,r0.h):<<1:sat", True),  # v0
    ("v2.w = vsub(v2.w,v1.w)", False),
    ("v5:4.uh = vunpack(v2.ub)", True),  # v2
    ("v2.w = vadd(v0.w,v4.w)", False),
)
"""The example of the manual's chapter on latency: a packet each, and whether it stalls behind the one before."""

ARCHITECTURES = ("v65", "v66", "v67", "v68", "v69", "v71", "v73", "v75", "v79")


def packets(*texts: str) -> list[Packet]:
    return [packet(text.split("; ")) for text in texts]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_example_of_the_manual_stalls_where_the_manual_says(arch: str) -> None:
    read = packets(*(text for text, _ in MANUAL))
    found = [stall(before, after, arch) is not None for before, after in itertools.pairwise(read)]
    assert [False, *found] == [stalls for _, stalls in MANUAL]


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ("v1 = vmem(r0+#0)", "v2.uw += vrmpy(v1.ub,r1.ub)", "load to multiply"),
        ("v1 = vmem(r0++#1)", "v2.uw = vadd(v1.uw,v3.uw)", None),
        ("v1.cur = vmem(r0+#0); v2.uw += vrmpy(v1.ub,r1.ub)", "v3.uw += vrmpy(v1.ub,r1.ub)", None),
        ("v2.uw += vrmpy(v1.ub,r1.ub)", "v2.uw += vrmpy(v1.ub,r2.ub)", None),  # an accumulator is no source
        ("v2.uw += vrmpy(v1.ub,r1.ub)", "v4.h = vasr(v3.w,v2.w,r7):rnd:sat", "multiply to shift"),
        ("v2 = vmem(r0+#0); v3.w = vadd(v4.w,v5.w)", "v6 = valign(v3,v2,r7)", "load to permute"),  # one slot, not two
        ("v1 = vmem(r0+#0)", "v1.cur = vmem(r0+#1); v2.uw += vrmpy(v1.ub,r1.ub)", None),  # reads what it loads itself
        ("v1 = vmem(r0+#0)", "vmem(r1+#0) = v1", None),
        ("v1 = vmem(r0+#0)", "vmemu(r1+#0) = v1", "load to store"),
        ("r1:0 = memd(r2+#0)", "v2.uw += vrmpy(v1.ub,r1.ub)", None),
        ("v3:2 = vcombine(v1,v0)", "vshuff(v2,v9,r7)", "alu to permute"),
        ("V1 = vmem(R0+#0x0)", "V2.uw += vrmpy(V1.ub,R1.ub)", "load to multiply"),  # as QEMU writes it
    ],
)
def test_a_packet_stalls_for_what_it_needs_early(before: str, after: str, cause: str | None) -> None:
    first, second = packets(before, after)
    found = stall(first, second, "v68")
    assert (found and found.cause) == cause


def test_moves_under_a_condition_take_their_sources_early_from_v71_on() -> None:
    first, second = packets("v1 = vmem(r0+#0)", "if (p0) v3:2 = vcombine(v1,v0)")
    stalled = [stall(first, second, arch) is not None for arch in ARCHITECTURES]
    assert stalled == [int(arch[1:]) >= 71 for arch in ARCHITECTURES]


def test_every_rule_says_where_it_is_from() -> None:
    assert all(rule.source for rule in RULES)
    names = [(rule.unit, rule.since, name) for rule in RULES for name in rule.operations]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("v3:2 = vdeal(v2,v1,r7)", {"v2", "v3"}, {"v1", "v2", "r7"}),
        ("vshuff(v1,v0,r0)", {"v0", "v1"}, {"r0"}),
        ("v17.cur = vmem(r25++#1)", {"v17", "r25"}, {"r25"}),
        ("if (q0) vmem(r2+#0) = v3", set(), {"q0", "r2", "v3"}),
        ("vmem(r2++m0) = v3.new", {"r2"}, {"r2", "m0"}),
        ("r1:0 = memd(r24+#-256)", {"r0", "r1"}, {"r24"}),
        ("memd(r29+#-16) = r17:16", set(), {"r16", "r17", "r29"}),
        ("r0 = memw(r1=##table)", {"r0", "r1"}, {"r1"}),
        ("if (!p0.new) jump:nt .LBB0_12", set(), set()),
        ("q1 = vcmp.gt(v1.uh,v2.uh)", {"q1"}, {"v1", "v2"}),
        ("nop", set(), set()),
    ],
)
def test_what_an_instruction_reads_and_writes(text: str, writes: set[str], reads: set[str]) -> None:
    read = instruction(text)
    assert (read.writes, read.reads) == (writes, reads)


def test_a_word_that_is_inserted_keeps_the_rest_of_its_vector() -> None:
    """A load must not take the register in between, nor the word another one."""
    for text in ("v2.w = vinsert(r5)", "v3:2.w = vasrinto(v4.w,v5.w)"):
        read = instruction(text)
        assert read.accumulates == read.writes


@pytest.mark.parametrize(
    ("texts", "room"),
    [
        ("v20.uw += vrmpy(v28.ub,v23.ub); v8.b |= vlut32(v6.b,v22.b,#1)", False),  # found bytes are added by shifters
        ("v5.w += vrmpy(v1.b,v19.b); v7:6 = vcombine(v18,v18)", False),  # both multipliers, and two units more
        ("v5.w += vrmpy(v1.b,v19.b); v7 = v18", True),
        ("v5.uw += vrmpy(v1.ub,r1.ub); v7:6 = vcombine(v18,v18)", True),
        ("v5.uw += vrmpy(v1.ub,r1.ub); v7 = vmem(r2+#0)", False),
    ],
)
def test_a_packet_has_room_for_a_load_where_units_are_left(texts: str, room: bool) -> None:
    assert has_room(Line(packet(texts.split("; ")), "}")) == room
