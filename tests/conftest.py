"""Tests marked `simulator` need qemu-hexagon, `mlir` mlir-opt: without they are not run, and say so; on CI they fail.

Laws are drawn as a profile says, which `--hypothesis-profile` chooses:

- `dev`, the usual one: other examples in every run; what failed is kept, and tried first.
- `ci`, where CI=true: the same examples in every run, so that a commit fails by its own faults alone.
- `deep`, of `make test-deep`: ten times as many.

No example has a deadline: a machine that does other work beside the tests is slow, and not wrong.
"""

import gc
import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from hexconv.apart.process import NEW_OBJECTS, ONE_BLAS_THREAD

os.environ.setdefault(*ONE_BLAS_THREAD)
gc.set_threshold(NEW_OBJECTS)  # as the program does

ON_CI = os.environ.get("CI") == "true"
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)
settings.register_profile("dev", deadline=None, suppress_health_check=SLOW)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("deep", settings.get_profile("dev"), max_examples=1000)
settings.load_profile("ci" if ON_CI else "dev")

collect_ignore = ["networks/export.py", "mutants.py"]
"""Need torch and cosmic-ray, which `make bench-networks` and `make mutants` install, and have no tests."""

NEEDED = {
    "simulator": (("qemu-hexagon",), "apt-get install qemu-user"),
    "mlir": (("mlir-opt", "mlir-opt-19"), "apt-get install mlir-19-tools"),
}
"""By the name of a mark, the programs of which its tests need one, and how to install it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for mark, (programs, install) in NEEDED.items():
        if any(map(shutil.which, programs)) or ON_CI:
            continue
        for item in items:
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=f"{programs[0]} is not on PATH: {install}"))


def pytest_collection_finish() -> None:
    """Look for no circles among what was imported and collected, which stays to the end."""
    gc.freeze()


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """Handle signals after a test as before: `main` leaves them ignored, which processes started later inherit."""
    earlier = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in earlier.items():
        signal.signal(number, handler or signal.SIG_DFL)


@pytest.fixture(autouse=True)
def no_line_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no line each ten seconds join what a command says: a slow machine has more of them."""
    monkeypatch.setattr("hexconv.cli.progress.EVERY_SECONDS", 3600.0)
