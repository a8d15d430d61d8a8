"""How far long work has come is seen: on a terminal by a bar, elsewhere by a line each ten seconds."""

import time

import pytest

from hexconv.cli import progress
from hexconv.working import each, heard, tell


def test_what_is_told_is_heard_by_the_innermost_listener_alone() -> None:
    outer: list[tuple[str, int, int]] = []
    inner: list[tuple[str, int, int]] = []
    tell("unheard")
    with heard(lambda *told: outer.append(told)):
        with heard(lambda *told: inner.append(told)):
            assert [*each("ab", "lowering", str.upper)] == ["a", "b"]
        tell("running")
    assert inner == [("lowering A", 0, 2), ("lowering B", 1, 2), ("lowering", 2, 2)]
    assert outer == [("running", 0, 0)]


def test_a_log_says_every_while_how_far_work_has_come(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.05)

    def name(item: int) -> str:
        return f"case\n{item}"

    for _ in progress.counted([1, 2], "running", name):
        with progress.waiting("a part of it"):
            tell("counting", 3, 4)
            time.sleep(0.2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hexconv: counting, 3 of 4 done, 0 s" in captured.err.splitlines()


def test_short_work_logs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert [*progress.counted([1, 2], "running", str)] == [1, 2]
    assert capsys.readouterr() == ("", "")
