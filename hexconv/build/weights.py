"""Lays out the weights of a chain in one block of bytes, once, as its kernel reads them.

    digest, 32 bytes | zeros up to 128 | argument | zeros up to a multiple of 128 | argument | ...

The digest is taken of everything that the layout depends on: the case, and the names, shapes and dtypes of the
arguments. A chain refuses weights with another digest.
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
    """The weights of a chain as one block of bytes.

    Attributes:
        content: the bytes of the block.
        offsets_bytes: where each argument starts in the block.
        digest: the first 32 bytes of the block.
    """

    content: bytes
    offsets_bytes: dict[str, int]
    digest: bytes


def laid_out(case: Case, arguments: Mapping[str, Array]) -> Weights:
    """Put packed arguments together into one block.

    Args:
        case: the case that the weights belong to.
        arguments: filters in the kernel's layout, then biases or what its channels have instead, by name and in the
            kernel's order.
    """
    shapes = [f"{name} {array.dtype} {array.shape}" for name, array in arguments.items()]
    digest = hashlib.sha256("\n".join([case.to_toml(), *shapes]).encode()).digest()
    content, offsets = bytearray(_padded(digest)), {}
    for name, array in arguments.items():
        offsets[name] = len(content)
        content += _padded(np.ascontiguousarray(array).tobytes())
    return Weights(bytes(content), offsets, digest)


def _padded(content: bytes) -> bytes:
    """Append zeros up to a whole vector."""
    return content + bytes(-len(content) % ALIGNMENT_BYTES)
