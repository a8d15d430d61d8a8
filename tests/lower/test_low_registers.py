"""Amounts in registers that their instructions cannot name change places with low ones, and nothing else changes."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.lower.encodable import NoLowRegister, with_loops_in_reach, with_low_registers
from hexconv.lower.hexagon_target import hexagon_target
from hexconv.lower.object_file import Refused, assembled
from tests.deep import one_in

AMOUNTS = (
    "v0 = valign(v22,v13,{})",
    "v0 = vlalign(v22,v13,{})",
    "v0.h = vasr(v22.w,v13.w,{})",
    "v0.ub = vasr(v22.h,v13.h,{}):rnd:sat",
    "v0.b = vlut32(v22.b,v13.b,{})",
    "v5:4 = vdeal(v22,v13,{})",
    "v5:4 = vshuff(v22,v13,{})",
)
NUMBERS = st.integers(0, 27)


def packet(*instructions: str, end: str = "}") -> str:
    return "\n".join(["\t{", *(f"\t\t{each}" for each in instructions), f"\t{end}"]) + "\n"


def packets(text: str) -> list[list[str]]:
    """The instructions of each packet."""
    bodies = re.findall(r"\{\n(.*?)\n\t\}", text, re.DOTALL)
    return [[line.strip() for line in body.splitlines()] for body in bodies]


def ran(text: str, values: dict[str, int]) -> tuple[list[str], dict[str, int]]:
    """What scalar registers hold after a text, and what each vector instruction and store saw of registers.

    A vector register holds the place of its writer in the text's order of targets, so that a reader tells old from new.
    """
    values, seen = dict(values), []
    for body in packets(text):
        before = dict(values)
        for line in body:
            target, _, value = line.partition(" = ")
            if found := re.search(r"v\w+\((v\d+)(?:\.\w)?,(v\d+)(?:\.\w)?,(r\d+)\)", value):
                shown = [values if f"{name}.cur" in " ".join(body) else before for name in found.groups()]
                operands = [str(of.get(name, name)) for of, name in zip(shown, found.groups(), strict=True)]
                seen.append(f"{target} {value.split('(')[0]} {operands}")
                values[target.split(".")[0]] = hash(seen[-1])
            elif pair := re.fullmatch(r"r(\d+):(\d+) = combine\(#(\d+),#(\d+)\)", line):
                values |= {f"r{pair[1]}": int(pair[3]), f"r{pair[2]}": int(pair[4])}
            elif added := re.fullmatch(r"add\((r\d+),#(-?\d+)\)", value):
                values[target] = before[added.group(1)] + int(added.group(2))
            elif target.startswith("vmem"):  # stands behind what it stores
                assert not value.endswith(".new") or any(re.match(rf"{value[:-4]}[ .]", each) for each in body)
                of = values if value.endswith(".new") else before
                seen.append(f"{target} {of.get(value.removesuffix('.new'), value)}")
            elif "vmem" in value:
                values[target.removesuffix(".cur")] = 7 * before["r1"]
            elif not line.startswith(("jump", "nop")):
                values[target] = before[value]
    return sorted(seen), values


@st.composite
def full_packets(draw: st.DrawFn) -> str:
    """One or two amounts in any registers, beside a pair, a load, and a store of the result, where loops end too."""
    form, other = draw(st.sampled_from(AMOUNTS[:-2])), "v3 = valign(v22,v4,{})"
    lines = [form.format(f"r{draw(st.one_of(NUMBERS, st.sampled_from([8, 9])))}")]
    lines += draw(st.sampled_from([(), (other.format(f"r{draw(NUMBERS)}"),), ("vmem(r1+#0) = v0.new",)]))
    lines += draw(
        st.sampled_from([(), ("r9:8 = combine(#17,#15)",), (f"r{draw(NUMBERS)} = add(r{draw(NUMBERS)},#3)",)])
    )
    if draw(st.booleans()):
        lines.insert(0, "v22.cur = vmem(r1+#0)")
    lines += draw(st.sampled_from([(), (), ("jump .LBB0_1",)]))
    return packet(*lines, end=draw(st.sampled_from(["}", "} :endloop0"])))


@given(full_packets())
def test_amounts_and_all_registers_stay_what_they_are(text: str) -> None:
    values = {f"r{number}": 100 + number for number in range(32)}
    changed = with_low_registers(text)
    assert ran(changed, values) == ran(text, values)
    named = [int(found) for found in re.findall(r"v\w+\(.*,r(\d+)\)", changed)]
    assert named
    assert all(number < 8 for number in named)
    assert changed.count("endloop0") == text.count("endloop0")


@pytest.mark.parametrize("form", one_in(3, AMOUNTS))
def test_llvm_assembles_what_it_refused(form: str) -> None:
    target, text = hexagon_target("v67"), packet(form.format("r10"))
    with pytest.raises(Refused):
        assembled(text, target)
    assert assembled(with_low_registers(text), target)


@pytest.mark.parametrize("line", ["v9 = v0", "v5.w = vadd(v0.w,v1.w)", "v2.tmp = vmem(r1+#0)\n\t\tv9 = v2"])
def test_an_amount_that_cannot_leave_its_packet_is_refused(line: str) -> None:
    with pytest.raises(NoLowRegister, match="endloop0"):
        with_low_registers(packet("v0 = valign(v1,v2,r10)", line, end="} :endloop0"))


def test_a_loop_that_packets_move_out_of_reach_is_set_up_before_a_whole_packet() -> None:
    body = [packet("r0 = r10", "r10 = r0") for _ in range(31)]
    whole = packet("loop0(.LBB0_1,r3)", "r1 = add(r1,#1)", "r2 = add(r2,#1)", "r4 = memw(r5+#0)")
    loop = "\t.p2align\t4\n.LBB0_1:\n" + packet("r6 = add(r6,#1)", end="} :endloop0")
    near, far = (whole + "".join(body[:count]) + loop for count in (28, 29))
    assert with_loops_in_reach(near) == near
    changed = with_loops_in_reach(far)
    assert packets(changed)[:2] == [["loop0(.LBB0_1,r3)"], packets(whole)[0][1:]]
    for text in (near, changed):
        assert assembled(text, hexagon_target("v67"))


def test_other_lines_stay_as_they_are() -> None:
    lines = ("main:", "\t.p2align\t4", packet("v0 = valign(v1,v2,r7)").rstrip("\n"), "\t// r10", packet("r1 = r10"))
    text = "\n".join(itertools.chain(lines))
    assert with_low_registers(text) == text
