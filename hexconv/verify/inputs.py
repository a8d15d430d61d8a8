"""The inputs that a network is run on: arrays by name, read from a file or drawn at random."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hexconv.errors import InputError
from hexconv.model.graph import Graph
from hexconv.run.npz import Form, read_arrays
from hexconv.run.runner import Array


def inputs_of(graph: Graph, names: Sequence[str], model: str, given: Path | None, seed: int) -> dict[str, Array]:
    """Read or draw all inputs of a network.

    Args:
        graph: the graph of the model.
        names: the names of its inputs.
        model: the name of its file, for errors.
        given: an `.npz` file with these arrays; without one, floats are drawn from a normal distribution, and integers
            of 8 and 16 bits from all of their values.
        seed: the seed of the values that are drawn.

    Raises:
        InputError: a size is open, the file can't be used, or an input is of a dtype that nothing is drawn for.
    """
    return drawn_inputs({name: _form(graph, name, model) for name in names}, model, given, seed)


def drawn_inputs(forms: Mapping[str, Form], model: str, given: Path | None, seed: int) -> dict[str, Array]:
    """Read or draw inputs of these shapes and dtypes, by name; the other arguments are those of `inputs_of`."""
    if given:
        return read_arrays(given, forms, forms)
    random = np.random.default_rng(seed)
    return {name: _drawn(random, name, form, model) for name, form in forms.items()}


def _form(graph: Graph, name: str, model: str) -> Form:
    found = graph.type_of(name)
    sizes = [size for size in found.shape or () if isinstance(size, int)]
    if found.shape is None or len(sizes) < len(found.shape):
        told = ",".join(map(str, found.shape or ("?",)))
        raise InputError.because(
            f"{model}: the input {name} has open sizes, {told}", f"say them: --shape {name}=1,3,224,224"
        )
    return tuple(sizes), found.dtype


def _drawn(random: np.random.Generator, name: str, form: Form, model: str) -> Array:
    shape, dtype = form
    if dtype.startswith("float"):
        return random.standard_normal(shape).astype(dtype)
    if dtype in ("uint8", "int8", "uint16", "int16"):
        ends = np.iinfo(dtype)
        return random.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    raise InputError.because(
        f"{model}: no values are drawn for the input {name} of {dtype}", "give them: --input FILE.npz"
    )
