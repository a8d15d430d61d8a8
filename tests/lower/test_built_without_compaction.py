"""Passes of TVM that a build leaves out would have changed nothing: not the caches, and not the code."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import tvm
import tvm_ffi
from tvm.ir.instrument import PassTimingInstrument

from hexconv.lower import c_functions, hexagon_object, lower_case
from hexconv.lower.stages import UNUSED, without_compaction
from hexconv.run.host import TARGET
from hexconv.spec import Case
from tests.deep import one_in

SCHEDULES = Path(__file__).parents[2] / "schedules"


@pytest.mark.parametrize(
    "name", one_in(3, ["split-3x3", "double-3x3", "uint8-3x3-vtcm", "hvx/a-shift", "hvx/same-padding"])
)
def test_workspaces_are_the_same_with_compaction(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = lower_case(Case.load(SCHEDULES / f"{name}.toml")).module
    without = hexagon_object.compile_for_hexagon(module, "v68")
    monkeypatch.setattr(hexagon_object, "without_compaction", lambda **_how: nullcontext())
    compacted = hexagon_object.compile_for_hexagon(module, "v68")
    assert without.heap_bytes + without.vtcm_bytes
    assert (without.heap_bytes, without.vtcm_bytes) == (compacted.heap_bytes, compacted.vtcm_bytes)


BANDS = """
chain = { input = [1, 30, 30, 32], dtype = "uint8", output_layout = "NHWC", conv = [
    { out_channels = 32, kernel = [3, 3], padding = 1, requantize = { multiplier = 2097152, shift = -4 } },
    { out_channels = 32, kernel = [3, 3], padding = 1, requantize = { multiplier = 2097152, shift = -4 } },
] }
plan = { kernel = "hvx", rows = 4, order = "h_outer", threads = 2, buffering = "double", storage = "vtcm" }
"""


NAMES = sorted(str(path.relative_to(SCHEDULES).with_suffix("")) for path in SCHEDULES.rglob("*.toml"))


@pytest.mark.parametrize("name", one_in(14, ["", *NAMES]))
def test_passes_that_are_skipped_find_nothing_to_change(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.load(SCHEDULES / f"{name}.toml") if name else Case.parse(BANDS, "bands")
    functions = c_functions.callable_module(lower_case(case).module, "chain")
    skipped = c_functions._passed(functions, "hexagon")
    c_functions._passed.cache_clear()
    all_but_compaction = tvm.transform.PassContext(disabled_pass=["s_tir.CompactBufferAllocation"])
    monkeypatch.setattr(c_functions, "without_idle_passes", lambda **_how: all_but_compaction)
    assert tvm_ffi.structural_equal(c_functions._passed(functions, "hexagon"), skipped)


def test_compaction_is_what_is_left_out() -> None:
    module = lower_case(Case.load(SCHEDULES / "split-1x1.toml")).module
    everything, context = PassTimingInstrument(), without_compaction()
    with tvm.transform.PassContext(instruments=[everything]):
        tvm.compile(module, target=TARGET)
        passes = everything.render()
    with context:
        less = PassTimingInstrument()
        context.override_instruments([less])
        tvm.compile(module, target=TARGET)
        without = less.render()
    for left_out in ("s_tir.CompactBufferAllocation", *UNUSED):
        assert left_out in passes
        assert left_out not in without
    assert {"tirx.FlattenBuffer", "s_tir.HoistIfThenElse", "tirx.StmtSimplify"} <= set(
        without.replace(":", " ").split()
    )
