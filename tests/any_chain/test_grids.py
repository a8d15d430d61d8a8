"""Every case that the source documents' tests ever had: the closed form says of each cache what TVM allocates."""

from dataclasses import replace

import pytest

from hexconv.analyze import cache_usage
from hexconv.spec import Case
from hexconv.sweep.judging import judge
from tests.any_chain.grids import ancestor, case_of, sibling, square, unique, wide_chains, wide_single
from tests.deep import one_in
from tests.lowered import lower_case

KNOWN = unique(ancestor(), sibling())
WIDE = [case for case in unique(wide_chains(), wide_single()) if case not in KNOWN]
RUN = [case for case in WIDE if case.chain.input == (1, 8, 8, 64) and case.plan.k_split == 2]


def name(case: Case) -> str:
    return case.name


def test_the_grids_are_as_large_as_documented() -> None:
    assert len(unique(ancestor())) == 16
    assert len(unique(sibling())) == 8
    assert KNOWN[0].name == "n1h64w64c128-k128r1x1-k128r1x1-float32-ks1-hs1-plain"


@pytest.mark.parametrize("case", one_in(16, [*KNOWN, *WIDE]), ids=name)
def test_the_closed_form_is_what_tvm_allocates(case: Case) -> None:
    assert cache_usage(case, lower_case(case)).agrees


@pytest.mark.parametrize("case", one_in(8, RUN), ids=name)
def test_the_small_ones_are_right(case: Case) -> None:
    assert judge(case).reasons == ()


# The sibling's nine figures, "cache usage" of its three sections, in elements.
FIGURES = [
    (1, 1, {"input_cache": 32768, "filter1_cache": 2048, "output_cache": 16384}),
    (1, 2, {"input_cache": 65536, "filter1_cache": 4096, "output_cache": 65536}),
    (3, 2, {"input_cache": 98304, "filter1_cache": 36864, "output_cache": 65536}),
]


@pytest.mark.parametrize(("kernel", "split", "figures"), FIGURES, ids=["baseline", "full-output-slice", "3x3"])
def test_one_conv_takes_what_its_document_says(kernel: int, split: int, figures: dict[str, int]) -> None:
    made = case_of(square(64, 64, (kernel, 128)), split, split)
    assert made
    case = replace(made, documented=tuple(figures.items()))
    usage = cache_usage(case, lower_case(case))
    assert usage.agrees
    assert {cache.name: cache.elements for cache in usage.caches} == figures
    assert {cache.name: cache.predicted_elements for cache in usage.caches} == figures
    assert {memory.name: memory.documented_elements for memory in usage.allocations} == figures
