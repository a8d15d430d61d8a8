"""Where the numbers of a random case come from.

Cases are drawn through `Draw` alone, so that the sweep, which draws from a seed, and the tests, where hypothesis draws
and looks for the smallest case that fails, draw from one description of the scope. The first of several choices, the
least number and False are the simplest: a search for small cases goes there.
"""

from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np

Choice = TypeVar("Choice")


class Draw(ABC):
    """A source of whole numbers, and what is made of them."""

    @abstractmethod
    def number(self, least: int, most: int) -> int:
        """`least` to `most`, both included."""

    def one_of(self, *choices: Choice) -> Choice:
        """One of the choices; what stands there twice is twice as likely."""
        return choices[self.number(0, len(choices) - 1)]

    def is_one_in(self, cases: int) -> bool:
        """True in one of so many cases."""
        return self.number(1, cases) == cases

    def size(self, most: int) -> int:
        """1 to `most`, every power of two as likely as the others."""
        least = 1 << self.number(0, most.bit_length() - 1)
        return self.number(least, min(2 * least - 1, most))

    def around(self, least: int, most: int, middle: int = 0) -> int:
        """In one of four `middle`, or anything; in the others an end, or what is next to an end or to the middle."""
        style = self.number(0, 3)
        if style == 0:
            return middle
        if style == 1:
            return self.number(least, most)
        marks = (least, least, most, most, least + 1, most - 1, middle - 1, middle + 1)
        return min(max(self.one_of(*marks), least), most)


class Seeded(Draw):
    """Numbers of a generator of numpy's, all as likely."""

    def __init__(self, *seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def number(self, least: int, most: int) -> int:
        """See `Draw`."""
        return int(self._random.integers(least, most, endpoint=True))
