"""The dtypes of chains and of their filters, with the codes and zero points of the integers among them."""

from typing import Literal

Dtype = Literal["float32", "float16", "int8", "uint8", "int16"]
INTEGER_RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1)}
LARGEST_INT32 = 2**31 - 1
ZERO_POINTS = {**INTEGER_RANGE, "int16": (0, 0)}
"""The zero points of an integer dtype; int16 is symmetric, as TFLite has it."""
FILTER_DTYPES: dict[str, tuple[Dtype, ...]] = {
    "int8": ("int8", "uint8"),
    "uint8": ("int8", "uint8"),
    "int16": ("int16", "int8"),
}
"""The dtypes that filters may have, by the dtype of the chain. Filters of float chains have the chain's dtype."""
