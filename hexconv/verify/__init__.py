"""A whole network: the program that is built, step by step, its convs against their definitions, and ONNX Runtime."""

from typing import TYPE_CHECKING

from hexconv.homes import deferred

if TYPE_CHECKING:
    from hexconv.verify.network import Asked, verify_network
    from hexconv.verify.verdict import (
        EXIT_CODES,
        ChainVerdict,
        Comparison,
        ConvVerdict,
        NetworkVerdict,
        Outputs,
        OutputVerdict,
        StepVerdict,
    )

_HOMES = {
    "hexconv.verify.network": ("Asked", "verify_network"),
    "hexconv.verify.verdict": (
        "EXIT_CODES",
        "ChainVerdict",
        "Comparison",
        "ConvVerdict",
        "NetworkVerdict",
        "Outputs",
        "OutputVerdict",
        "StepVerdict",
    ),
}

__all__ = [
    "Asked",
    "ChainVerdict",
    "Comparison",
    "ConvVerdict",
    "EXIT_CODES",
    "NetworkVerdict",
    "OutputVerdict",
    "Outputs",
    "StepVerdict",
    "verify_network",
]

__getattr__ = deferred(__name__, _HOMES)
