"""Remember what a planned chain says of a conv: one figure is asked for by many others."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Figure = TypeVar("Figure")


def of_conv(figure: Callable[[Any, int], Figure]) -> Callable[[Any, int], Figure]:
    """Decorate a method that returns a figure of conv `index`: each instance computes it once for each conv."""
    name = f"_known_{figure.__name__}"

    @wraps(figure)
    def remembered(self: Any, index: int) -> Figure:
        known = self.__dict__.get(name)
        if known is None:
            known = self.__dict__[name] = {}
        if index not in known:
            known[index] = figure(self, index)
        return known[index]

    return remembered
