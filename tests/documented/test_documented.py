"""The three schedules of seed document 003, held to its loop nests and its figures."""

import json
import re
import textwrap
from pathlib import Path

import pytest
import tvm
from tvm import s_tir

from hexconv.analyze import cache_footprints, cache_usage, shared_allocations
from hexconv.cli.app import exit_code
from hexconv.lower import annotated_tir
from hexconv.run.host import Host
from hexconv.run.measure import run_case
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.spec import Case
from tests.any_chain.bounds import checked_module
from tests.documented.nests import NESTS
from tests.lowered import lower_case

SCHEDULES = Path(__file__).parents[2] / "schedules"

# Elements: input cache (the output cache's too), intermediate, filter cache (of both filters); bytes at the peak.
DOCUMENTED = {
    "baseline-1x1": (65536, 65536, 4096, 540672),
    "split-1x1": (131072, 131072, 8192, 1081344),
    "split-3x3": (196608, 196608, 73728, 1867776),
}


@pytest.fixture(params=DOCUMENTED)
def case(request: pytest.FixtureRequest) -> Case:
    return Case.load(SCHEDULES / f"{request.param}.toml")


def test_the_closed_form_has_the_documents_figures(case: Case) -> None:
    memory = {allocation.holds: allocation.elements for allocation in shared_allocations(case.chain, case.plan)}
    input_elements, intermediate_elements, filter_elements, peak_bytes = DOCUMENTED[case.name]
    assert memory == {
        ("input_cache", "output_cache"): input_elements,
        ("intermediate1",): intermediate_elements,
        ("filter1_cache", "filter2_cache"): filter_elements,
    }
    assert sum(allocation.bytes for allocation in shared_allocations(case.chain, case.plan)) == peak_bytes


def test_tvm_allocates_the_documents_figures(case: Case) -> None:
    memory = {allocation.holds: allocation.elements for allocation in lower_case(case).allocations}
    assert sorted(memory.values()) == sorted(DOCUMENTED[case.name][:3])
    assert set(memory) == {("input_cache", "output_cache"), ("intermediate1",), ("filter1_cache", "filter2_cache")}


def test_every_cache_agrees(case: Case) -> None:
    usage = cache_usage(case, lower_case(case))
    assert usage.agrees
    assert usage.peak_bytes == DOCUMENTED[case.name][3]
    assert [cache.elements for cache in usage.caches] == [c.elements for c in cache_footprints(case.chain, case.plan)]


def test_no_index_leaves_its_buffer(case: Case) -> None:
    s_tir.analysis.OOBChecker()(lower_case(case).shaped)


def test_a_build_with_tvms_bound_checkers_runs_clean(case: Case) -> None:
    """As far as that pass goes: see tests/any_chain/bounds.py for checks of every index."""
    with tvm.transform.PassContext(config={"tirx.instrument_bound_checkers": True}):
        assert run_case(case, lower_case(case), Host()).check.passed


def test_every_index_of_the_3x3_schedule_stays_on_its_axis() -> None:
    """All of them, at run time, without the clamps: the document's rows and columns, a quarter of its channels."""
    text = (SCHEDULES / "split-3x3.toml").read_text().replace("128", "32").replace("k_split = 2", "k_split = 1")
    case = Case.parse(text, "split-3x3-32")
    kernel = tvm.compile(checked_module(case), target="llvm")
    inputs = [tvm.runtime.tensor(array) for array in packed_arguments(case.chain, random_tensors(case.chain))]
    kernel["main"](*inputs, tvm.runtime.empty(output_shape(case.chain), "float32"))


def test_an_index_that_leaves_its_buffer_would_be_found() -> None:
    """The listing of the document, 3x3: without clamps TVM's checker objects."""
    from hexconv.compute import chain_module

    chain = Case.load(SCHEDULES / "split-3x3.toml").chain
    with pytest.raises(Exception, match="Out of bounds"):
        s_tir.analysis.OOBChecker()(chain_module(chain))


def test_the_committed_listing_is_what_the_case_lowers_to(case: Case) -> None:
    committed = (SCHEDULES / f"{case.name}.tir").read_text()
    lowered = lower_case(case)
    assert committed == annotated_tir(case, lowered, "as the closed form predicts, and as documented")
    tvm.ir.assert_structural_equal(tvm.script.from_source(committed), lowered.module)


NEST = [
    "for ko_outer, ho_outer in T.grid(2, 4):",
    "# NOTE: compute over all output channels of conv2d #1 before computing conv2d #2",
    "# NOTE: compute enough height of conv2d #1 before computing conv2d #2",
    "for ko_outer_1, ho_outer_1 in T.grid(2, 2):",
    "# input cache read",
    "for ho in range(3):",
    "if ho_outer * 2 + ho_outer_1 * 2 + ho < 8:",
    "# filter #1 cache read",
    "# conv2d #1",
    "for ko_inner, ho_inner, wo in T.grid(2, 2, 8):",
    "# conv2d #1 init",
    "# conv2d #1 compute",
    "for rc_outer, hi, wi in T.grid(4, 8, 8):",
    "for rh, rw, ki, rc_inner in T.grid(3, 3, 32, 32):",
    "# filter #2 cache read",
    "# conv2d #2",
    "# conv2d #2 init",
    "# conv2d #2 compute",
    "# write back output cache",
]


def test_the_3x3_loop_nest_is_the_documents() -> None:
    lines = (SCHEDULES / "split-3x3.tir").read_text().splitlines()
    stripped = iter(line.strip() for line in lines)
    for expected in NEST:
        assert expected in stripped, f"missing, or out of order: {expected}"


def test_the_listing_has_the_documents_notes_and_layouts(case: Case) -> None:
    """One row step needs no note on its height; every argument is labelled."""
    lines = [line.strip() for line in (SCHEDULES / f"{case.name}.tir").read_text().splitlines()]
    over = "conv2d #1 before computing conv2d #2"
    notes = [f"# NOTE: compute over all output channels of {over}"]
    if case.name == "split-3x3":
        notes.append(f"# NOTE: compute enough height of {over}")
    assert [line for line in lines if line.startswith("# NOTE")] == notes
    labelled = [line.partition(": T.Buffer")[0::2] for line in lines if "),  # " in line]
    assert [(name, rest.partition("# ")[2]) for name, rest in labelled] == [
        ("input", "NHWC"),
        ("filter1", "OIHW8i32o4i"),
        ("filter2", "OIHW8i32o4i"),
        ("output", "NHWC8h8w32c"),
    ]


def test_the_loop_nest_is_the_documents(case: Case) -> None:
    lines = (SCHEDULES / f"{case.name}.tir").read_text().partition("def main(")[2].splitlines()
    nest = [
        line for line in lines if re.match(r" *(for |if |# (input|filter #.) cache read|# conv2d|# write back)", line)
    ]
    assert textwrap.dedent("\n".join(nest)) == NESTS[case.name].strip()


def test_cache_json_has_the_contracts_words(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(SCHEDULES / f"{name}.toml") for name in DOCUMENTED]
    assert exit_code(["cache", *paths, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["peak_bytes"] for row in rows] == [figures[3] for figures in DOCUMENTED.values()]
    for row in rows:
        assert set(row) >= {"case", "caches", "allocations", "peak_bytes", "agrees"}
        words = {"name", "role", "scope", "dtype", "shape", "elements", "bytes", "predicted_elements"}
        assert all(set(cache) == words for cache in row["caches"])
        assert all(set(memory) >= {"name", "holds", "elements", "bytes"} for memory in row["allocations"])


def test_run_json_and_the_saved_tensors_can_be_checked_by_anyone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    saved = tmp_path / "run.npz"
    assert exit_code(["run", str(SCHEDULES / "split-1x1.toml"), "--json", "--save", str(saved)]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    words = {
        "version",
        "case",
        "target",
        "fill",
        "passed",
        "max_abs_error",
        "max_rel_error",
        "fringe_is_zero",
        "seconds",
    }
    assert set(row) == {*words, "weights", "input", "kernels", "copies", "copies_2d", "copy_bytes"}
    assert row["passed"] is True
    assert row["fringe_is_zero"] is True
    with np.load(saved) as kept:
        once = np.einsum("nhwc,kc->nhwk", kept["input"], kept["filter1"][:, :, 0, 0], dtype=np.float64)
        twice = np.einsum("nhwc,kc->nhwk", once, kept["filter2"][:, :, 0, 0])
        np.testing.assert_allclose(kept["output"], twice, rtol=1e-4, atol=1e-4)


def test_csv_has_the_documents_figures_beside_ours(tmp_path: Path) -> None:
    import pandas as pd

    table = tmp_path / "usage.csv"
    paths = [str(SCHEDULES / f"{name}.toml") for name in DOCUMENTED]
    assert exit_code(["cache", *paths, "--csv", str(table)]) == 0
    frame = pd.read_csv(table)
    allocations = frame[frame.kind == "allocation"]
    assert len(allocations) == 9
    assert (allocations.elements == allocations.documented_elements).all()
    assert (frame.elements == frame.predicted_elements).all()
