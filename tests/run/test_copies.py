"""Kernels that keep their promises about copies, and kernels that break one: on this machine and on the simulator."""

import re

import numpy as np
import pytest
import tvm

from hexconv.errors import RunFailed
from hexconv.run.copy_engine import MOMENTS, Copies, CopyCounts, Moment
from hexconv.run.host import Host
from hexconv.run.measurement import Measurement
from hexconv.run.simulator.runner import Simulator

INPUT = np.linspace(1, 1.5, 256, dtype=np.float32)
STARTED = """
        start(0)
        copy(0, cache[0], input[0], 1024)
        end(0)"""
DOUBLED = """
        for i in range(256):
            output[i] = cache[i] * T.float32(2)"""
WAIT = """
        wait(0, 0)"""
ZEROED = """
        for i in range(256):
            cache[i] = T.float32(0)"""
COPIED_OUT = """
        start(1)
        copy(1, output[0], cache[0], 1024)
        end(1)"""


def kernel(*parts: str) -> tvm.IRModule:
    """A kernel with a cache of its own; `copy`, `start`, `end` and `wait` stand for TVM's builtins."""
    text = f"""
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(input: T.Buffer((256,), "float32"), output: T.Buffer((256,), "float32")):
        cache = T.alloc_buffer((256,)){"".join(parts)}
"""
    addresses = r"\1, T.address_of(\2), T.address_of(\3), \4, T.bool(False)"
    text = re.sub(r"copy\((\d), (\S+), (\S+), (\d+)\)", _builtin("copy", addresses), text)
    text = re.sub(r"(start|end)\((\d)\)", _builtin(r"\1_group", r"\2"), text)
    return tvm.script.from_source(re.sub(r"wait\((.*)\)", _builtin("wait", r"\1"), text))


def _builtin(name: str, arguments: str) -> str:
    return f'T.evaluate(T.call_intrin("int32", "tirx.dma_{name}", {arguments}))'


def run(module: tvm.IRModule, place: str, moment: Moment) -> Measurement:
    runner = Host(Copies(moment)) if place == "llvm" else Simulator(copies=Copies(moment), slots=False)
    return runner.run(module, [INPUT], [((256,), "float32")])


PLACES = ["llvm", pytest.param("hexagon", marks=pytest.mark.simulator)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_copy_that_is_waited_for_is_there(place: str, moment: Moment) -> None:
    measured = run(kernel(STARTED, WAIT, DOUBLED), place, moment)
    assert (measured.outputs[0] == INPUT * 2).all()
    assert measured.copies is not None
    assert measured.copies.moved_bytes == (1024,)
    assert measured.copies.most_in_flight == (1,)
    assert (measured.copies.pieces, measured.copies.copy_bytes) == (1, (1024, 1024, 1024))


@pytest.mark.parametrize("place", PLACES)
def test_who_reads_too_early_reads_poison(place: str) -> None:
    early = kernel(STARTED, DOUBLED, WAIT)
    assert np.isnan(run(early, place, "late").outputs[0]).all()
    assert (run(early, place, "early").outputs[0] == INPUT * 2).all()


@pytest.mark.parametrize("place", PLACES)
def test_what_a_target_held_before_is_gone_when_its_copy_starts(place: str) -> None:
    """The same copy twice: who reads before the second is there doesn't get the first."""
    again = kernel(STARTED, WAIT, STARTED, DOUBLED, WAIT)
    assert np.isnan(run(again, place, "late").outputs[0]).all()


BROKEN = {
    "ended while 1 copies of queue 0 were under way": (STARTED, DOUBLED),
    "something else wrote to the target of copy 1 of queue 0": (STARTED, ZEROED, WAIT, DOUBLED),
    "the source of copy 1 of queue 1 changed": (STARTED, WAIT, COPIED_OUT, ZEROED, WAIT.replace("(0", "(1")),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_promise_has_a_name(promise: str, moment: Moment, place: str) -> None:
    with pytest.raises(RunFailed, match=promise):
        run(kernel(*BROKEN[promise]), place, moment)


@pytest.mark.parametrize("place", PLACES)
def test_a_queue_that_is_not_there_has_a_name(place: str) -> None:
    with pytest.raises(RunFailed, match="queue 77; there are 0 to 63"):
        run(kernel(WAIT.replace("(0", "(77"), STARTED, WAIT, DOUBLED), place, "early")


@pytest.mark.parametrize("place", PLACES)
def test_a_copy_of_many_rows_is_one_and_is_told_by_the_length_of_a_row(place: str) -> None:
    """Every other 64 bytes: eight rows."""
    rows = """
        start(0)
        T.evaluate(T.call_intrin("int32", "tirx.dma_copy", 0, T.address_of(cache[0]), T.address_of(input[0]), 64,
                                 T.bool(False), 8, 128, 128))
        end(0)"""
    measured = run(kernel(ZEROED, rows, WAIT, DOUBLED), place, "random")
    whole = INPUT.reshape(8, 2, 16) * 2
    assert (measured.outputs[0].reshape(8, 2, 16)[:, 0] == whole[:, 0]).all()
    assert (measured.outputs[0].reshape(8, 2, 16)[:, 1] == 0).all()
    assert measured.copies is not None
    assert (measured.copies.pieces, measured.copies.pieces_2d, measured.copies.copy_bytes) == (1, 1, (64, 64, 64))
    assert measured.copies.moved_bytes == (512,)


def many(*pieces: tuple[int, ...], group: str = "") -> str:
    """Copies in one group, each (target, source, bytes) or with (rows, target_step, source_step) behind that."""
    calls = (
        f"""
        T.evaluate(T.call_intrin("int32", "tirx.dma_copy", 0, T.address_of(cache[{target // 4}]),
                                 T.address_of(input[{source // 4}]), {size}, T.bool(False){_further(rows)})){group}"""
        for target, source, size, *rows in pieces
    )
    return f"""
        start(0){"".join(calls)}
        end(0)"""


def _further(rows: list[int]) -> str:
    return "".join(f", {each}" for each in rows)


NEXT_GROUP = """
        end(0)
        start(0)"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("copies", "short"),
    [
        (many((0, 0, 64), (64, 64, 64)), 1),
        (many((0, 0, 64), (64, 64, 32), (96, 96, 4)), 2),
        (many((0, 0, 128), (128, 128, 128)), 0),
        (many((0, 0, 64), (64, 128, 64)), 0),
        (many((0, 0, 64), (64, 128, 64), (128, 256, 64), (192, 512, 64)), 1),
        (many((0, 0, 64), (64, 128, 64), (128, 256, 32)), 0),
        (many((0, 0, 64, 2, 64, 128), (128, 256, 64)), 1),
        (many((0, 0, 64, 2, 64, 128), (128, 320, 64)), 0),
        (many((0, 0, 64), (64, 128, 64, 2, 64, 128)), 0),
        (many((0, 0, 64, 2, 64, 128), (128, 256, 64, 3, 64, 128)), 0),
        (many((0, 0, 64, 2, 64, 128), (128, 256, 64, 2, 64, 192)), 0),
        (many((0, 0, 64), (64, 64, 64), group=NEXT_GROUP), 0),
    ],
)
def test_short_copies_that_one_descriptor_could_hold_are_counted(copies: str, short: int, place: str) -> None:
    measured = run(kernel(ZEROED, copies, WAIT, DOUBLED), place, "late")
    assert measured.copies is not None
    assert measured.copies.short_pieces == short


def test_a_seed_is_a_choice_of_moments() -> None:
    """Many small copies, read too early: which of them have happened depends on the seed and on nothing else."""
    pieces = """
        start(0)
        for i in range(64):
            copy(0, cache[i*4], input[i*4], 16)
        end(0)"""
    early = kernel(pieces, DOUBLED, WAIT)

    def happened(seed: int) -> bytes:
        return Host(Copies("random", seed)).run(early, [INPUT], [((256,), "float32")]).outputs[0].tobytes()

    assert happened(1) == happened(1)
    assert len({happened(seed) for seed in range(8)}) > 4


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ((), None),
        (((64, 1), (128, 1)), (64, 64, 128)),
        (((32, 3), (64, 4)), (32, 64, 64)),
        (((8, 1), (9, 1), (64, 9)), (8, 64, 64)),
    ],
)
def test_the_sizes_of_copies_are_told_by_their_least_median_and_most(
    sizes: tuple[tuple[int, int], ...], told: tuple[int, int, int] | None
) -> None:
    pieces = sum(count for _, count in sizes)
    assert CopyCounts((), (), sizes, pieces, 0, 0).copy_bytes == told
    assert CopyCounts((), (), sizes, pieces + 1, 0, 0).copy_bytes is None
