"""How many examples a law draws, by what one example costs: one part of as many as the profile says (`conftest`).

A law that only calculates draws them all, and needs no settings of its own.
"""

from collections.abc import Callable

import pytest
from hypothesis import Phase, settings


def drawn(number: int, *, same: bool = False) -> settings:
    """Draw one of so many of the profile's examples, and look for no smaller one of a failure: that takes minutes.

    `same` ones are drawn in every run.
    """
    unshrunk = [Phase.explicit, Phase.reuse, Phase.generate]
    usual = settings(max_examples=settings().max_examples // number, phases=unshrunk)
    return settings(usual, derandomize=True) if same else usual


LOWERED, SAME_LOWERED = drawn(8), drawn(8, same=True)
"""For a law of which an example is lowered, or searched."""
RUN, SAME_RUN = drawn(25), drawn(25, same=True)
"""For a law of which an example is compiled and run."""


def JUDGED(law: Callable[..., None]) -> Callable[..., None]:
    """For a law of which an example is compiled and run a dozen times: `make test-deep` draws ten times as many."""
    return pytest.mark.drawn(drawn(50, same=True)(law))
