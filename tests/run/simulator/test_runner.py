"""Right kernels give right answers and exact counts."""
# TVMScript states a buffer's shape where Python states a type.
# pyright: reportInvalidTypeForm=false

import functools
import operator

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.script import tirx as T  # noqa: N812 -- TVMScript is written with this name

from hexconv.errors import RunFailed
from hexconv.run.simulator import runner
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.structures import MAX_ARGUMENTS
from hexconv.spec import Chain, Conv2d, Requantize
from hexconv.spec.chain import MOST_CONVS
from hexconv.spec.vectors import vector_names

SHAPE = (16, 64)
pytestmark = pytest.mark.simulator

INPUT = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
OUTPUT = [(SHAPE, "float32")]


def doubled() -> tvm.IRModule:
    """Outputs 2x + 1, through no cache."""
    a = te.placeholder(SHAPE, "float32", name="a")
    b = te.compute(SHAPE, lambda i, j: a[i, j] * 2.0 + 1.0, name="b")
    return tvm.IRModule({"main": te.create_prim_func([a, b])})


def doubled_through(scope: str) -> tvm.IRModule:
    """The same, one row at a time through an input cache and an output cache of that scope."""
    schedule = tvm.s_tir.Schedule(doubled())
    block = schedule.get_sblock("b")
    read, written = schedule.cache_read(block, 0, scope), schedule.cache_write(block, 0, scope)
    row, _ = schedule.get_loops(block)
    schedule.compute_at(read, row)
    schedule.reverse_compute_at(written, row)
    return schedule.mod


def slow() -> tvm.IRModule:
    """A few million packets."""
    a = te.placeholder(SHAPE, "float32", name="a")
    r = te.reduce_axis((0, 2000), "r")
    b = te.compute(SHAPE, lambda i, j: te.sum(a[i, j] * r.var.astype("float32"), axis=r), name="b")
    return tvm.IRModule({"main": te.create_prim_func([a, b])})


@T.prim_func(s_tir=True)
def unwritten_cache(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    cache = T.alloc_buffer((1024,), "float32")
    for i in range(1, 1024):
        cache[i] = a[i]
    for i in range(1024):
        b[i] = cache[i]


def through_a_cache_of(elements: int) -> tvm.IRModule:
    """Copies 1000 elements through a cache of that many."""

    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((1000,), "float32"), b: T.Buffer((1000,), "float32")):
        cache = T.alloc_buffer((elements,), "float32")
        for i in range(1000):
            cache[i * (elements // 1000)] = a[i]
        for i in range(1000):
            b[i] = cache[i * (elements // 1000)]

    return tvm.IRModule({"main": main})


@T.prim_func(s_tir=True)
def two_small_buffers(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
    first = T.alloc_buffer((100,), "float32", scope="global.vtcm")
    second = T.alloc_buffer((100,), "float32", scope="global.vtcm")
    for i in range(100):
        first[i] = a[i]
        second[i] = a[i + 100]
    for i in range(1024):
        b[i] = first[i % 100] + second[i % 100]


@pytest.mark.parametrize("scope", ["global", "global.vtcm"])
def test_a_kernel_through_caches_gives_the_same_answer_as_numpy(scope: str) -> None:
    measured = Simulator().run(doubled_through(scope), [INPUT], OUTPUT)
    np.testing.assert_array_equal(measured.outputs[0], INPUT * 2 + 1)


def test_counts_depend_neither_on_the_run_nor_on_how_often_they_are_sampled() -> None:
    simulators = [Simulator(), Simulator(), Simulator(tick_microseconds=200)]
    counts = {simulator.run(slow(), [INPUT], OUTPUT).counts for simulator in simulators}
    assert len(counts) == 1


@pytest.mark.parametrize("start", [2**32 - 1000, 2**31 - 1000])
def test_counts_survive_the_wrap_of_the_counters(start: int) -> None:
    plain = Simulator().run(slow(), [INPUT], OUTPUT)
    wrapped = Simulator(counter_start=start, tick_microseconds=1000).run(slow(), [INPUT], OUTPUT)
    assert plain.counts == wrapped.counts
    assert plain.counts is not None
    assert plain.counts.packets > 10**6


def test_a_kernel_that_reads_what_it_never_wrote_gives_nan() -> None:
    module = tvm.IRModule({"main": unwritten_cache.with_attr("global_symbol", "main")})
    ones = np.ones(1024, np.float32)
    (output,) = Simulator().run(module, [ones], [((1024,), "float32")]).outputs
    assert np.isnan(output[0])
    np.testing.assert_array_equal(output[1:], ones[1:])


def test_the_memory_of_caches_is_kept_without_being_counted() -> None:
    ones = np.ones(1000, np.float32)
    runs = [Simulator().run(through_a_cache_of(size), [ones], [((1000,), "float32")]) for size in (2000, 1000000)]
    small, large = (run.counts for run in runs)
    assert small is not None
    assert large is not None
    assert small.packets > 1000
    assert abs(large.packets - small.packets) < 100


def test_vtcm_is_given_out_in_steps_of_2_kib() -> None:
    module = tvm.IRModule({"main": two_small_buffers.with_attr("global_symbol", "main")})
    measured = Simulator().run(module, [np.ones(1024, np.float32)], [((1024,), "float32")])
    np.testing.assert_array_equal(measured.outputs[0], np.full(1024, 2, np.float32))
    assert measured.vtcm_bytes == 2 * 2048


def test_a_run_may_not_take_more_than_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "available_memory_bytes", lambda: 1 << 20)
    with pytest.raises(RunFailed, match=r"needs 1\.\d MiB .* may have 1\.0 MiB"):
        Simulator().run(doubled(), [INPUT], OUTPUT)
    Simulator()._check_memory(1 << 20)  # it may take all


def test_a_kernel_takes_as_many_arguments_as_the_longest_chain_has() -> None:
    conv = Conv2d(
        out_channels=2,
        bias=True,
        activation="table",
        requantize=Requantize(multiplier="per_channel", shift="per_channel", zero_point=3),
    )
    longest = Chain(input=(1, 8, 8, 2), dtype="uint8", conv=(conv,) * MOST_CONVS)
    count = 2 + 2 * MOST_CONVS + len(vector_names(longest))
    assert count <= MAX_ARGUMENTS
    parts = [te.placeholder((4,), "int32", name=f"part{i}") for i in range(40)]
    whole = te.compute((4,), lambda i: functools.reduce(operator.add, [part[i] for part in parts]), name="whole")
    module = tvm.IRModule({"main": te.create_prim_func([*parts, whole])})
    given = [np.full(4, 1 << i % 20, np.int32) for i in range(len(parts))]
    assert np.array_equal(Simulator().run(module, given, [((4,), "int32")]).outputs[0], sum(given))
