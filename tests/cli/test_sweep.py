"""`hexconv sweep` as a user meets it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from hexconv.apart import Limits
from hexconv.cli.answers import VERSION
from hexconv.cli.app import exit_code
from hexconv.spec import Case
from hexconv.sweep.judging import Verdict
from hexconv.sweep.random_case import random_case


@pytest.mark.simulator
def test_a_small_sweep_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "--random", "4", "--seed", "11", "--workers", "2", "--json"]) == 0
    told = {"version": VERSION, "checked": 4, "refused": 0, "disagree": 0, "failures": []}
    assert json.loads(capsys.readouterr().out) == told


def test_random_cases_that_are_rows_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that is there is not done again, and is judged again with all others."""
    out, command = tmp_path / "drawn.csv", ["sweep", "--random", "3", "--seed", "11", "--kernel", "plain", "--out"]
    assert exit_code([*command, str(out)]) == 0
    assert "3 rows: all hold" in capsys.readouterr().out
    table = pd.read_csv(out)
    assert table["case"].tolist() == [f"random-plain-11-{index}" for index in range(3)]
    assert table["target"].tolist() == ["llvm"] * 3
    journal = out.with_name("drawn.csv.journal")
    journal.write_text(journal.read_text().replace('"holds", "reason": ""', '"differs", "reason": "two sizes"', 1))
    assert exit_code([*command, str(out)]) == 1
    printed = capsys.readouterr().out
    assert "1 differs, 2 hold" in printed
    assert pd.read_csv(out)["elapsed_seconds"].tolist() == table["elapsed_seconds"].tolist()
    [wrong] = [index for index, status in enumerate(pd.read_csv(out)["status"]) if status == "differs"]
    assert f"# differs\n# random-plain-11-{wrong}: two sizes\n" in printed
    toml = printed[: printed.index(str(out))]
    assert Case.parse(toml, f"random-plain-11-{wrong}") == random_case(11, wrong, "plain")


def test_a_cluster_and_a_grid_are_refused_for_random_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "grid.toml", "--random", "3"]) == 2
    assert "--random draws its cases; leave out the grid" in capsys.readouterr().err
    assert exit_code(["sweep", "--random", "3", "--scheduler", "tcp://here:1"]) == 2
    assert "no --out given" in capsys.readouterr().err
    assert exit_code(["sweep", "--random", "3", "--fresh"]) == 2
    assert "no --out given" in capsys.readouterr().err


def outcome_by_index(cases: list[Case], workers: int, limits: Limits) -> list[Verdict]:
    """The second disagrees, the third is refused."""
    assert workers == 3
    assert limits == Limits(1800, 4 << 30)
    return [
        Verdict(cases[0], "agrees"),
        Verdict(cases[1], "disagrees", ("two sizes",)),
        Verdict(cases[2], "refused", ("too large",)),
    ]


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    import hexconv.sweep.judging as command

    monkeypatch.setattr(command, "judge_all", outcome_by_index)


@pytest.mark.usefixtures("verdicts")
def test_a_disagreement_is_printed_as_a_case_file_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "--random", "3", "--seed", "5", "--workers", "3"]) == 1
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "2 cases checked, 1 disagrees"
    assert "# random-5-1: two sizes" in printed
    assert "# random-5-2: too large" in printed
    assert Case.parse(printed[: printed.index("# refused")], "random-5-1") == random_case(5, 1)


@pytest.mark.usefixtures("verdicts")
def test_cases_of_one_kernel_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "--random", "3", "--seed", "5", "--kernel", "hmx", "--workers", "3"]) == 1
    printed = capsys.readouterr().out
    case = Case.parse(printed[: printed.index("# refused")], "random-hmx-5-1")
    assert case == random_case(5, 1, "hmx")
    assert case.plan.kernel == "hmx"


@pytest.mark.usefixtures("verdicts")
def test_json_has_the_failures_as_toml(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", "--random", "3", "--seed", "5", "--workers", "3", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["checked"], found["refused"], found["disagree"]) == (2, 1, 1)
    assert [Case.parse(text, "random-5-1") for text in found["failures"]] == [random_case(5, 1)]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--random", "0"],
        ["--random", "2", "--seed", "-1"],
        ["--random", "x"],
        ["grid.toml", "--kernel", "hmx"],
        ["--random", "2", "--memory", "4"],
    ],
)
def test_a_bad_command_line_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["sweep", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
