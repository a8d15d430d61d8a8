"""Seconds of a run on this machine: of calls alone, the median of as many as there is time for."""

from itertools import count

import pytest

from hexconv.run import host
from hexconv.run.host import TIMED_CALLS, TIMED_SECONDS, Host


@pytest.mark.parametrize(("call_seconds", "calls"), [(0.001, TIMED_CALLS), (10 * TIMED_SECONDS, 1)])
def test_a_kernel_is_called_again_only_while_there_is_time(
    monkeypatch: pytest.MonkeyPatch, call_seconds: float, calls: int
) -> None:
    clock = count()
    monkeypatch.setattr(host.time, "perf_counter", lambda: next(clock) * call_seconds)
    seen: list[tuple[object, ...]] = []
    timed = list(Host()._calls(lambda *arguments: seen.append(arguments), ["input", "output"], copies=False))
    assert seen == [("input", "output")] * calls
    assert [seconds for seconds, _ in timed] == pytest.approx([call_seconds] * calls)
