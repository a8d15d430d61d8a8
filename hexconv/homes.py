"""Public names of a package that are imported when they are first used: what is not used is not waited for."""

import os
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
OPTIONAL = ("tvm.runtime.disco",)
"""Modules that libraries do without. TVM's wheel has no library for this one, and the error that says so in C++ takes a
third of the time that TVM takes to be imported: it has a backtrace, for which all symbols of TVM are read."""
NO_BACKENDS = ("TVM_DEVICE_BACKEND_AUTOLOAD", "0")
"""The variable that leaves out what TVM knows of GPUs; CUDA's names end in such an error, too."""


class _WhenUsed(MetaPathFinder):
    """Finds modules that are run when an attribute of theirs is first asked for, and no optional ones."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in OPTIONAL:
            raise ModuleNotFoundError(f"hexconv does without {fullname}", name=fullname)
        spec = PathFinder.find_spec(fullname, path, target) if fullname in UNUSED else None
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


def defer_unused() -> None:
    """Let modules that hexconv doesn't use be run when they are used, or never; for programs of its own alone."""
    os.environ.setdefault(*NO_BACKENDS)
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
