"""oneDNN's data types, and refusals as the library gives them."""

from hexconv.errors import HexconvError, short_line

INVALID = "invalid_arguments"
UNIMPLEMENTED = "unimplemented"


class DescriptorError(HexconvError):
    """A descriptor that the library refuses to make.

    Attributes:
        status: what the C function returns, without its `dnnl_`: `invalid_arguments` or `unimplemented`.

    Args (of the constructor):
        action: what could not be done, in the words of the C++ text: `reshape a memory descriptor`.
        reason: what is wrong, and what would be right.
        status: the same as the attribute.

    What a user gave may be of any length, and a refusal is one line:

    >>> len(str(DescriptorError("construct a memory descriptor", "a." * 2000))) < 500
    True
    """

    def __init__(self, action: str, reason: str, status: str = INVALID) -> None:
        super().__init__(f"onednn: could not {action} ({status}): {short_line(reason)}")
        self.status = status


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
