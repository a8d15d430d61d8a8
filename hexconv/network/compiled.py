"""A network with its chains compiled and its memory laid out, ready to be written to files."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.build.chain import Parts, compiled_chain
from hexconv.build.weights import Weights
from hexconv.network.arena import Arena, arena_of, lives_of
from hexconv.network.step import Program
from hexconv.spec import Target


@dataclass(frozen=True)
class Compiled:
    """A network whose chains are compiled.

    Attributes:
        program: the steps of the network.
        chains: one compiled chain for each call of a chain.
        weights: the weights of chains by their names in C, and the constants of operators by theirs.
        arena: the memory of the tensors between steps.
    """

    program: Program
    chains: tuple[Parts, ...]
    weights: Weights
    arena: Arena

    @classmethod
    def of(cls, program: Program, name: str, target: Target, isa: str) -> "Compiled":
        """Compile all chains, as `NAME_01`, `NAME_02` and so on.

        Raises:
            Unsupported: a chain can't be lowered; it is named.
            ToolMissing: zig is not installed.
        """
        digits = max(2, len(str(len(program.calls))))
        chains = tuple(
            compiled_chain(call.case, call.weights, f"{name}_{number:0{digits}d}", target, isa)
            for number, call in enumerate(program.calls, 1)
        )
        return cls(program, chains, _weights(program, chains), arena_of(lives_of(program)))

    @property
    def vtcm_bytes(self) -> int:
        """The VTCM of the chain that takes the most."""
        return max((chain.built.vtcm_bytes for chain in self.chains), default=0)

    @property
    def scratch_bytes(self) -> int:
        """The bytes of the arena, and of the memory besides VTCM of the chain that takes the most."""
        return self.arena.bytes + max((chain.built.scratch_bytes for chain in self.chains), default=0)

    @property
    def library_bytes(self) -> int:
        """The bytes of all code and weights."""
        return len(self.weights.content) + sum(len(chain.code) for chain in self.chains)


def _weights(program: Program, chains: Sequence[Parts]) -> Weights:
    """Lay out all weights of a network once; the digest covers everything that the offsets depend on."""
    shapes = [f"{name} {array.dtype} {array.shape}" for name, array in program.constants.items()]
    known = hashlib.sha256("\n".join(shapes).encode())
    for chain in chains:
        known.update(chain.weights[: known.digest_size])
    return Weights.of(known.digest(), _read(program, chains))


def _read(program: Program, chains: Sequence[Parts]) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes that a network reads and does not compute, by name: of its chains, then of its operators."""
    for chain in chains:
        yield chain.built.name, chain.weights
    for name, array in program.constants.items():
        yield name, array.tobytes()
