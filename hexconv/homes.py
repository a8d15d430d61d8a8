"""Public names of a package that are imported when they are first used: what is not used is not waited for."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

UNUSED = ("tvm.relax",)
"""Modules that libraries import and hexconv never uses; a quarter of the time that TVM takes to be imported."""


class _WhenUsed(MetaPathFinder):
    """Finds modules that are run when an attribute of theirs is first asked for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in UNUSED else None
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


def defer_unused() -> None:
    """Let modules that hexconv doesn't use be run when they are used; for programs of its own alone."""
    if not any(isinstance(finder, _WhenUsed) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenUsed())


def deferred(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are imported from their modules; each is looked up once.

    A name that is that of its own module can't be deferred: whoever imports the module sets it to the module.

    Args:
        package: the package's `__name__`.
        homes: by module, the names that it has.

    >>> deferred("hexconv.spec", {"hexconv.spec.names": ("conv_name",)})("conv_name")(2)
    'conv2'
    """

    def found(name: str) -> Any:
        home = next((home for home, names in homes.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(package)
        vars(module)[name] = named = getattr(import_module(home), name)
        return named

    return found
