"""Tensors that a user gives instead of random ones, from `.npz` files of unknown origin, checked before allocation.

The arrays of a file have the names of a run's tensors. The first conv has `filter1` (OIHW, the dtype of the chain's
filters) and `bias1` ([K], the dtype of the chain's sums), and `multiplier1` and `shift1` (int32, [K]) where its
requantisation has one per channel; the next conv has `filter2`, and so on. `input` is NHWC in the chain's dtype.
`hexconv import --weights` writes such files, and so does `hexconv run --save`; the `output` that it adds is not read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from hexconv.errors import InputError, Unsupported
from hexconv.run.array_files import Form, read_arrays
from hexconv.run.fills import Fills, fills_text, tensor_names
from hexconv.run.measurement import Array
from hexconv.run.tensors import Tensors, random_image
from hexconv.spec import Chain
from hexconv.spec.case import with_limits
from hexconv.spec.fields import first_complaint
from hexconv.spec.names import bias_name, filter_name
from hexconv.spec.ranges import sums_refusal
from hexconv.spec.vectors import check_vectors, vector_names

DIGITS = "0123456789"
DRAWN = "random"
"""The source of a tensor that no file gives."""
ALSO_IN_A_FILE = ("output",)
"""Names that a file may have besides the inputs of a run: a file of `--save` has them too."""


@dataclass(frozen=True)
class Given:
    """The tensors that a user gives for a run of a chain; all others are drawn at random.

    Attributes:
        weights: the filters and biases by name: all that the chain has, or none.
        image: the input, NHWC; None where it is drawn.
        weights_from: the file of the weights, or `random`.
        image_from: the file of the input, or `random`.
    """

    weights: dict[str, Array] | None = None
    image: Array | None = None
    weights_from: str = DRAWN
    image_from: str = DRAWN

    def over(self, drawn: Tensors) -> Tensors:
        """Return the tensors of a run: the given ones, and for the rest the drawn ones."""
        image = drawn.image if self.image is None else self.image
        if self.weights is None:
            return replace(drawn, image=image)
        numbers = range(1, len(drawn.filters) + 1)
        filters = tuple(self.weights.get(filter_name(number), drawn.filters[number - 1]) for number in numbers)
        vectors = {name: self.weights[name] for name in drawn.vectors}
        return Tensors(image, filters, tuple(self.weights.get(bias_name(number)) for number in numbers), vectors)

    def whole(self, chain: Chain) -> Tensors:
        """Return the tensors of a run whose weights are all given: as `over` random ones, of which none are drawn."""
        assert self.weights is not None
        biases = tuple(self.weights.get(bias_name(index + 1)) for index in range(len(chain.conv)))
        vectors = {name: self.weights[name] for name in vector_names(chain)}
        image = random_image(chain) if self.image is None else self.image
        return Tensors(image, tuple(filters_of(chain, self.weights)), biases, vectors)

    def fill(self, fills: Fills) -> str:
        """Write in words what the tensors that are not given are filled with.

        >>> import numpy as np
        >>> Given(image=np.zeros(1)).fill(("most", "least", "random")), Given().fill(("most", "most"))
        ('least,random', 'most')
        """
        drawn = fills[0 if self.image is None else 1 : len(fills) if self.weights is None else 1]
        return fills_text(drawn) if drawn else "given"


def given(chain: Chain, weights: Path | None, image: Path | None) -> Given:
    """Read the tensors that a user gives for a chain.

    Args:
        chain: the chain that the tensors are for.
        weights: a file of weights; without one they are drawn.
        image: a file with the input; without one it is drawn.

    Raises:
        InputError: a file can't be read, lacks an array, has an array that the chain doesn't have, has one of another
            shape or dtype, or has values that are no finite numbers.
    """
    forms = _forms(chain)
    known = (*forms, *ALSO_IN_A_FILE)
    of_weights = {name: form for name, form in forms.items() if name != "input"}
    arrays = None if weights is None else read_arrays(weights, of_weights, known)
    if arrays is not None:
        check_vectors(chain, arrays)
    return Given(
        arrays,
        None if image is None else read_arrays(image, {"input": forms["input"]}, known)["input"],
        DRAWN if weights is None else str(weights),
        DRAWN if image is None else str(image),
    )


def _forms(chain: Chain) -> dict[str, Form]:
    """Return the shape and dtype of every tensor that a run reads, by name."""
    names = tensor_names(chain)
    filters = [(chain.filter_shapes[number - 1], chain.dtype_of_filters) for number in chain.filters]
    biases = [((conv.out_channels,), chain.bias_dtype) for conv in chain.conv if conv.bias]
    vectors = {name: ((vector.elements,), vector.dtype) for name, vector in vector_names(chain).items()}
    return {**dict(zip(names, [(tuple(chain.input), chain.dtype), *filters, *biases], strict=True)), **vectors}


def weights_beside(case: Path) -> Path | None:
    """Return the weights file beside a case file, `NAME.npz` beside `NAME.toml`; None where there is none."""
    beside = case.with_suffix(".npz")
    return beside if beside.exists() else None


def bounded(chain: Chain, weights: dict[str, Array] | None) -> Chain:
    """Return the chain with the limits that its weights have (`filter_l1`, `bias_limit`), which bound its sums.

    Raises:
        InputError: a filter or a bias exceeds the limit that its conv states, or exceeds int32.
        Unsupported: sums and bias together can leave int32.
    """
    if weights is None or not chain.is_integer:
        return chain
    filters, biases = filters_of(chain, weights), [weights.get(bias_name(i + 1)) for i in range(len(chain.conv))]
    try:
        limited = with_limits(chain, filters, biases, weights)
    except ValidationError as error:  # pydantic's complaint about a limit that int32 itself can't hold
        raise first_complaint(error).within("the weights' own limits") from None
    if refusal := sums_refusal(limited, "plain"):
        raise Unsupported(refusal)
    return limited


def filters_of(chain: Chain, weights: Mapping[str, Array]) -> list[Array]:
    """Return the filter of each conv out of a run's weights; that of a pool has no elements."""
    shapes = enumerate(chain.filter_shapes, 1)
    return [
        weights[filter_name(number)] if number in chain.filters else np.zeros(shape, chain.dtype_of_filters)
        for number, shape in shapes
    ]


def named_weights(tensors: Tensors) -> dict[str, Array]:
    """Return the weights of a chain by a run's names; the inverse of `Given.over`."""
    filters = {filter_name(number): array for number, array in enumerate(tensors.filters, 1) if array.size}
    biases = {bias_name(number): array for number, array in enumerate(tensors.biases, 1) if array is not None}
    return {**filters, **biases, **tensors.vectors}


def weights_of(weights: Mapping[str, Array], first: int, convs: int) -> dict[str, Array]:
    """Return the weights of some neighbouring convs of a chain, renamed as in a chain of these convs alone.

    >>> sorted(weights_of({"filter1": np.zeros(1), "filter2": np.ones(1), "bias2": np.ones(1)}, 1, 1))
    ['bias1', 'filter1']
    """
    parts = {name: name.rstrip(DIGITS) for name in weights}
    numbers = {name: int(name[len(part) :]) - first for name, part in parts.items()}
    return {f"{parts[name]}{number}": weights[name] for name, number in numbers.items() if 1 <= number <= convs}


def drawn_inputs(forms: Mapping[str, Form], model: str, given: Path | None, seed: int) -> dict[str, Array]:
    """Read or draw the inputs of a network.

    Args:
        forms: the shape and dtype of each input, by name.
        model: the name of the model's file, for errors.
        given: an `.npz` file with these arrays; without one, floats are drawn from a normal distribution, and integers
            of 8 and 16 bits from all of their values.
        seed: the seed of the values that are drawn.

    Raises:
        InputError: the file can't be used, or an input is of a dtype that nothing is drawn for.
    """
    if given:
        return read_arrays(given, forms, forms)
    random = np.random.default_rng(seed)
    return {name: _drawn(random, name, form, model) for name, form in forms.items()}


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
