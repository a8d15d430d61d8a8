"""The pass over packets changes no answer: random programs store the same with it as without it, in no more slots."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hexconv.lower.assembly import ALL, Line, listing, needed_before, packet
from hexconv.lower.fewer_stalls import with_fewer_stalls
from hexconv.lower.stalls import stall

ARCH, VECTOR_BYTES, TRIPS = "v68", 128, 3
VECTORS, SUMS = range(4), range(10, 14)

Packets = list[list[str]]
Values = dict[str, Any]

vectors = st.sampled_from(VECTORS).map("v{}".format)
scalars = st.sampled_from(("r2", "r3"))
loads = st.builds(
    "{}{} = vmem(r1{})".format,
    vectors,
    st.sampled_from(("", "", ".cur")),
    st.sampled_from(("+#0", "+#-3", "+#2", "++#1")),
)
products = st.builds("v{}.uw += vrmpy({}.ub,{}.ub)".format, st.sampled_from(SUMS), vectors, scalars)
readers = st.builds("{}.w = vadd({}.w,v{}.w)".format, vectors, vectors, st.sampled_from(SUMS))
"""They see whether a sum has its products yet."""
others = st.one_of(
    st.sampled_from((128, 256, 100)).map("r1 = add(r1,#{})".format),
    st.builds("{} = memw(r4+#8)".format, scalars),
    st.builds("if (p0) {} = {}".format, vectors, vectors),
    st.builds("v3:2 = vcombine({},{})".format, vectors, vectors),
    st.builds("vmem(r1+#7) = {}".format, vectors),
)


@st.composite
def packets(draw: st.DrawFn) -> list[str]:
    """One packet that an assembler takes, as far as registers go: nothing is written twice."""
    drawn = [
        *draw(st.lists(products, min_size=1, max_size=2)),
        *(draw(st.lists(loads, min_size=1, max_size=1)) if draw(st.integers(0, 2)) else ()),
        *(draw(st.lists(readers, max_size=1)) if draw(st.integers(0, 3)) == 0 else ()),
        *(draw(st.lists(others, max_size=1)) if draw(st.integers(0, 7)) == 0 else ()),
    ]
    kept: list[str] = []
    for text in drawn:
        writes = packet([*kept, text])[-1].writes
        if not any(writes & each.writes for each in packet(kept)):
            kept.append(text)
    made = [text.partition(".w = ")[0] for text in kept if "vadd" in text]
    if made and draw(st.booleans()):
        kept.append(f"vmem(r1+#6) = {made[0]}.new")
    return kept or ["nop"]


programs = st.tuples(*[st.lists(packets(), min_size=2, max_size=12)] * 3)


PRODUCT = "v{}.uw += vrmpy(v{}.ub,r2.ub)".format
READ_IN_BETWEEN: tuple[Packets, Packets, Packets] = (
    [["v1 = vmem(r1+#2)"], ["nop"]],
    [["v0 = vmem(r1+#0)"], [PRODUCT(10, 0)], ["v2.w = vadd(v1.w,v10.w)"], [PRODUCT(12, 1)], [PRODUCT(13, 2)]],
    [],
)
"""A product waits for a load that can't go up; the next one that doesn't wait is behind a reader of the first."""


STORED_AS_IT_IS_MADE: tuple[Packets, Packets, Packets] = (
    [["v1 = vmem(r1+#2)"], ["nop"]],
    [
        ["v0.w = vadd(v1.w,v10.w)", "vmem(r1+#6) = v0.new"],
        [PRODUCT(11, 1)],
        [PRODUCT(12, 0)],
        ["v0 = vmem(r1+#1)", PRODUCT(13, 0)],
        [PRODUCT(10, 0)],
    ],
    [],
)
"""A load goes up if the value before it is made in another register, whose packet stores it."""


@example(READ_IN_BETWEEN)
@example(STORED_AS_IT_IS_MADE)
@given(programs)
def test_a_program_stores_the_same_in_no_more_slots(program: tuple[Packets, Packets, Packets]) -> None:
    text = assembly(*program)
    changed = with_fewer_stalls(text, ARCH)
    before, after = list(ran(text)), list(ran(changed))
    assert stores(after) == stores(before)
    assert len(after) <= len(before)
    assert slots(after) <= slots(before)


@pytest.mark.parametrize(
    "body",
    [
        [[PRODUCT(11, 0)], ["v1 = vmem(r1+#1)", PRODUCT(10, 0)], [PRODUCT(12, 1)]],
        [
            ["v1.cur = vmem(r1+#0)", PRODUCT(11, 1)],
            [PRODUCT(10, 1)],
            ["v1 = vmem(r1+#1)", PRODUCT(11, 1)],
            [PRODUCT(12, 1)],
        ],
        [["v1 = vmem(r1+#1)"], [PRODUCT(12, 1)], [PRODUCT(11, 0)], ["nop"]],  # another product first
    ],
)
def test_no_packet_waits_where_there_is_room_and_a_register(body: Packets) -> None:
    text = assembly([["v0 = vmem(r1+#0)"]], body, [])
    before, after = list(ran(text)), list(ran(with_fewer_stalls(text, ARCH)))
    assert slots(before) == len(before) + TRIPS
    assert slots(after) == len(after)


@given(st.lists(packets(), max_size=4), st.frozensets(st.sampled_from(sorted(ALL))))
def test_packets_read_the_same_and_leave_the_same_alone_whatever_is_needed_behind_them(
    drawn: Packets, needed: frozenset[str]
) -> None:
    lines = [Line(packet(texts), "\t}") for texts in drawn]
    read, left = (needed_before(lines, behind) for behind in (frozenset[str](), ALL))
    assert needed_before(lines, needed) == read | (needed & left)


def test_a_register_is_needed_before_a_loop_that_leaves_it_alone() -> None:
    first, loop = "\t{\n\t\tv0 = vmem(r1+#0)\n\t}", "\t{\n\t\tr2 = add(r2,#-1)\n\t\tif (p0) jump:nt .La\n\t}"
    last = "\t{\n\t\tvmem(r1+#1) = v0\n\t\tjumpr r31\n\t}"
    found = listing("\n".join(["main:", first, ".La:", loop, last, ""]))
    assert found
    assert [sorted(block.needed) for block in found.blocks if block.lines] == [["v0"], ["v0"], []]


def test_a_packet_goes_that_has_nothing_but_a_load() -> None:
    text = assembly([], [[PRODUCT(11, 0)], ["v1 = vmem(r1+#1)"], [PRODUCT(12, 1)]], [])
    before, after = list(ran(text)), list(ran(with_fewer_stalls(text, ARCH)))
    assert len(after) == len(before) - TRIPS


def test_what_can_not_be_followed_stays_as_it_is() -> None:
    text = assembly([["v0 = vmem(r1+#0)"]], [["v12.uw += vrmpy(v0.ub,r3.ub)"]], [["jumpr r5"]])
    assert with_fewer_stalls(text, ARCH) == text


def assembly(before: Packets, body: Packets, behind: Packets) -> str:
    """A program as LLVM writes it; at its end all sums and a vector are stored, so that something needs them."""
    needed = [[f"vmem(r9+#{place}) = v{number}"] for place, number in enumerate((*SUMS, 0))]
    parts = ([*before, [f"loop0(.LBB0_1,#{TRIPS})"]], body, [*behind, *needed, ["jumpr r31"]])
    lines = ["main:"]
    for part in parts:
        lines += [".LBB0_1:"] if part is body else []
        for instructions in part:
            ends = " :endloop0" if instructions is part[-1] and part is body else ""
            lines += ["\t{", *(f"\t\t{each}" for each in instructions), f"\t}}{ends}"]
    return "\n".join(lines) + "\n"


def ran(text: str) -> Iterator[list[str]]:
    """The packets that a program executes, in order."""
    start, _, rest = text.partition(".LBB0_1:\n")
    body, _, end = rest.partition(":endloop0\n")
    for part in (start, *[body] * TRIPS, end):
        yield from (found.strip().split("\n") for found in re.findall(r"{([^}]*)}", part))


def slots(executed: list[list[str]]) -> int:
    """Packets and stalls."""
    read = [packet(lines) for lines in executed]
    return len(read) + sum(stall(*pair, ARCH) is not None for pair in pairwise(read))


def stores(executed: list[list[str]]) -> list[Any]:
    """What a program stores, as terms over what its registers and its memory hold at the start."""
    values: Values = {"r1": 0, "r4": "r4", "r9": 1 << 20}
    found: list[Any] = []
    for lines in executed:
        _step([line.strip() for line in lines], values, found)
    return found


def _step(lines: list[str], values: Values, found: list[Any]) -> None:
    """One packet: every instruction sees the registers as they were, but for loads of its own packet."""
    old, new = dict(values), {}
    for line in lines:
        if loaded := re.fullmatch(r"v(\d+)(\.cur)? = vmem\(r1(\+\+?)#(-?\d+)\)", line):
            base, step = old["r1"], int(loaded[4]) * VECTOR_BYTES
            memory = ("memory", base + (0 if loaded[3] == "++" else step), len(found))
            new[f"v{loaded[1]}"] = memory
            new |= {"r1": base + step} if loaded[3] == "++" else {}
            old |= {f"v{loaded[1]}": memory} if loaded[2] else {}
    for line in sorted(lines, key=lambda line: line.startswith("vmem(")):  # a store may see what its packet makes
        _execute(line, old, new, found)
    values |= new


def _execute(line: str, old: Values, new: Values, found: list[Any]) -> None:
    def value(name: str) -> Any:
        return old.get(name, name)

    if line.startswith("vmem("):
        stored = re.fullmatch(r"vmem\((r\d)\+#(\d+)\) = (v\d+)(\.new)?", line)
        assert stored, line
        base, offset, source, is_new = stored.groups()
        found.append((value(base) + int(offset) * VECTOR_BYTES, new[source] if is_new else value(source)))
    elif made := re.fullmatch(r"(v\d+)\.uw \+= vrmpy\((v\d+)\.ub,(r\d)\.ub\)", line):
        new[made[1]] = ("product", value(made[1]), value(made[2]), value(made[3]))
    elif made := re.fullmatch(r"(v\d+)\.w = vadd\((v\d+)\.w,(v\d+)\.w\)", line):
        new[made[1]] = ("sum", value(made[2]), value(made[3]))
    elif made := re.fullmatch(r"if \(p0\) (v\d+) = (v\d+)", line):
        new[made[1]] = ("either", value(made[1]), value(made[2]))
    elif made := re.fullmatch(r"v3:2 = vcombine\((v\d+),(v\d+)\)", line):
        new["v3"], new["v2"] = value(made[1]), value(made[2])
    elif made := re.fullmatch(r"r1 = add\(r1,#(\d+)\)", line):
        new["r1"] = value("r1") + int(made[1])
    elif made := re.fullmatch(r"(r\d) = memw\(r4\+#8\)", line):
        new[made[1]] = ("word", value("r4"), len(found))
