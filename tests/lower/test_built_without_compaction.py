"""Passes of TVM that a build leaves out would have changed nothing: not the caches, and not the code."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import tvm
import tvm_ffi
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tvm import tirx
from tvm.ir.instrument import PassTimingInstrument, pass_instrument

from hexconv.errors import HexconvError
from hexconv.lower import c_functions, hexagon_object, lower_case, stages
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
chain = {{ input = [1, {height}, {width}, {channels}], dtype = "uint8", output_layout = "NHWC", conv = [
    {{ out_channels = {channels}, kernel = [3, 3], padding = 1, groups = {groups}, requantize = {scale} }},
    {{ out_channels = {made}, kernel = [{kernel}, {kernel}], requantize = {scale} }},
] }}
plan = {{ kernel = "hvx", rows = {rows}, order = "h_outer", threads = {threads}, buffering = "double" }}
"""


WIDE = {"height": 14, "width": 14, "channels": 32, "made": 24}
NAMES = sorted(str(path.relative_to(SCHEDULES).with_suffix("")) for path in SCHEDULES.rglob("*.toml"))


@pytest.mark.parametrize("name", one_in(14, NAMES))
def test_passes_that_are_skipped_find_nothing_to_change(name: str) -> None:
    skipped, complete = passed_both_ways(Case.load(SCHEDULES / f"{name}.toml"))
    assert tvm_ffi.structural_equal(complete, skipped)


@settings(max_examples=3)
@given(
    st.fixed_dictionaries(
        {
            "height": st.integers(12, 18),
            "width": st.integers(12, 18),
            "channels": st.sampled_from((32, 64)),
            "groups": st.sampled_from((1, 32)),
            "made": st.sampled_from((24, 32)),
            "kernel": st.sampled_from((1, 3)),
            "rows": st.integers(2, 7),
            "threads": st.integers(1, 4),
        }
    )
)
@example({**WIDE, "groups": 1, "kernel": 3, "rows": 5, "threads": 3})  # bands that begin within stripes
@example({**WIDE, "groups": 32, "kernel": 1, "rows": 4, "threads": 4})  # loops without trips: no row to mend at an end
def test_passes_that_are_skipped_find_nothing_in_bands(fields: dict[str, int]) -> None:
    case = Case.parse(BANDS.format(scale="{ multiplier = 2097152, shift = -4 }", **fields), "bands")
    try:
        functions = c_functions.callable_module(lower_case(case).module, "chain")
    except HexconvError:
        assume(False)
    c_functions._passed.cache_clear()
    idle = Idle()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_functions, "without_idle_passes", lambda **_how: tvm.transform.PassContext(instruments=[idle]))
        c_functions._passed(functions, "hexagon")
    c_functions._passed.cache_clear()
    assert idle.skipped
    assert not idle.changing


IDLE = {
    "s_tir.HoistIfThenElse": tvm.s_tir.transform.HoistIfThenElse,
    "s_tir.RenormalizeSplitPattern": tvm.s_tir.transform.RenormalizeSplitPattern,
    "tirx.StmtSimplify": tirx.transform.StmtSimplify,
    "tirx.RemoveNoOp": tirx.transform.RemoveNoOp,
}


@pass_instrument
class Idle:
    """Does each pass that is skipped apart, and keeps the names of those that change more than how numbers look."""

    def __init__(self) -> None:
        self.chosen = stages._WithoutIdlePasses(False)
        self.skipped, self.changing = list[str](), list[str]()

    def should_run(self, module: tvm.IRModule, info: Any) -> bool:
        runs = bool(self.chosen.should_run(module, info))
        if not runs:
            self.skipped.append(info.name)
            with tvm.transform.PassContext():
                changed = IDLE[info.name]()(module)
                before = IDLE["tirx.RemoveNoOp"]()(module) if info.name == "s_tir.HoistIfThenElse" else module
                is_same = tvm_ffi.structural_equal(changed, before)
                if not is_same and not tvm_ffi.structural_equal(simplified(changed), simplified(before)):
                    self.changing.append(info.name)
        return runs


COMPARED = {"LT": tirx.LT, "LE": tirx.LE, "GT": tirx.GT, "GE": tirx.GE}


@settings(max_examples=60)
@given(
    factor=st.integers(1, 12),
    number=st.integers(1, 60),
    trips=st.tuples(st.integers(2, 9), st.integers(2, 9)),
    compared=st.sampled_from(("LT", "LE", "GT", "GE", "FloorDiv")),
    is_turned=st.booleans(),
)
@example(factor=8, number=56, trips=(9, 8), compared="LT", is_turned=False)
@example(factor=6, number=9, trips=(9, 3), compared="FloorDiv", is_turned=False)
def test_sums_that_are_not_divided_have_no_factor_in_common(
    factor: int, number: int, trips: tuple[int, int], compared: str, is_turned: bool
) -> None:
    totals = {x * factor + y for x in range(trips[0]) for y in range(trips[1])}
    assume(min(totals) < number < max(totals))  # what always holds, or never, either way of writing may show
    x, y = (tirx.Var(name, "int32") for name in "xy")
    total, by = x * factor + y, tirx.IntImm("int32", number)
    expression = (
        tirx.FloorDiv(total, by)
        if compared == "FloorDiv"
        else COMPARED[compared](*((by, total) if is_turned else (total, by)))
    )
    body: tirx.Stmt = tirx.Evaluate(tirx.call_extern("int32", "used", expression))
    for variable, extent in zip((y, x), reversed(trips), strict=True):
        body = tirx.For(variable, 0, extent, tirx.ForKind.SERIAL, body)
    module = tvm.IRModule({"main": tirx.PrimFunc([], body)})
    divided = tvm.s_tir.transform.RenormalizeSplitPattern()(module)
    is_same = tvm_ffi.structural_equal(simplified(divided), simplified(module))
    assert is_same or stages._is_divided(expression)


def passed_both_ways(case: Case) -> tuple[tvm.IRModule, tvm.IRModule]:
    """What TVM makes of a chain without the passes that are skipped, and with them."""
    functions = c_functions.callable_module(lower_case(case).module, "chain")
    c_functions._passed.cache_clear()
    skipped = c_functions._passed(functions, "hexagon")
    c_functions._passed.cache_clear()
    all_but_compaction = tvm.transform.PassContext(disabled_pass=["s_tir.CompactBufferAllocation"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_functions, "without_idle_passes", lambda **_how: all_but_compaction)
        complete = c_functions._passed(functions, "hexagon")
    c_functions._passed.cache_clear()
    return skipped, complete


def simplified(module: tvm.IRModule) -> tvm.IRModule:
    """The same with its numbers as TVM's simplification leaves them for good: `x * 56 - y * 56`, not `(x - y) * 56`."""
    simplify = tirx.transform.StmtSimplify()
    return simplify(simplify(module))


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
