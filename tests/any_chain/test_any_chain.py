"""Laws over the whole scope: what holds for every chain and every plan."""

import pytest
import tvm
from hypothesis import assume, given

from hexconv.analyze import cache_usage, work_usage
from hexconv.lower import annotated_tir, lower_case
from hexconv.run import host, poison
from hexconv.run.host import count
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.spec import Case
from hexconv.sweep.judging import judge
from tests.any_chain.bounds import checked_module, with_checks
from tests.any_chain.running import output_of
from tests.draws import LOWERED, RUN
from tests.strategies import cases


@LOWERED
@given(cases())
def test_closed_form_and_count_agree_on_all_traffic_and_all_macs(case: Case) -> None:
    work = work_usage(case, count(lower_case(case)))
    assert {t.name: t.bytes for t in work.traffic} == {t.name: t.predicted_bytes for t in work.traffic}
    assert {c.name: c.macs for c in work.convs} == {c.name: c.predicted_macs for c in work.convs}
    assert work.agrees


@LOWERED
@given(cases())
def test_closed_form_and_tvm_agree_on_every_cache_and_allocation(case: Case) -> None:
    usage = cache_usage(case, lower_case(case))
    assert {c.name: c.elements for c in usage.caches} == {c.name: c.predicted_elements for c in usage.caches}
    assert {m.holds: m.elements for m in usage.allocations} == {
        m.holds: m.predicted_elements for m in usage.allocations
    }
    assert usage.agrees


@RUN
@given(cases())
def test_the_result_is_numpys_and_the_fringe_zero(case: Case) -> None:
    verdict = judge(case)
    assume(verdict.outcome != "refused")
    assert verdict.reasons == ()


@RUN
@given(cases(storage=("global",)))
def test_no_index_leaves_its_axis(case: Case) -> None:
    chain = case.chain
    kernel = tvm.compile(checked_module(case), target="llvm")
    inputs = [tvm.runtime.tensor(array) for array in packed_arguments(chain, random_tensors(chain))]
    output = tvm.runtime.empty(output_shape(chain), chain.output_dtype(len(chain.conv) - 1))
    kernel["main"](*inputs, output)  # an index outside of its axis is an IndexError


@RUN
@given(cases())
def test_tvm_finds_no_index_out_of_bounds_either(case: Case) -> None:
    tvm.s_tir.analysis.OOBChecker()(lower_case(case).shaped)  # raises


@RUN
@given(cases())
def test_the_result_depends_on_nothing_that_memory_held(case: Case) -> None:
    """Bit for bit the same from other poison, and with every cache poisoned anew wherever it is allocated."""
    lowered = lower_case(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "TARGET", host.QUICKLY_BUILT)
        expected = output_of(case, lowered.unmerged).tobytes()
        assert output_of(case, lowered.module).tobytes() == expected  # and no kernel is kept of the other one
        patch.setattr(poison, "POISON_BITS", {8: 0x35, 16: 0x7BFF, 32: 0x7F7FFFFF, 64: 1 << 62})
        assert output_of(case, lowered.unmerged).tobytes() == expected


@RUN
@given(cases())
def test_the_annotated_text_is_the_module(case: Case) -> None:
    lowered = lower_case(case)
    parsed = tvm.script.from_source(annotated_tir(case, lowered, "as the closed form predicts"))
    tvm.ir.assert_structural_equal(parsed, lowered.module)


@given(cases())
def test_a_case_file_says_all_of_a_case(case: Case) -> None:
    assert Case.parse(case.to_toml(), case.name) == case


def test_the_check_of_indices_sees_a_halo_that_wraps() -> None:
    """Column 8 of an 8-column block is column 0 of the next row, as in the 3x3 listing of seed document 003."""
    text = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(source: T.Buffer((4, 8), "float32"), output: T.Buffer((3, 8), "float32")):
        for row, column in T.grid(3, 8):
            output[row, column] = source[row, column + 1]
"""
    kernel = tvm.compile(with_checks(tvm.script.from_source(text)), target="llvm")
    source, output = tvm.runtime.empty((4, 8), "float32"), tvm.runtime.empty((3, 8), "float32")
    with pytest.raises(IndexError, match="source axis 1"):
        kernel["main"](source, output)
