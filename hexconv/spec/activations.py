"""The activations of float convs: their names and parameters, how much they change an error, and how large results get.

`hexconv.spec.curves` defines what each of them computes, in numpy.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Literal

from hexconv.errors import InputError

Activation = Literal[
    "none",
    "relu",
    "relu6",
    "leaky_relu",
    "prelu",
    "elu",
    "sigmoid",
    "hardsigmoid",
    "tanh",
    "silu",
    "hardswish",
    "gelu",
    "gelu_tanh",
    "table",
]
TABLE: Activation = "table"
PRELU: Activation = "prelu"
CLAMPS: tuple[Activation, ...] = ("none", "relu", "relu6")
"""Activations of floats that take two instructions at most."""
SLOPE = "slope"
"""How the name of the argument begins that has a slope for each channel."""


def _one(_slope: float) -> float:
    return 1.0


@dataclass(frozen=True)
class Curve:
    """What is known of a float activation, beside what it computes.

    Attributes:
        slope: its `activation_slope` where a conv states none; None if it takes none.
        offset: its `activation_offset` where a conv states none; None if it takes none.
        is_rising: whether its slope has to be above zero.
        steepest: from its slope to the most that it multiplies a difference of two values by.
        at_zero: its result for 0.
        bound: the largest absolute result.
        spread: how much larger than one sums have to be for all parts of the curve to be met.
    """

    slope: float | None = None
    offset: float | None = None
    is_rising: bool = False
    steepest: Callable[[float], float] = field(default=_one, repr=False)
    at_zero: float = 0.0
    bound: float = inf
    spread: float = 1.0


def _or_one(slope: float) -> float:
    """The slope below zero, or that above."""
    return max(1.0, abs(slope))


CURVES: dict[Activation, Curve] = {
    "none": Curve(),
    "relu": Curve(),
    "relu6": Curve(bound=6, spread=8),
    "leaky_relu": Curve(slope=0.01, steepest=_or_one),
    "prelu": Curve(steepest=_or_one),
    "elu": Curve(slope=1.0, is_rising=True, steepest=_or_one, spread=2),
    "sigmoid": Curve(steepest=lambda _: 0.25, at_zero=0.5, bound=1, spread=4),
    "hardsigmoid": Curve(slope=1 / 6, offset=0.5, is_rising=True, steepest=abs, at_zero=1, bound=1, spread=4),
    "tanh": Curve(bound=1, spread=2),
    "silu": Curve(steepest=lambda _: 1.1, spread=4),
    "hardswish": Curve(steepest=lambda _: 1.5, spread=4),
    "gelu": Curve(steepest=lambda _: 1.13, spread=2),
    "gelu_tanh": Curve(steepest=lambda _: 1.13, spread=2),
}
"""By name, in the order in which an import tries them. An offset moves a hardsigmoid at 0 to any of its results."""


def check_parameters(where: str, activation: Activation, slope: float | None, offset: float | None) -> None:
    """Check that an activation of floats takes the parameters that are stated, and that a rising one rises.

    Raises:
        InputError: it doesn't.
    """
    curve = CURVES[activation]
    for name, stated, default in (("slope", slope, curve.slope), ("offset", offset, curve.offset)):
        if stated is not None and default is None:
            raise InputError(f"{where}.activation_{name}", f"{stated:g}", f"none with {activation}: {_takers(name)}")
    if curve.is_rising and slope is not None and slope <= 0:
        raise InputError(f"{where}.activation_slope", f"{slope:g}", f"a number above 0 with {activation}")


def _takers(parameter: str) -> str:
    takers = [name for name, curve in CURVES.items() if getattr(curve, parameter) is not None]
    each = "; the slopes of prelu, one a channel, lie beside the filters" if parameter == "slope" else ""
    return f"it is for {', '.join(takers)}{each}"
