"""A quantised network of 110 KB to try all commands on: `residual.onnx`, which `make.py` makes."""

from pathlib import Path

NETWORK = Path(__file__).with_name("residual.onnx")
