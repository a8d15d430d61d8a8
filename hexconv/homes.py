"""Public names of a package that are imported when they are first used: what is not used is not waited for."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


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
