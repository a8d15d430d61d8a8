"""Threads of HVX kernels: right in every order in which they may come, and no guard between them is spare."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tirx

from hexconv.analyze import cache_usage, vtcm_fit, work_usage
from hexconv.compute import reference
from hexconv.errors import InputError, RunFailed
from hexconv.kernel.bands import row_bands
from hexconv.lower import queues
from hexconv.lower.copies import is_over_bands
from hexconv.run.copy_engine import Copies
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.measurement import Array, Measurement
from hexconv.run.profile import with_marks
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from tests.deep import DEEP, one_in
from tests.lowered import lower_case

ORDERS = 100
SAME = Conv2d(
    out_channels=16,
    kernel=(3, 3),
    padding=Padding(top=1, left=1, bottom=1, right=1),
    requantize=Requantize(multiplier=1 << 22, shift=-5),
)
CHAIN = Chain(input=(1, 21, 9, 8), dtype="uint8", conv=(SAME, SAME))
ROLLING = Plan(kernel="hvx", order="h_outer", halo="roll", filters="resident", buffering="double", threads=3)
PLANS = (
    ROLLING,
    replace(ROLLING, filters="per_tile", threads=4),
    replace(ROLLING, buffering="single", threads=2, storage="vtcm"),
    replace(ROLLING, halo="recompute", threads=3),
    Plan(kernel="hvx", buffering="double", threads=4, h_split=2),
    Plan(kernel="hvx", buffering="double", threads=4),
    Plan(kernel="hvx", filters="resident", threads=3, storage="input+intermediates"),
)
CHAINS = (
    CHAIN,
    replace(CHAIN, input=(2, 37, 5, 8), conv=(replace(SAME, stride=(2, 1)), replace(SAME, kernel=(5, 1)))),
    replace(CHAIN, zero_point=7, filter_dtype="int8", conv=(replace(SAME, out_channels=40), SAME, SAME)),
    Chain(input=(1, 29, 9, 5), dtype="uint8", conv=(replace(SAME, out_channels=1, stride=(2, 1)),)),
)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.slug)
@pytest.mark.parametrize("plan", one_in(4, PLANS), ids=lambda plan: plan.slug)
def test_sizes_bytes_and_products_are_as_the_closed_form_says(chain: Chain, plan: Plan) -> None:
    """The caches of all threads at once, and rows at seams twice."""
    case = Case("threads", chain, plan)
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees
    alone = work_usage(replace(case, plan=replace(plan, threads=1)), count(lower_case(case)))
    assert not alone.agrees, "seams cost something"


@pytest.mark.parametrize(("height", "rows", "threads"), one_in(7, product((1, 2, 6), (1, 2), (3, 1, 2, 4))))
def test_rows_that_are_all_padding_are_read_in_groups_of_their_own(height: int, rows: int, threads: int) -> None:
    """Where stripes stream and the image is smaller than its padding, many stripes read nothing but padding.

    No column is padded, so that a row is either copied or filled as a whole.
    """
    tall = replace(SAME, kernel=(3, 1), dilation=(3, 1), padding=Padding(top=5, bottom=3))
    chain = Chain(input=(1, height, 5, 8), dtype="uint8", zero_point=1, conv=(tall,))
    plan = Plan(kernel="hvx", rows=rows, order="h_outer", halo="roll", buffering="double", threads=threads)
    case = Case("padding", chain, plan)
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees
    assert run_case(case, lowered, Simulator(copies=Copies("late"), slots=False)).check.passed


def test_bands_make_every_row_of_the_output_once_and_all_that_it_reads() -> None:
    for height in range(1, 40):
        for threads in range(1, 9):
            chain = replace(CHAIN, input=(1, height, 9, 8))
            bands = row_bands(chain, replace(ROLLING, threads=threads, arch="v81"))
            made = [row for band in range(bands.count) for row in range(bands.first(-1, band), bands.end(-1, band))]
            assert made == list(range(-(-height // 8) * 8))
            for band in range(bands.count):
                first, end = bands.first(-1, band), min(bands.end(-1, band), height)
                assert (bands.first(-2, band), bands.end(-2, band)) == (first, min(end + 2, height + 2))


@pytest.mark.parametrize(("arch", "most"), [("v65", 1), ("v68", 4), ("v75", 4), ("v79", 6), ("v81", 8)])
def test_an_architecture_has_so_many_contexts(arch: str, most: int) -> None:
    assert Plan(kernel="hvx", threads=most, arch=arch).threads == most  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=f"plan.threads: {most + 1} with arch"):
        Plan(kernel="hvx", threads=most + 1, arch=arch)  # pyright: ignore[reportArgumentType]


def run(case: Case, module: tvm.IRModule, copies: Copies) -> Measurement:
    arguments = packed_arguments(CHAIN, random_tensors(CHAIN), case.settled)
    return Simulator(copies=copies, slots=False).run(module, arguments, [(output_shape(CHAIN), "uint8")])


@lru_cache
def packed_answer() -> Array:
    """The result of one thread, which numpy agrees with."""
    case = Case("alone", CHAIN, replace(ROLLING, threads=1))
    right = reference(CHAIN, *random_tensors(CHAIN).logical)
    assert right.any()
    run_of_one = run_case(case, lower_case(case), Simulator(slots=False))
    assert run_of_one.check.passed
    return run(case, lower_case(case).module, Copies()).outputs[0]


@DEEP
@pytest.mark.simulator
def test_a_hundred_orders_have_one_result() -> None:
    """Threads change at every copy, every wait, and every step of the nest; each executes what it always does."""
    case = Case("threads", CHAIN, ROLLING)
    module, _names = with_marks(lower_case(case))
    runs = [run(case, module, Copies("random", seed)) for seed in range(ORDERS)]
    assert all(np.array_equal(each.outputs[0], packed_answer()) for each in runs)
    threads = [each.threads for each in runs]
    assert all(each is not None and each.switches > 10 for each in threads)
    assert len({each.packets for each in threads if each}) == 1
    assert len({each.switches for each in threads if each}) > 10, "orders differ"


@pytest.mark.simulator
def test_slots_of_threads_add_up_and_vtcm_holds_the_caches_of_all() -> None:
    case = Case("threads", CHAIN, replace(ROLLING, storage="vtcm"))
    lowered = lower_case(case)
    measured = run_case(case, lowered, Simulator())
    assert measured.check.passed
    assert measured.threads
    assert measured.counts
    assert measured.slots
    assert sum(measured.threads.packets) < measured.counts.packets
    assert all(
        slots >= packets for slots, packets in zip(measured.threads.slots, measured.threads.packets, strict=True)
    )
    assert sum(measured.threads.slots) < measured.slots.issue_slots
    assert measured.vtcm_bytes == vtcm_fit(CHAIN, case.settled).demand_bytes


def short(name: str) -> Callable[[tirx.PrimFunc], tirx.Stmt]:
    """Bands that end a row too early."""

    def changed(main: tirx.PrimFunc) -> tirx.Stmt:
        def bind(step: tirx.Bind) -> tirx.Bind:
            return tirx.Bind(step.var, step.value - 1) if step.var.name == name else step

        return tvm_ffi.structural_map(main.body, (tirx.Bind, bind))

    return changed


def late(name: str) -> Callable[[tirx.PrimFunc], tirx.Stmt]:
    """Bands that begin a row too late."""

    def changed(main: tirx.PrimFunc) -> tirx.Stmt:
        def bind(step: tirx.Bind) -> tirx.Bind:
            return tirx.Bind(step.var, step.value + 1) if step.var.name == name else step

        return tvm_ffi.structural_map(main.body, (tirx.Bind, bind))

    return changed


def shared(name: str) -> Callable[[tirx.PrimFunc], tirx.Stmt]:
    """One cache for all threads."""

    def changed(main: tirx.PrimFunc) -> tirx.Stmt:
        moved: list[tirx.Stmt] = []

        def steps_of(loop: tirx.For) -> tirx.For:
            mine = [step for step in loop.body.seq if isinstance(step, tirx.AllocBuffer) and step.buffer.name == name]
            moved.extend(mine)
            rest = tirx.SeqStmt([step for step in loop.body.seq if step not in mine])
            return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, rest)

        steps = [steps_of(step) if is_over_bands(step) else step for step in main.body.seq]
        assert moved, f"no band has {name}"
        return tirx.SeqStmt([*moved, *steps])

    return changed


def unawaited(queue: int) -> Callable[[tirx.PrimFunc], tirx.Stmt]:
    """Threads that begin while the copies of a queue are under way; these are waited for behind them."""

    def changed(main: tirx.PrimFunc) -> tirx.Stmt:
        waits = [step for step in main.body.seq if queues.queue_of(step, queues.WAIT) == queue]
        assert waits, f"nothing waits for queue {queue}"
        return tirx.SeqStmt([*(step for step in main.body.seq if step not in waits), *waits])

    return changed


BROKEN = {
    "an intermediate's rows end one too early": short("end_row1"),
    "the output's rows end one too early": short("end_row2"),
    "the input's rows begin one too late": late("first_row0"),
    "the ring of the input is shared": shared("input_cache"),
    "the ring of an intermediate is shared": shared("intermediate1"),
    "the output's cache is shared": shared("output_cache"),
    "nothing waits for the second filter": unawaited(2),
}


@pytest.mark.simulator
@pytest.mark.parametrize("broken", one_in(7, BROKEN))
def test_each_guard_of_a_thread_is_needed(broken: str) -> None:
    case = Case("threads", CHAIN, ROLLING)
    marked, _names = with_marks(lower_case(case))
    main = marked["main"]
    module = tirx.transform.ConvertSSA()(tvm.IRModule({"main": main.with_body(BROKEN[broken](main))}))

    def is_right(seed: int) -> bool:
        try:
            return np.array_equal(run(case, module, Copies("late", seed)).outputs[0], packed_answer())
        except RunFailed:
            return False

    assert not all(is_right(seed) for seed in range(10))
