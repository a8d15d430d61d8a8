"""Where the oracle libraries are, and what happens to a test when one is missing."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("HEXCONV_ORACLES", Path(__file__).parents[2] / "build" / "oracles"))


def library(name: str) -> Path:
    """Path of a shared library; without it the test is skipped, on CI it fails."""
    path = FOLDER / name
    return path if path.exists() else missing(f"{name} isn't in {FOLDER}")


def missing(what: str):
    """An oracle that can't be asked is reported as not run; on CI that is a failure."""
    reason = f"oracle not run: {what}; `make test-oracles` installs it"
    return pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
