"""What lowering has compacted stays as it is: builds that leave TVM's own compaction out allocate the same."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import tvm
from tvm.ir.instrument import PassTimingInstrument

from hexconv.lower import hexagon_object, lower_case
from hexconv.lower.stages import without_compaction
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
    assert "s_tir.CompactBufferAllocation" in passes
    assert "s_tir.CompactBufferAllocation" not in without
    assert "tirx.FlattenBuffer" in without
