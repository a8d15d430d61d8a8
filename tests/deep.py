"""What `make test` leaves to `make test-deep`: long runs, and more shapes of what a test runs on some.

CI runs `make test` alone. The deep tests are for whoever touches what they are about, and run whole before a release.
"""

from collections.abc import Iterable
from typing import Any

import pytest

DEEP = pytest.mark.deep


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """Return all cases, of which only the first of every `number` is none of the deep ones.

    >>> [bool(case.marks) for case in one_in(3, "abcd")]
    [False, True, True, False]
    """
    return [_param(case, [] if place % number == 0 else [DEEP]) for place, case in enumerate(cases)]


def _param(case: Any, marks: list[Any]) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, *marks])
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks)
