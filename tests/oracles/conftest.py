"""The oracles run when they are asked for: they take longer than all other tests of layouts together."""

import os

import pytest


@pytest.fixture(autouse=True)
def asked_for() -> None:
    if "HEXCONV_ORACLES" not in os.environ:
        pytest.skip("oracle not run: `make test-oracles` runs it")
