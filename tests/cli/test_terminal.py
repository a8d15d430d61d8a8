"""What pages show of commands, on terminals of several widths: no word is broken, no line is too long."""

import io
from pathlib import Path

import pytest

from hexconv.cli.answers import print_text
from hexconv.cli.app import Standard
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
