"""oneDNN's data types (version 3.2) and their sizes."""

from hexconv.layout.onednn.errors import DescriptorError

ITEMSIZE_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "s32": 4, "s8": 1, "u8": 1, "f64": 8}

COMMON_NAMES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int8": "s8",
    "uint8": "u8",
    "int32": "s32",
}
"""The library's name of each type that numpy and TVM name differently."""


def dtype(name: str) -> str:
    """The library's name of a data type, given that or the common one.

    Raises:
        DescriptorError: a type that version 3.2 has no memory of (its `boolean` is one, `s4` and `f8_e5m2`
        came later).

    >>> dtype("float32"), dtype("bf16")
    ('f32', 'bf16')
    """
    own = COMMON_NAMES.get(name, name)
    if own not in ITEMSIZE_BYTES:
        known = ", ".join(ITEMSIZE_BYTES)
        raise DescriptorError("construct a memory descriptor", f"data type {name!r} is none of {known}")
    return own
