"""A digest has the sum of its listing, and shows caches, loops and copies, but nothing inside of a conv."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.report.listing import digest_of

LISTING = Path(__file__).parents[2] / "schedules" / "hvx" / "b-shift.tir"


def test_sha256sum_takes_it(tmp_path: Path) -> None:
    shutil.copy(LISTING, tmp_path)
    digest = tmp_path / "b-shift.tir.sha256"
    digest.write_text(digest_of(LISTING.name, LISTING.read_text()))
    check = ["sha256sum", "--check", "--strict", digest.name]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 0
    copy = tmp_path / LISTING.name
    copy.write_text(copy.read_text().replace("vrmpyub.acc", "vrmpyub.acd", 1))
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 1


def test_it_has_the_header_the_nest_and_its_copies_but_nothing_of_a_conv() -> None:
    text = LISTING.read_text()
    first, *summary = digest_of(LISTING.name, text).splitlines()
    header = [line for line in text.splitlines() if line.startswith("#") and not line.startswith("# from ")]
    assert first.split()[1] == LISTING.name
    assert summary[: len(header)] == header
    parts = ["start copies of input", "wait for copies of filter1", "conv2d #1", "conv2d #2", "start copies of output"]
    shown = "\n".join(summary)
    assert [shown.index(f"# {part}\n") for part in parts] == sorted(shown.index(f"# {part}\n") for part in parts)
    assert shown.count("tirx.dma_copy") == text.count('"tirx.dma_copy"')
    assert "range(ys)" in text
    assert "range(ys)" not in shown
    assert "vrmpy" not in shown
    assert len(summary) < len(text.splitlines()) / 4


def test_tir_writes_it_in_place_of_the_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = LISTING.with_name("stride-2.toml")
    assert exit_code(["tir", str(case), "-o", str(tmp_path), "--digest"]) == 0
    assert "stride-2.tir.sha256" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["stride-2.tir.sha256"]
