"""Tests marked `simulator` need qemu-hexagon: without it they are not run, and say so; on CI they fail.

No example of hypothesis has a deadline: a machine that does other work beside the tests is slow, and not wrong.
"""

import os
import shutil

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

collect_ignore = ["networks/export.py", "mutants.py"]
"""Need torch and cosmic-ray, which `make bench-networks` and `make mutants` install, and have no tests."""

REASON = "qemu-hexagon is not on PATH: apt-get install qemu-user"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if shutil.which("qemu-hexagon") or os.environ.get("CI") == "true":
        return
    for item in items:
        if item.get_closest_marker("simulator"):
            item.add_marker(pytest.mark.skip(reason=REASON))
