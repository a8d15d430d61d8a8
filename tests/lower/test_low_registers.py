"""Amounts in registers that their instructions cannot name change places with low ones, and nothing else changes."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.lower.hexagon_target import hexagon_target
from hexconv.lower.packets.assembled import Refused, assembled
from hexconv.lower.packets.low_registers import NoLowRegister, with_low_registers
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
    """What scalar registers hold after transfers and additions, and the amount that each vector instruction saw."""
    values, seen = dict(values), []
    for body in packets(text):
        before = dict(values)
        for line in body:
            target, _, value = line.partition(" = ")
            if found := re.search(r"v\w+\(.*,(r\d+)\)", value):
                seen.append(f"{line.replace(found.group(1), '')} {before[found.group(1)]}")
            elif added := re.fullmatch(r"add\((r\d+),#(-?\d+)\)", value):
                values[target] = before[added.group(1)] + int(added.group(2))
            else:
                values[target] = before[value]
    return seen, values


@given(st.sampled_from(AMOUNTS), NUMBERS, NUMBERS, NUMBERS)
def test_the_amount_and_all_registers_stay_what_they_are(form: str, amount: int, source: int, target: int) -> None:
    text = packet(form.format(f"r{amount}"), f"r{target} = add(r{source},#3)")
    values = {f"r{number}": 100 + number for number in range(32)}
    changed = with_low_registers(text)
    assert ran(changed, values) == ran(text, values)
    named = [int(found) for found in re.findall(r"v\w+\(.*,r(\d+)\)", changed)]
    assert named
    assert all(number < 8 for number in named)


@pytest.mark.parametrize("form", one_in(3, AMOUNTS))
def test_llvm_assembles_what_it_refused(form: str) -> None:
    target, text = hexagon_target("v67"), packet(form.format("r10"))
    with pytest.raises(Refused):
        assembled(text, target)
    assert assembled(with_low_registers(text), target)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (packet("v0 = valign(v1,v2,r10)", end="} :endloop0"), "endloop0"),
        (packet("v0 = valign(v1,v2,r10)", "jump .LBB0_1"), "jump"),
        (packet("v0 = valign(v1,v2,r10)", "v3 = valign(v1,v2,r11)"), "r11"),
        (packet("v0 = valign(v1,v2,r10)", "r11:10 = memd(r0+#0)"), "r11:10"),
    ],
)
def test_a_packet_that_cannot_be_mended_is_refused(text: str, why: str) -> None:
    with pytest.raises(NoLowRegister, match=why):
        with_low_registers(text)


def test_other_lines_stay_as_they_are() -> None:
    lines = ("main:", "\t.p2align\t4", packet("v0 = valign(v1,v2,r7)").rstrip("\n"), "\t// r10", packet("r1 = r10"))
    text = "\n".join(itertools.chain(lines))
    assert with_low_registers(text) == text
