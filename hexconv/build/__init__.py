"""Builds what goes to a device: for each chain an object, a header, its weights laid out once, and an example in C."""

from hexconv.build.built_chain import Built
from hexconv.build.called_library import Loaded, load
from hexconv.build.library import build

__all__ = ["Built", "build", "Loaded", "load"]
