"""Public names of packages are what they are called, whichever module was imported first."""

import pkgutil
import subprocess
import sys

import hexconv

PACKAGES = [each.name for each in pkgutil.iter_modules(hexconv.__path__, "hexconv.") if each.ispkg]


def test_no_public_name_is_a_module_once_all_modules_are_imported() -> None:
    asked = f"""
import importlib, pkgutil, types
for package in {PACKAGES!r}:
    home = importlib.import_module(package)
    for each in pkgutil.iter_modules(home.__path__, package + "."):
        if not each.ispkg and not each.name.endswith("__main__"):
            importlib.import_module(each.name)
    for name in getattr(home, "__all__", ()):
        assert not isinstance(getattr(home, name), types.ModuleType), (package, name)
        print(package, name)
"""
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) > 100


def test_modules_that_are_not_used_are_run_when_they_are_used() -> None:
    """In a process apart: here TVM may be imported already."""
    program = """
import sys
from hexconv.homes import defer_unused
defer_unused()
import tvm
before = len(sys.modules)
unwanted = ("tvm.relax.", "tvm.runtime.disco", "tvm.backend.rocm")
assert not any(name.startswith(unwanted) for name in sys.modules)
assert tvm.runtime.disco is None
assert tvm.relax.Var.__name__ == "Var" and len(sys.modules) > before
"""
    subprocess.run([sys.executable, "-c", program], check=True)
