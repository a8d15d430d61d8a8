"""`hexconv cache` and `hexconv best` on cases of the fast kernels: the words and the figures that the plain one has."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize

SCHEDULES = Path(__file__).parents[2] / "schedules"
CASES = ("hvx/a-shift",)
IN_FLIGHT = {"hvx/a-shift": "20"}
"""Copies: 8 rows of a stripe and 8 ahead, two filters, two tiles of the output."""


@pytest.mark.parametrize("name", CASES)
def test_a_fast_kernels_work_is_shown_in_the_words_of_the_contract(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, table = SCHEDULES / f"{name}.toml", tmp_path / "usage.csv"
    assert exit_code(["cache", str(path), "--json", "--csv", str(table)]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["agrees"]
    assert row["traffic_bytes"] == sum(tensor["predicted_bytes"] for tensor in row["traffic"])
    assert row["macs"] == sum(conv["predicted_macs"] for conv in row["convs"]) >= row["needed_macs"]
    with table.open() as file:
        lines = list(csv.DictReader(file))
    assert {(line["traffic_bytes"], line["macs"], line["copies_in_flight"]) for line in lines} == {
        (str(row["traffic_bytes"]), str(row["macs"]), IN_FLIGHT[name])
    }
    assert exit_code(["cache", str(path)]) == 0
    text = capsys.readouterr().out
    assert str(row["traffic_bytes"]) in text
    assert str(row["macs"]) in text


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("text", "target", "runs"),
    [
        ("dtype = 'uint8'\n[[chain.conv]]\nout_channels = 40\n[plan]\nkernel = 'hvx'\n", "hexagon", [True]),
        ("[[chain.conv]]\nout_channels = 40\nkernel = 3\n[plan]\nkernel = 'plain'\n", "llvm", [True, True]),
    ],
    ids=["hvx", "plain"],
)
def test_least_traffic_is_served_and_verified(
    text: str, target: str, runs: list[bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "case.toml"
    path.write_text(f"[chain]\ninput = [1, 20, 20, 32]\n{text}")
    assert exit_code(["best", str(path), "--objective", "traffic", "--target", target, "--verify", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    best, [checked] = result["chains"][0]["best"], result["verified"]
    assert checked["holds"]
    assert (checked["traffic_bytes"], checked["macs"]) == (best["traffic_bytes"], best["macs"])
    assert [run["passed"] for run in checked["runs"]] == runs
    asked, answer = (Case.parse(toml, "case").plan for toml in (path.read_text(), result["chains"][0]["toml"]))
    assert (answer.kernel, answer.threads) == (asked.kernel, asked.threads)


def test_threads_alone_are_told_what_other_knobs_would_save(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conv = Conv2d(out_channels=64, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30, shift=-7))
    chain, path = Chain(input=(1, 30, 30, 64), dtype="uint8", conv=(conv, conv)), tmp_path / "bands.toml"
    for plan, is_told in (
        (Plan(kernel="hvx", threads=4), True),
        (Plan(kernel="hvx", threads=4, order="h_outer"), False),
    ):
        path.write_text(Case("bands", chain, plan).to_toml())
        assert exit_code(["cache", str(path)]) == 0
        assert ("threads = 4 alone takes" in capsys.readouterr().err) == is_told


def test_a_case_that_no_search_plans_stops_no_other_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = Chain(input=(1, 8, 8, 8), dtype="uint8", conv=(Conv2d(out_channels=8),))
    huge = replace(small, input=(1, 2**20, 2**20, 8))
    for name, chain in (("small", small), ("huge", huge)):
        plan = Plan(kernel="hvx", threads=2)
        (tmp_path / f"{name}.toml").write_text(Case(name, chain, plan).to_toml())
    assert exit_code(["cache", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("small: agrees")
    assert captured.err.startswith("hexconv: huge: the input has")
