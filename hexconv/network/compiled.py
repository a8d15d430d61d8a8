"""A network with its chains compiled and its memory laid out, ready to be written to files."""

from dataclasses import dataclass

from hexconv.build.chain import Parts, compiled_chain
from hexconv.network.arena import Arena, arena_of, lives_of
from hexconv.network.step import Program
from hexconv.network.weights import Weights
from hexconv.spec import Target


@dataclass(frozen=True)
class Compiled:
    """A network whose chains are compiled.

    Attributes:
        program: the steps of the network.
        chains: one compiled chain for each call of a chain.
        weights: the weights of chains and operators.
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
        return cls(program, chains, Weights.of(program, chains), arena_of(lives_of(program)))

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
