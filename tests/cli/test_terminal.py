"""What pages show of commands, on terminals of several widths, where no word is broken; what libraries warn of."""

import io
import warnings
from importlib import import_module
from pathlib import Path

import pytest

from hexconv.cli.answers import print_text
from hexconv.cli.app import Standard, exit_code
from tests.docs.console import steps

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """Text on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [60, 80, 140])
def test_lines_of_commands_are_broken_between_words(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    pages = (ROOT / "README.md", *(ROOT / "hexconv" / "docs").rglob("*.md"))
    lines = {line for page in pages for step in steps(page.read_text()) for line in step.text.splitlines()}
    assert any(len(line) > width for line in lines)
    for line in lines:
        terminal = Terminal()
        Standard(terminal, is_told=True).write(line)
        shown = terminal.getvalue()
        assert shown.split() == line.split()
        assert all(len(part) <= width or len(part.split()) == 1 for part in shown.split("\n"))


def test_text_that_is_copied_keeps_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", Standard(terminal, is_told=True))
    print_text('{"reason": "' + "word " * 40 + '"}\n')
    assert terminal.getvalue().count("\n") == 1


def test_a_warning_of_a_library_is_one_short_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may quote a file, at any length."""
    program = import_module("hexconv.cli.app")
    monkeypatch.setattr(program, "app", lambda *_words, **_how: warnings.warn("a\x1b[2J\n" * 1000, stacklevel=1))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert exit_code(["doctor"]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("hexconv: UserWarning: a")
    assert len(line) < 500
    assert "\x1b" not in line
