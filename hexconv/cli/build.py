"""`hexconv build`: a library in C that computes chains."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.build import Built, build
from hexconv.cli.cases import load_cases, print_json
from hexconv.errors import InputError
from hexconv.lower.hexagon import isas
from hexconv.run.tensors import random_tensors
from hexconv.spec import Target

SHORTEST = 1024
"""Bytes from which on a size is told in KiB."""


def build_(
    *cases: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    target: Target = "hexagon",
    isa: str = "v68",
    seed: int = 0,
    json: bool = False,
) -> int:
    """Write what goes to a device: an object, a C header, weights and an example that checks itself, for each case.

    Nothing of TVM is in it or asked for. `make run` in the folder compiles the examples and runs them.

    Args:
        cases: case files (TOML).
        output: the folder to write.
        target: what the code is for: Hexagon, or this machine.
        isa: the instruction set, of Hexagon.
        seed: of the random weights, and of the input of the example.
        json: print what was written as JSON.
    """
    if isa not in isas():
        raise InputError("--isa", isa, "one of " + ", ".join(reversed(isas())))
    loaded = load_cases(cases, target)
    built = build([(case, random_tensors(case.chain, seed)) for case in loaded], output, target, isa)
    if json:
        print_json(built)
    else:
        for chain in built:
            print(_line(chain))
        print(f"{output}: make run")
    return 0


def _line(chain: Built) -> str:
    """What a chain takes, in a line."""
    sizes = {"weights": chain.weights_bytes, "VTCM": chain.vtcm_bytes, "scratch": chain.scratch_bytes}
    taken = ", ".join(f"{name} {_size(size)}" for name, size in sizes.items())
    return f"{chain.name}.o: {chain.name}_init, {chain.name}_run; {taken}"


def _size(size_bytes: int) -> str:
    """A size to read.

    >>> _size(300), _size(2048)
    ('300 B', '2.0 KiB')
    """
    return f"{size_bytes / SHORTEST:.1f} KiB" if size_bytes >= SHORTEST else f"{size_bytes} B"
