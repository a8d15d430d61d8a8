"""What a verdict compares: every kernel where it runs, on extremes too, and work with what is said to be needed."""

from dataclasses import replace

import numpy as np
import pytest

from hexconv import checked
from hexconv.analyze import usage, work_usage
from hexconv.analyze.usage import beaten
from hexconv.kernel.engine import EnginePackets
from hexconv.lower import lower_case
from hexconv.run import measure
from hexconv.run.copy_engine import MOMENTS
from hexconv.run.host import count
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.sweep.judging import RUNS, judge
from tests.lower.mutants import waits, without_wait

BACK = Requantize(multiplier=1 << 30, shift=-8, zero_point=3)
CHAIN = Chain(
    input=(1, 9, 9, 8),
    dtype="uint8",
    conv=(Conv2d(out_channels=8, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1), requantize=BACK),),
)


@pytest.mark.simulator
@pytest.mark.parametrize("storage", ["global", "vtcm"])
def test_hvx_is_judged_on_the_simulator(storage) -> None:
    assert judge(Case("hvx", CHAIN, Plan(kernel="hvx", storage=storage))).reasons == ()


@pytest.mark.simulator
def test_copies_of_hvx_happen_early_late_and_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its last wait a kernel ends while the engine still copies, whenever that happens."""
    case = Case("hvx", CHAIN, Plan(kernel="hvx", buffering="double"))
    assert judge(case).reasons == ()
    lowered = lower_case(case)
    broken = without_wait(lowered, waits(lowered) - 1)
    monkeypatch.setattr(checked, "lower_case", lambda _: broken)
    reasons = judge(case).reasons
    assert all(any(f"with {moment} copies" in reason for reason in reasons) for moment in MOMENTS)


def test_a_reference_that_differs_on_one_extreme_alone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in random tensors tells such a case from one that is right."""
    right = measure.reference

    def wrong_where_all_is_most(chain: Chain, image: np.ndarray, *rest: object) -> np.ndarray:
        return right(chain, image, *rest) + (image.min() == 255)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(measure, "reference", wrong_where_all_is_most)
    reasons = judge(Case("plain", CHAIN, Plan(kernel="plain"))).reasons
    assert reasons
    assert all("filled with most" in reason for reason in reasons)
    assert len(reasons) < RUNS


@pytest.mark.simulator
def test_packets_of_the_matrix_engine_are_those_that_are_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    conv = replace(CHAIN.conv[0], stride=(2, 1))
    case = Case("hmx", replace(CHAIN, filter_dtype="int8", conv=(conv,)), Plan(kernel="hmx", storage="vtcm"))
    assert judge(case).reasons == ()
    monkeypatch.setattr(usage, "engine_packets", lambda _: EnginePackets(1, 2, 3, 4, 5))
    reasons = judge(case).reasons
    assert len(reasons) == 5 * RUNS
    assert any(reason.startswith("taps of the matrix engine: closed form 2, counted ") for reason in reasons)


def test_work_below_what_is_needed_is_a_bound_that_is_beaten() -> None:
    case = Case("plain", CHAIN, Plan(kernel="plain"))
    work = work_usage(case, count(lower_case(case)))
    assert list(beaten(work)) == []
    [conv], [first, *others] = work.convs, work.traffic
    less = replace(work, convs=(replace(conv, macs=conv.needed_macs - 1),))
    assert list(beaten(less)) == [f"MACs of conv1: needed {conv.needed_macs}, counted {conv.needed_macs - 1}"]
    less = replace(work, traffic=(replace(first, bytes=first.needed_bytes - 1), *others))
    assert "needed" in next(beaten(less))
