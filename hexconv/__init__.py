"""From the shapes of a conv2d chain to a proven schedule for Qualcomm Hexagon, on stock Apache TVM."""

__version__ = "0.1.0"
