"""What the documents show is what happens."""

import doctest
import re
from dataclasses import fields
from pathlib import Path

import pytest

import hexconv
from hexconv.cli.app import app
from hexconv.report.knobs import PAGE, knobs_page
from hexconv.spec import Plan
from tests.docs.console import matches, play

ROOT = Path(__file__).parents[2]
DOCS = PAGE.parent
TUTORIAL = (DOCS / "tutorial.md").read_text()
ON_THE_SIMULATOR = "## On the DSP"


def test_every_command_of_the_tutorial_shows_what_it_says(tmp_path: Path) -> None:
    before, _, rest = TUTORIAL.partition(ON_THE_SIMULATOR)
    after = "## " + rest.partition("\n## ")[2]
    played = [_same(*step) for step in play(before + after, tmp_path)]
    assert len(played) > 10


@pytest.mark.simulator
def test_the_tutorials_run_on_the_simulator_shows_what_it_says(tmp_path: Path) -> None:
    before, _, rest = TUTORIAL.partition(ON_THE_SIMULATOR)
    files = "\n".join(re.findall(r"^```toml\n.*?^```$", before, re.M | re.S))
    played = [_same(*step) for step in play(f"{files}\n{rest.partition(chr(10) + '## ')[0]}\n", tmp_path)]
    assert played


def test_every_command_of_the_readme_shows_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert [_same(*step) for step in play((ROOT / "README.md").read_text(), ROOT)]


def _same(command: str, shown: str, got: str) -> str:
    assert matches(shown, got), f"$ {command}\n{got}\n--- but the page shows\n{shown}"
    return command


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a ... d\n", "a b c d\n", True),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ("", "", True),
        ("a (1)\n", "a (2)\n", False),
    ],
)
def test_outputs_are_compared_line_by_line(shown: str, got: str, same: bool) -> None:
    assert matches(shown, got) == same


def test_the_api_page_holds() -> None:
    result = doctest.testfile(str(DOCS / "api.md"), module_relative=False)
    assert result.attempted > 15
    assert not result.failed


def test_every_public_name_is_there_and_on_the_page() -> None:
    page = (DOCS / "api.md").read_text()
    for name in hexconv.__all__:
        assert getattr(hexconv, name).__doc__
        assert name in page or name in ("Padding", "Requantize")
    with pytest.raises(AttributeError, match="lowwer"):
        hexconv.lowwer  # noqa: B018


def test_the_knobs_page_is_what_tvm_lowers() -> None:
    page = (DOCS / "knobs.md").read_text()
    assert page == knobs_page(), "make it again: python -m hexconv.report.knobs"
    assert re.findall(r"^## `(\w+)`", page, re.M) == [field.name for field in fields(Plan)]


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in app:
        if not name.startswith("-"):
            assert f"`hexconv {name}" in readme, name


@pytest.mark.parametrize("page", [*DOCS.glob("*.md"), ROOT / "README.md"], ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
