"""An Add in a conv's epilogue: the conv's result plus an earlier tensor of the chain, as a residual block has it."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError
from hexconv.hashed import hashed_once
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.fields import STRICT, in_one_line
from hexconv.spec.names import INPUT, conv_name
from hexconv.spec.requantize import ZeroPoint

EIGHT_BITS = ("int8", "uint8")
Scale = Annotated[float, Field(ge=1e-37, le=1e30, allow_inf_nan=False)]
"""Of codes, so that any code, and any sum of two, is a normal number in float32."""
Clamped = Literal["none", "relu", "relu6"]


@in_one_line("chain.conv.add")
@hashed_once
@dataclass(frozen=True, kw_only=True, config=STRICT | {"populate_by_name": True})
class Add:
    """What is added to the result of a conv, element by element: an earlier tensor of the same shape.

    Floats are added as they are, then clamped. Codes of 8 bits stand for numbers, and the sum is that of ONNX's
    QLinearAdd, in float32, rounded half to even:

        output = clamp(zero_point + rint(((own - z) * scales[0] + (other - z) * scales[1]) / scales[2]))

    with the zero points of the conv's own codes and of the other tensor. Kernels compute it by an integer form that is
    equal for all pairs of codes (`hexconv.spec.code_sums`).

    Attributes:
        from_: the other tensor, `from` in a case file: `"input"`, or `"conv1"`, the output of the first conv.
        scales: for integers: the scales of the conv's own codes, of the other tensor's, and of the sum's.
        zero_point: for integers: the zero point of the sum.
        clamp: for integers: the least and the most code that the sum may have, as a relu or clip makes it.
        activation: for floats: what follows the sum.
    """

    from_: Annotated[str, Field(alias="from", pattern="^(input|conv[1-9][0-9]?)$")]
    scales: tuple[Scale, Scale, Scale] | None = None
    zero_point: ZeroPoint = 0
    clamp: tuple[int, int] | None = None
    activation: Clamped = "none"

    @property
    def tensor(self) -> int:
        """The number of the other tensor: 0 is the input, 1 the output of the first conv.

        >>> Add(from_="input").tensor, Add(from_="conv3").tensor
        (0, 3)
        """
        return 0 if self.from_ == INPUT else int(self.from_.removeprefix("conv"))

    def behind(self, convs: int) -> "Add":
        """Return the same Add in a chain without the first convs.

        >>> Add(from_="conv3").behind(2).from_, Add(from_="conv3").behind(3).from_
        ('conv1', 'input')
        """
        tensor = self.tensor - convs
        return replace(self, from_=conv_name(tensor) if tensor else INPUT)

    def codes(self, dtype: str) -> tuple[int, int]:
        """Return the least and the most code of the sum."""
        return self.clamp or INTEGER_RANGE[dtype]


def check_add(where: str, add: Add, dtype: str) -> None:
    """Check that an Add states what its dtype wants, and nothing else.

    Args:
        where: its place in its file, `chain.conv[0].add`.
        add: the Add.
        dtype: the dtype of the chain.

    Raises:
        InputError: a field does not go with the dtype, or one is missing.
    """
    if dtype == "int16":
        raise InputError(where, "one in an int16 chain", "none; codes of 8 bits and floats are added")
    if dtype not in EIGHT_BITS:
        for field, default in (("scales", None), ("zero_point", 0), ("clamp", None)):
            if getattr(add, field) != default:
                raise InputError(f"{where}.{field}", f"one in a {dtype} chain", "none; it is for integers")
        return
    if add.scales is None:
        change = "give three: of the conv's own codes, of the other tensor's, of the sum's"
        raise InputError.because(f"{where}.scales is missing", change)
    if add.activation != "none":
        raise InputError(f"{where}.activation", add.activation, "none in an integer chain; say a relu's codes in clamp")
    low, high = INTEGER_RANGE[dtype]
    if not low <= add.zero_point <= high:
        raise InputError(f"{where}.zero_point", str(add.zero_point), f"{low} to {high} in a {dtype} chain")
    if add.clamp and not low <= add.clamp[0] < add.clamp[1] <= high:
        raise InputError(f"{where}.clamp", str(list(add.clamp)), f"two codes of {dtype}, {low} to {high}")
