"""The weights of a chain in one block of bytes, laid out once as its kernel reads them.

    digest, 32 bytes | zeros up to 128 | argument | zeros up to a multiple of 128 | argument | ...

The digest is of what the layout depends on: the case and the names, shapes and dtypes of the arguments. A kernel
refuses weights with another one.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hexconv.lower.signature import ALIGNMENT_BYTES
from hexconv.run.tensors import Array
from hexconv.spec import Case


@dataclass(frozen=True)
class Weights:
    """The block.

    Attributes:
        content: its bytes.
        offsets_bytes: where each argument starts.
        digest: its first 32 bytes.
    """

    content: bytes
    offsets_bytes: dict[str, int]
    digest: bytes


def laid_out(case: Case, arguments: Mapping[str, Array]) -> Weights:
    """Put packed arguments together.

    Args:
        case: that they belong to.
        arguments: by name, as the kernel takes them: filters in the kernel's layout, biases.
    """
    shapes = [f"{name} {array.dtype} {array.shape}" for name, array in arguments.items()]
    digest = hashlib.sha256("\n".join([case.to_toml(), *shapes]).encode()).digest()
    content, offsets = bytearray(_padded(digest)), {}
    for name, array in arguments.items():
        offsets[name] = len(content)
        content += _padded(np.ascontiguousarray(array).tobytes())
    return Weights(bytes(content), offsets, digest)


def _padded(content: bytes) -> bytes:
    """Zeros behind, up to a whole vector."""
    return content + bytes(-len(content) % ALIGNMENT_BYTES)
