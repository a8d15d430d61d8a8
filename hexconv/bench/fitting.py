"""Fits the prices of parts to runs: least squares, robust against the few runs in which LLVM spills, none below 0."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from hexconv.search.machine import Prices

ROUNDS, NEAR = 30, 0.1
FACTORS = np.arange(0.95, 1.1, 0.0025)
"""The factors of which the best one scales the prices."""
NINE_OF_TEN = 0.9


@dataclass(frozen=True)
class Stage:
    """What a run, or a stage of it, is made of, and the packets that it took.

    Attributes:
        occurs: how often each part occurs.
        packets: the packets that it took.
        of: the packets that its error is a share of.
    """

    occurs: Mapping[str, float]
    packets: float
    of: float

    @classmethod
    def whole(cls, occurs: Mapping[str, float], packets: float) -> "Stage":
        """Return a whole run."""
        return cls(occurs, packets, packets)


def fitted(stages: Sequence[Stage], weights: Sequence[float] = ()) -> dict[str, float]:
    """The prices of parts, none below 0, that predict packets best: least squares of errors, each a share of `of`.

    Args:
        stages: the stages of all runs.
        weights: the weight of each stage; all are alike if none are given.

    >>> runs = [({"a": 1, "b": 2}, 8), ({"a": 2, "b": 1}, 7), ({"a": 1, "c": 1}, 6)]
    >>> fitted([Stage.whole(*run) for run in runs])
    {'a': 2.0, 'b': 3.0, 'c': 4.0}
    >>> fitted([Stage.whole({"a": 1, "b": 1}, 10), Stage.whole({"a": 1, "b": 2}, 9)])
    {'a': 9.45}
    """
    names = sorted({name for stage in stages for name, times in stage.occurs.items() if times})
    roots = np.sqrt(weights if len(weights) else np.ones(len(stages)))
    target = roots * [stage.packets / stage.of for stage in stages]
    shares = np.array([[stage.occurs.get(name, 0) / stage.of for name in names] for stage in stages])
    prices, _ = nnls(shares * roots[:, None], target)
    return {name: float(f"{price:.3g}") for name, price in zip(names, prices, strict=True) if price > 0}


def robust(stages: Sequence[Stage]) -> dict[str, float]:
    """Return the prices with the least sum of errors, so that the few loops in which LLVM spills count little.

    It repeats least squares and weights each stage by one over its error of the time before; errors below `NEAR` count
    as `NEAR`.

    >>> robust([Stage.whole({"a": times}, packets) for times, packets in enumerate([2, 4, 6, 8, 30, 12], 1)])
    {'a': 2.01}
    """
    weights = np.ones(len(stages))
    for _ in range(ROUNDS):
        prices = Prices(0.0, 0.0, fitted(stages, weights.tolist()))
        errors = [(prices.packets(stage.occurs) - stage.packets) / stage.of for stage in stages]
        weights = 1 / np.maximum(np.abs(errors), NEAR)
    return fitted(stages, weights.tolist())


def scaled(parts: Mapping[str, float], wholes: Sequence[Stage]) -> dict[str, float]:
    """Scale prices by the factor with which nine of ten runs are as near as can be.

    Unscaled prices are mostly low: a run in which LLVM runs out of registers takes more packets, and counts little.

    >>> scaled({"a": 2.0}, [Stage.whole({"a": times}, 2.1 * times) for times in range(1, 9)])
    {'a': 2.1}
    """
    prices = Prices(0.0, 0.0, dict(parts))
    shares = np.array([prices.packets(whole.occurs) / whole.packets for whole in wholes])
    best = min(FACTORS, key=lambda factor: np.quantile(np.abs(factor * shares - 1), NINE_OF_TEN))
    return {name: float(f"{best * price:.3g}") for name, price in parts.items()}
