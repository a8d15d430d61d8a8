"""Lay out all weights of a network once, in one block of bytes, as its chains and operators read them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hexconv.build.chain import Parts
from hexconv.lower.signature import ALIGNMENT_BYTES
from hexconv.network.step import Program


@dataclass(frozen=True)
class Weights:
    """The block of bytes that a network reads and doesn't compute: weights of chains, and constants of operators.

    digest, 32 bytes | zeros up to 128 | weights of a chain | ... | constant | zeros up to a multiple of 128 | ...
    """

    content: bytes
    chains_bytes: tuple[int, ...]
    constants_bytes: Mapping[str, int]
    digest: bytes

    @classmethod
    def of(cls, program: Program, chains: Sequence[Parts]) -> "Weights":
        """Build the block; its digest covers everything that the offsets depend on."""
        shapes = [f"{name} {array.dtype} {array.shape}" for name, array in program.constants.items()]
        known = hashlib.sha256("\n".join(shapes).encode())
        for chain in chains:
            known.update(chain.weights[: hashlib.sha256().digest_size])
        content = bytearray(_padded(known.digest()))
        of_chains, of_constants = [], {}
        for chain in chains:
            of_chains.append(len(content))
            content += _padded(chain.weights)
        for name, array in program.constants.items():
            of_constants[name] = len(content)
            content += _padded(array.tobytes())
        return cls(bytes(content), tuple(of_chains), of_constants, known.digest())


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % ALIGNMENT_BYTES)
