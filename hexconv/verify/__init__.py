"""A whole network: every chain on its target with the model's weights, all other nodes by ONNX Runtime.

The results are compared with those of ONNX Runtime alone.
"""

from hexconv.verify.difference import Difference
from hexconv.verify.many import Outputs, on_many_inputs
from hexconv.verify.network import Asked, verify_network
from hexconv.verify.verdict import ChainVerdict, ConvVerdict, NetworkVerdict, OutputVerdict

__all__ = [
    "Asked",
    "ChainVerdict",
    "ConvVerdict",
    "Difference",
    "NetworkVerdict",
    "OutputVerdict",
    "Outputs",
    "on_many_inputs",
    "verify_network",
]
