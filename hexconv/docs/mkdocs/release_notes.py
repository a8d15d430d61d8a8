"""The page of changes: what the next release brings, of `.changes`, above those that CHANGELOG.md has."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
RELEASES = "<!-- releases -->\n"
"""The line of CHANGELOG.md below which towncrier writes each release (`start_string` in `pyproject.toml`)."""


def next_release(date: str = "unreleased") -> str:
    """Return the section of CHANGELOG.md that `towncrier build` would write."""
    draft = [sys.executable, "-m", "towncrier", "build", "--draft", "--date", date, "--dir", str(ROOT)]
    return subprocess.run(draft, capture_output=True, text=True, check=True).stdout


def changes_page() -> str:
    """Return the page of all changes, the next release first."""
    released = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition(RELEASES)[2]
    return f"# Changelog\n\n{next_release()}{released}"
