"""The source of the random numbers of a case.

Cases are drawn through `Draw` alone, so that the sweep, which draws from a seed, and the tests, where hypothesis draws
and looks for the smallest case that fails, draw from one description of the scope. The first of several choices, the
least number and False are the simplest: a search for small cases goes there.
"""

from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np

Choice = TypeVar("Choice")


class Draw(ABC):
    """A source of whole numbers, with the choices that are made from them."""

    @abstractmethod
    def number(self, least: int, most: int) -> int:
        """Draw a number from `least` to `most`, both included."""

    def one_of(self, *choices: Choice) -> Choice:
        """Draw one of the choices; one that is listed twice is twice as likely."""
        return choices[self.number(0, len(choices) - 1)]

    def is_one_in(self, cases: int) -> bool:
        """Return True in one of `cases` draws."""
        return self.number(1, cases) == cases

    def size(self, most: int) -> int:
        """Draw a size from 1 to `most`, every power of two as likely as the others."""
        least = 1 << self.number(0, most.bit_length() - 1)
        return self.number(least, min(2 * least - 1, most))

    def around(self, least: int, most: int, middle: int = 0) -> int:
        """Draw `middle` or any number, one time in four each; else an end, or a neighbour of an end or the middle."""
        style = self.number(0, 3)
        if style == 0:
            return middle
        if style == 1:
            return self.number(least, most)
        marks = (least, least, most, most, least + 1, most - 1, middle - 1, middle + 1)
        return min(max(self.one_of(*marks), least), most)


class Seeded(Draw):
    """A source with a generator of numpy, every number as likely as the others."""

    def __init__(self, *seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def number(self, least: int, most: int) -> int:
        """See `Draw`."""
        return int(self._random.integers(least, most, endpoint=True))
