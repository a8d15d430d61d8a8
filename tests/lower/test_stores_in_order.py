"""Packets that store bytes twice: the vector goes ahead, so that the scalar's bytes stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.lower.encodable import VECTOR_BYTES, with_stores_in_order

VECTOR = "vmem(r7+#-4) = v0"


def packet(*lines: str, end: str = "\t}") -> str:
    return "\n".join(["\t{", *(f"\t\t{line}" for line in lines), end]) + "\n"


@pytest.mark.parametrize("end", ["\t}", "\t} :endloop0"])
def test_a_vector_goes_ahead_of_a_scalar_over_its_bytes(end: str) -> None:
    scalar, other = "memd(r7+#-496) = r3:2", "r4 = add(r4,#8)"
    changed = with_stores_in_order(packet(other, scalar, VECTOR, end=end))
    assert changed == packet(VECTOR) + packet(other, scalar, end=end)


def test_what_makes_the_vector_goes_with_it() -> None:
    scalar, store = "memb(r7+#1) = r3", "vmemu(r7+#0) = v0.new"
    makes = "v0 = valign(v1,v2,r3)"
    assert with_stores_in_order(packet(makes, scalar, store)) == packet(makes, store) + packet(scalar)


@pytest.mark.parametrize("scalar", ["memb(r16+r24<<#0) = r6", "memh(r2++#2) = r3", "if (p0) memw(r1+#0) = r4"])
def test_a_scalar_at_any_other_place_may_replace_bytes(scalar: str) -> None:
    assert with_stores_in_order(packet(scalar, VECTOR)) == packet(VECTOR) + packet(scalar)


@given(st.sampled_from("bhwd"), st.integers(-600, 600), st.integers(-3, 3))
def test_a_packet_is_split_where_both_share_bytes(kind: str, scalar: int, vector: int) -> None:
    size = {"b": 1, "h": 2, "w": 4, "d": 8}[kind]
    text = packet(f"mem{kind}(r7+#{scalar}) = r2", f"vmem(r7+#{vector}) = v0")
    shared = {*range(scalar, scalar + size)} & {*range(vector * VECTOR_BYTES, (vector + 1) * VECTOR_BYTES)}
    assert (with_stores_in_order(text) != text) == bool(shared)


@pytest.mark.parametrize(
    "lines",
    [
        ("memd(r29+#-496) = r3:2", VECTOR),
        ("memd(r30+#-16) = r19:18", "vmem(r7+#0) = v0"),
        ("memw(r2+#0) = r7", "vmem(r7++#1) = v0"),
        ("memd(r7+#-520) = r3:2", VECTOR),
        ("memd(r7+#-496) = r3:2", "v1 = vmem(r7+#-4)"),
        ("memd(r7+#-496) = r3:2", "vmem(r7+#-4) = v0.new", "v0 = vadd(v0,v1)", "v2 = vsub(v0,v1)"),
    ],
    ids=["the stack", "a frame", "a base that moves", "other bytes", "a load", "others read the vector that was there"],
)
def test_all_other_packets_stay(lines: tuple[str, ...]) -> None:
    assert with_stores_in_order(packet(*lines)) == packet(*lines)
