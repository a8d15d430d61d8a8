"""Lays out the weights of a chain in one block of bytes, once, as its kernel reads them.

    digest, 32 bytes | zeros up to 128 | argument | zeros up to a multiple of 128 | argument | ...

The digest is taken of everything that the layout depends on: the case, and the names, shapes and dtypes of the
arguments. A chain refuses weights with another digest.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hexconv.lower.signature import ALIGNMENT_BYTES
from hexconv.run.tensors import Array
from hexconv.spec import Case


@dataclass(frozen=True)
class Weights:
    """The weights of a chain, or of a network, as one block of bytes.

    Attributes:
        content: the bytes of the block.
        offsets_bytes: where each part starts in the block, by its name.
        digest: the first 32 bytes of the block.
    """

    content: bytes
    offsets_bytes: dict[str, int]
    digest: bytes

    @classmethod
    def of(cls, digest: bytes, parts: Iterable[tuple[str, bytes]]) -> "Weights":
        """Put named parts one after the other behind a digest, each at a whole vector."""
        content, offsets = bytearray(_padded(digest)), dict[str, int]()
        for name, part in parts:
            offsets[name] = len(content)
            content += _padded(part)
        return cls(bytes(content), offsets, digest)


def laid_out(case: Case, arguments: Mapping[str, Array]) -> Weights:
    """Put packed arguments together into one block.

    Args:
        case: the case that the weights belong to.
        arguments: filters in the kernel's layout, then biases or what its channels have instead, by name and in the
            kernel's order.
    """
    shapes = [f"{name} {array.dtype} {array.shape}" for name, array in arguments.items()]
    digest = hashlib.sha256("\n".join([case.to_toml(), *shapes]).encode(errors="backslashreplace")).digest()
    return Weights.of(digest, ((name, array.tobytes()) for name, array in arguments.items()))


def _padded(content: bytes) -> bytes:
    """Append zeros up to a whole vector."""
    return content + bytes(-len(content) % ALIGNMENT_BYTES)
