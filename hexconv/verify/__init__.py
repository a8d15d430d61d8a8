"""A whole network: convs against their definitions, runs against numpy, all of it against ONNX Runtime."""

from hexconv.verify.network import Asked, Outputs, on_many_inputs, verify_network
from hexconv.verify.verdict import EXIT_CODES, ChainVerdict, Comparison, ConvVerdict, NetworkVerdict, OutputVerdict

__all__ = [
    "Asked",
    "ChainVerdict",
    "Comparison",
    "ConvVerdict",
    "EXIT_CODES",
    "NetworkVerdict",
    "OutputVerdict",
    "Outputs",
    "on_many_inputs",
    "verify_network",
]
