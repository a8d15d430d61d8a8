"""Text of files on a terminal and on the page: control characters, marks of direction, markup."""

import contextlib
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hexconv.cli.app import exit_code, standard_streams
from hexconv.model.manifest import ChainEntry, Manifest, NotTaken
from hexconv.report.plots import Plot
from hexconv.report.plots.plot import SVG

HOSTILE = "\x1b[2J\x1b]8;;http://x\x07\u202egnp.\r\x85<script>alert(1)</script>[red]"
CASE = """
[chain]
input = [1, 16, 16, 32]
dtype = "uint8"
[[chain.conv]]
out_channels = 32
requantize = { multiplier = 1073741824, shift = -9 }
[plan]
kernel = "plain"
"""


class Elements(HTMLParser):
    """The tags of a page, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(sorted(name for name, _ in attrs))))


@given(st.text())
def test_a_terminal_gets_nothing_that_it_would_obey(text: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), standard_streams():
        print(text)
    assert all(c.isprintable() or c in "\n\t" for c in out.getvalue())


def test_colours_of_rich_reach_a_terminal() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), standard_streams():
        Console(force_terminal=True, color_system="standard").print("[bold]told[/bold]")
    assert out.getvalue() == "\x1b[1mtold\x1b[0m\n"


@pytest.mark.parametrize(
    "command", [["tir"], ["cache"], ["cache", "--json"], ["best", "--vtcm", "1MiB"], ["run"], ["build"]], ids=" ".join
)
def test_commands_print_and_write_names_of_files_escaped(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{HOSTILE.replace('/', '')}.toml"
    path.write_text(CASE)
    folder = [] if command[0] in ("cache", "run") else ["-o", str(tmp_path / "out")]
    target = ["--target", "llvm"] if command[0] in ("run", "build") else []
    assert exit_code([*command, str(path), *folder, *target]) == 0
    said = capsys.readouterr()
    assert all(c.isprintable() or c in "\n\t" for c in said.out + said.err)
    assert "--json" not in command or json.loads(said.out)
    for file in (tmp_path / "out").glob("*"):
        assert file.name.isprintable()


PAGES = [("harmless", "harmless"), ("hostile", HOSTILE)]


def assert_alike(pages: list[str]) -> None:
    assert all(c.isprintable() or c == "\n" for c in pages[1])
    assert Elements(pages[0]).tags == Elements(pages[1]).tags


def test_the_page_of_a_hostile_name_has_the_elements_of_a_harmless_one(tmp_path: Path) -> None:
    for kind, name in PAGES:
        case = tmp_path / f"{name.replace('/', '')}.toml"
        case.write_text(CASE)
        assert exit_code(["report", str(case), "-o", str(tmp_path / kind)]) == 0
    assert_alike([(tmp_path / kind).read_text() for kind, _ in PAGES])


def test_the_page_of_a_hostile_manifest_has_the_elements_of_a_harmless_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plot, "svg", lambda _: f'<svg xmlns="{SVG}"/>')
    (tmp_path / "01-a.toml").write_text(CASE)
    for kind, words in PAGES:
        entry = ChainEntry(case="01-a", convs=(words,), input=words, output=words, ended_by=words, reason=words)
        left_out = NotTaken(node=words, op=words, reason=words)
        manifest = Manifest(model=words, notes=(words,), chain=(entry,), not_taken=(left_out,))
        (tmp_path / "network.toml").write_text(manifest.to_toml())
        assert exit_code(["report", str(tmp_path), "-o", str(tmp_path / kind)]) == 0
    assert_alike([(tmp_path / kind).read_text() for kind, _ in PAGES])
