"""One arena: no two tensors that live at the same time overlap."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hexconv.network.arena import Arena, Life, arena_of, lives_of
from hexconv.network.program_steps import Operand, Operation, Program

VECTOR = 128


@st.composite
def lives(draw: st.DrawFn) -> dict[str, Life]:
    count = draw(st.integers(0, 12))
    firsts = [draw(st.integers(0, 15)) for _ in range(count)]
    ends = [first + draw(st.integers(0, 6)) for first in firsts]
    sizes = [VECTOR * draw(st.integers(0, 9)) for _ in range(count)]
    return {f"t{i}": Life(firsts[i], ends[i], sizes[i]) for i in range(count)}


def check(found: Arena, lives: dict[str, Life]) -> None:
    """Every step alone: what lives at it fills no byte twice, and all lies inside."""
    for step in range(max((life.last for life in lives.values()), default=0) + 1):
        taken = np.zeros(found.bytes, int)
        for name, life in lives.items():
            if life.first <= step <= life.last:
                taken[found.offsets_bytes[name] : found.offsets_bytes[name] + life.bytes] += 1
        assert taken.max(initial=0) <= 1
        assert taken.sum() == sum(life.bytes for life in lives.values() if life.first <= step <= life.last)
        assert taken.sum() <= found.least_bytes <= found.bytes
    assert all(offset % VECTOR == 0 for offset in found.offsets_bytes.values())


@given(lives())
def test_no_two_tensors_that_live_at_the_same_time_overlap(lives: dict[str, Life]) -> None:
    check(arena_of(lives), lives)


def test_a_tensor_lives_from_the_step_that_writes_it_to_the_last_that_reads_it() -> None:
    def step(result: str, *sources: str) -> Operation:
        return Operation("add", result, tuple(map(tensor, sources)), tensor(result))

    def tensor(name: str) -> Operand:
        return Operand(name, (1, 3, 3, 3), "uint8")

    steps = (step("a", "input"), step("b", "a"), step("c", "b", "a"), step("unread", "c"), step("output", "c", "k"))
    program = Program(steps, (), (), {"k": np.zeros(27, np.uint8)})
    found = lives_of(program)
    assert {name: (life.first, life.last) for name, life in found.items() if name not in ("input", "output")} == {
        "a": (0, 2),
        "b": (1, 2),
        "c": (2, 4),
        "unread": (3, 3),
    }
    assert all(life.bytes == VECTOR for life in found.values())
    check(arena_of(found), found)
