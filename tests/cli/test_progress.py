"""Progress where standard error is no terminal."""

import pytest

from hexconv.cli.progress import tenths


@pytest.mark.parametrize(
    ("total", "told"), [(3, [1, 2, 3]), (10, [*range(1, 11)]), (25, [3, 5, 8, 10, 13, 15, 18, 20, 23, 25])]
)
def test_a_log_has_a_line_for_each_tenth(total: int, told: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    assert [*tenths(iter(range(total)), "checking", total)] == [*range(total)]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [f"hexconv: checking {number} of {total}" for number in told]
