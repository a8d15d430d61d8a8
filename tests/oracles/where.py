"""Where the oracle libraries are, and what happens to a test when one is missing."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("HEXCONV_ORACLES") or Path(__file__).parents[2] / "build" / "oracles")
"""`make test-oracles` installs the libraries here and names the folder in HEXCONV_ORACLES."""


def library(name: str) -> Path:
    """Path of a shared library; without it the test doesn't run."""
    path = FOLDER / name
    return path if path.exists() else missing(f"{name} isn't in {FOLDER}")


def missing(what: str):
    """An oracle that can't be asked is reported as not run; where CI asks for oracles it is a failure."""
    reason = f"oracle not run: {what}; `make test-oracles` installs it"
    asked = "HEXCONV_ORACLES" in os.environ
    return pytest.fail(reason) if asked and os.environ.get("CI") == "true" else pytest.skip(reason)
