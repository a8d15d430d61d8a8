"""Builds what goes to a device: for each chain an object, a header, its weights laid out once, and an example in C."""

from typing import TYPE_CHECKING

from hexconv.homes import deferred

if TYPE_CHECKING:
    from hexconv.build.built_chain import Built
    from hexconv.build.called_library import Loaded, load
    from hexconv.build.library import build

_HOMES = {
    "hexconv.build.built_chain": ("Built",),
    "hexconv.build.called_library": ("Loaded", "load"),
    "hexconv.build.library": ("build",),
}

__all__ = ["Built", "build", "Loaded", "load"]

__getattr__ = deferred(__name__, _HOMES)
