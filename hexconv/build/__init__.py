"""Builds what goes to a device: for each chain an object, a header, its weights laid out once, and an example in C."""

from hexconv.build.chain import Built
from hexconv.build.library import build
from hexconv.build.load import Loaded, load

__all__ = ["Built", "build", "Loaded", "load"]
