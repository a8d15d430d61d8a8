"""The host kernels: numpy's answer, no access outside of a buffer, the caches that were predicted."""

from itertools import pairwise
from math import ceil

import numpy as np
import pytest
import tvm
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tvm.sym import Analyzer

from hexconv.analyze import cache_usage
from hexconv.errors import HexconvError, InputError, Unsupported
from hexconv.host.edges import edge_rows
from hexconv.host.loops import chain_function
from hexconv.host.loops.bands import Bands
from hexconv.host.loops.chain import ALONE_BYTES
from hexconv.host.loops.stage import stages_of
from hexconv.host.registers import ELEMENT_BYTES, SETS
from hexconv.host.tiles import tiling
from hexconv.lower import annotated_tir, lower_case
from hexconv.lower.function import lower_function
from hexconv.lower.host import compile_for_host
from hexconv.run.host import TARGET, Host
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.schedule.block import int32
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, kernel_of, refusals
from hexconv.sweep.verdict import judge
from tests.any_chain.bounds import with_checks
from tests.deep import DEEP, one_in
from tests.strategies import chains

WITHOUT_SHRINKING = [Phase.explicit, Phase.reuse, Phase.generate]
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]
SAME = Conv2d(out_channels=20, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1))


def up_to(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        phases=WITHOUT_SHRINKING,
        suppress_health_check=SLOW,
    )


@st.composite
def host_cases(draw: st.DrawFn) -> Case:
    chain = draw(chains(("float32",)))
    threads, simd = draw(st.integers(1, 3)), draw(st.sampled_from(("avx2", "avx512")))
    return Case("drawn", chain, Plan(kernel="host", threads=threads, simd=simd))


@up_to(5)
@given(host_cases())
def test_any_float32_chain_is_numpys_and_its_fringe_zero(case: Case) -> None:
    try:
        lowered = lower_case(case)
    except HexconvError:
        return
    check = run_case(case, lowered, Host()).check
    assert check.passed
    assert check.fringe_is_zero


@pytest.mark.parametrize(("threads", "simd"), [(1, "avx512"), (2, "avx2"), (5, "avx512")])
def test_bands_and_stripes_meet(threads: int, simd: str) -> None:
    chain = Chain(input=(2, 37, 11, 5), conv=(SAME, Conv2d(out_channels=7, kernel=(5, 3), stride=(2, 1)), SAME))
    case = Case("seams", chain, Plan(kernel="host", threads=threads, simd=simd))
    assert run_case(case, lower_case(case), Host()).check.passed


def test_threads_share_the_filters_and_the_fringe() -> None:
    wide = Conv2d(out_channels=90, kernel=(3, 3))
    case = Case("shares", Chain(input=(2, 13, 7, 90), conv=(wide,)), Plan(kernel="host", threads=3))
    assert wide.out_channels * 9 * 90 * ELEMENT_BYTES > ALONE_BYTES
    check = run_case(case, lower_case(case), Host()).check
    assert check.passed
    assert check.fringe_is_zero


VALID = Conv2d(out_channels=9, kernel=(3, 3))
TALL = Conv2d(out_channels=7, kernel=(5, 1), stride=(2, 1), dilation=(2, 1))
SEAMS = {
    "valid": (Chain(input=(2, 44, 6, 5), conv=(VALID, VALID)), 2),
    "same, three convs": (Chain(input=(1, 70, 5, 5), conv=(SAME, SAME, SAME)), 3),
    "stride and dilation": (Chain(input=(1, 150, 5, 3), conv=(SAME, TALL, VALID)), 2),
}


@pytest.mark.parametrize("name", one_in(3, SEAMS))
def test_rows_at_a_seam_are_handed_up(name: str) -> None:
    chain, threads = SEAMS[name]
    assert Bands.of(chain, stages_of(chain), 8, threads).hand_up
    case = Case("seams", chain, Plan(kernel="host", threads=threads, simd="avx2"))
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert run_case(case, lowered, Host()).check.passed
    run_with_checks(case.chain, lowered.module)


@pytest.mark.parametrize("name", SEAMS)
def test_what_the_planned_nest_would_cost_is_timed_on_right_results(name: str) -> None:
    chain, threads = SEAMS[name]
    case = Case("nested", chain, Plan(kernel="host", threads=threads, simd="avx2"))
    lowered = lower_function(chain_function(chain, case.settled, staged=True))
    assert [cache.name for cache in lowered.caches if cache.name.endswith("put_cache")] == [
        "input_cache",
        "output_cache",
    ]
    check = run_case(case, lowered, Host()).check
    assert check.passed
    assert check.fringe_is_zero


def run_with_checks(chain: Chain, module: tvm.IRModule) -> None:
    """Any index outside of its buffer ends the run."""
    module = with_checks(module)
    inputs = [tvm.runtime.tensor(array) for array in packed_arguments(chain, random_tensors(chain))]
    output = tvm.runtime.tensor(np.zeros(output_shape(chain), np.float32))
    compile_for_host(module, TARGET)["main"](*inputs, output)


@given(st.integers(20, 200), st.integers(2, 6), st.sampled_from([SAME, VALID, TALL]), st.sampled_from([SAME, VALID]))
def test_bands_that_hand_rows_up_compute_each_row_once(height: int, count: int, one: Conv2d, other: Conv2d) -> None:
    chain = Chain(input=(1, height, 9, 3), conv=(one, other, VALID))
    bands = Bands.of(chain, stages_of(chain), 8, min(count, chain.shapes[-1][1]))
    if not bands.hand_up:
        return
    for tensor in (1, 2):
        cuts = [int(Analyzer().simplify(bands.cut(tensor, int32(band)))) for band in range(bands.count)]
        edges = [bands.edge(tensor, band) for band in range(bands.count)]
        assert edges == [edge_rows(chain, band.first, band.ahead)[tensor] for band in bands.edges.all]
        assert cuts == [*edges[1:], chain.shapes[tensor][1]]
        assert all(edge < cut for edge, cut in zip(edges, cuts, strict=True))


@up_to(2)
@given(host_cases())
def test_no_index_leaves_its_buffer(case: Case) -> None:
    try:
        run_with_checks(case.chain, lower_case(case).module)
    except HexconvError:
        return


@up_to(12)
@given(host_cases())
def test_the_closed_form_is_what_is_allocated(case: Case) -> None:
    try:
        usage = cache_usage(case, lower_case(case))
    except HexconvError:
        return
    assert usage.agrees, [cache for cache in usage.caches if cache.elements != cache.predicted_elements]


@up_to(2)
@given(host_cases())
def test_a_listing_parses_back(case: Case) -> None:
    try:
        lowered = lower_case(case)
    except HexconvError:
        return
    tvm.ir.assert_structural_equal(tvm.script.from_source(annotated_tir(case, lowered, "")), lowered.module)


@pytest.mark.parametrize(("columns", "stride"), [(1, (1, 1)), (7, (1, 1)), (14, (2, 3))])
def test_rows_that_are_cut_together_are_numpys(columns: int, stride: tuple[int, int]) -> None:
    down, right = stride
    first = Conv2d(out_channels=24, kernel=(2, 3), stride=stride, dilation=(2, 1), bias=True)
    chain = Chain(input=(1, 31 * down, (columns - 1) * right + 3, 5), conv=(first, Conv2d(out_channels=40)))
    assert all(tiling(SETS["avx2"], *shape[1:3], ceil(shape[3] / 8)).rows > 1 for shape in chain.shapes[1:])
    case = Case("together", chain, Plan(kernel="host", simd="avx2", threads=2))
    check = run_case(case, lower_case(case), Host()).check
    assert check.passed
    assert check.fringe_is_zero


@DEEP
def test_no_row_is_made_again_where_the_band_below_has_made_all_that_is_new() -> None:
    tall = Conv2d(out_channels=16, kernel=(7, 1), dilation=(3, 1))
    chain = Chain(input=(1, 90, 14, 16), conv=(Conv2d(out_channels=16), tall))
    plan = Plan(kernel="host", simd="avx2", threads=2)
    assert tiling(SETS["avx2"], *chain.shapes[1][1:3], 2).rows > 1
    bands = Bands.of(chain, stages_of(chain), 8, 2)
    assert bands.hand_up
    assert bands.seam_rows(1) > 8, "more than a stripe"
    assert judge(Case("seam", chain, plan)).reasons == ()
    lowered = lower_function(chain_function(chain, plan, panels=lambda *_: 3))
    assert run_case(Case("seam", chain, plan), lowered, Host()).check.passed


@pytest.mark.parametrize("rows", one_in(3, [3, 1, 5]))
@pytest.mark.parametrize("name", one_in(3, SEAMS))
def test_rows_in_panels_are_numpys(name: str, rows: int) -> None:
    chain, threads = SEAMS[name]
    plan = Plan(kernel="host", threads=threads, simd="avx2")
    assert any(tiling(SETS["avx2"], *shape[1:3], ceil(shape[3] / 8)).rows > 1 for shape in chain.shapes[1:])
    lowered = lower_function(chain_function(chain, plan, panels=lambda *_: rows))
    assert run_case(Case("panels", chain, plan), lowered, Host()).check.passed
    run_with_checks(chain, lowered.module)


@pytest.mark.parametrize(("kernel", "panels"), [((1, 1), 2), ((3, 3), 0)])
def test_rows_are_cut_into_panels_where_their_filter_is_small(kernel: tuple[int, int], panels: int) -> None:
    conv = Conv2d(out_channels=128, kernel=kernel)
    case = Case("panels", Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan(kernel="host", simd="avx2"))
    assert annotated_tir(case, lower_case(case), "").count("rows, 1 at a time") == panels


@pytest.mark.parametrize("simd", ["avx2", "avx512"])
def test_sums_stay_in_registers(simd: str) -> None:
    case = Case("registers", Chain(input=(1, 16, 64, 64), conv=(SAME, SAME)), Plan(kernel="host", simd=simd))
    cpu = {"avx2": "haswell", "avx512": "skylake-avx512"}[simd]
    target = tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": cpu})
    assembly = compile_for_host(lower_case(case).module, target).mod.inspect_source("asm")
    name = {"avx2": "%ymm", "avx512": "%zmm"}[simd]
    body = assembly.splitlines()
    multiplies = [at for at, line in enumerate(body) if "vfmadd" in line and name in line]
    assert len(multiplies) > SETS[simd].count
    inner = [body[one:other] for one, other in pairwise(multiplies) if other - one < 8]
    inside = [line for lines in inner for line in lines]
    assert not [line for line in inside if "(%rsp)" in line and name in line]


def test_what_the_host_kernel_does_not_serve_gets_the_plain_one_and_the_listing_says_why() -> None:
    chain = Chain(input=(1, 8, 8, 4), dtype="float16", conv=(Conv2d(out_channels=4),))
    case = Case("plain", chain, Plan(kernel="host"))
    assert kernel_of(chain, case.plan) == "plain"
    header = annotated_tir(case, lower_case(case), "")
    assert f"# kernel: plain, host asked: {refusals(chain, 'host')[0]}" in header


def test_the_host_kernel_stays_on_the_host_and_out_of_vtcm() -> None:
    case = Case("host", Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=4),)), Plan(kernel="host"))
    with pytest.raises(Unsupported, match="for --target llvm, not for hexagon"):
        run_case(case, lower_case(case), Simulator())
    with pytest.raises(InputError, match="VTCM"):
        Plan(kernel="host", storage="vtcm")
