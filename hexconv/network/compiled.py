"""A network with its chains compiled and its memory laid out: all that is written, before it is written."""

from dataclasses import dataclass

from hexconv.build.chain import Parts, compiled_chain
from hexconv.network.arena import Arena, arena_of, lives_of
from hexconv.network.step import Program
from hexconv.network.weights import Weights
from hexconv.spec import Target


@dataclass(frozen=True)
class Compiled:
    """A network.

    Attributes:
        program: its steps.
        chains: one for each call of a chain.
        weights: of chains and operators.
        arena: where tensors between steps lie.
    """

    program: Program
    chains: tuple[Parts, ...]
    weights: Weights
    arena: Arena

    @classmethod
    def of(cls, program: Program, name: str, target: Target, isa: str) -> "Compiled":
        """Compile all chains, as `NAME_01`, `NAME_02` and so on.

        Raises:
            Unsupported: what can't be lowered, by name.
            ToolMissing: no zig.
        """
        digits = max(2, len(str(len(program.calls))))
        chains = tuple(
            compiled_chain(call.case, call.weights, f"{name}_{number:0{digits}d}", target, isa)
            for number, call in enumerate(program.calls, 1)
        )
        return cls(program, chains, Weights.of(program, chains), arena_of(lives_of(program)))

    @property
    def vtcm_bytes(self) -> int:
        """The most that a chain takes."""
        return max((chain.built.vtcm_bytes for chain in self.chains), default=0)

    @property
    def scratch_bytes(self) -> int:
        """The arena, and the most that a chain takes besides VTCM."""
        return self.arena.bytes + max((chain.built.scratch_bytes for chain in self.chains), default=0)

    @property
    def library_bytes(self) -> int:
        """Of code and weights."""
        return len(self.weights.content) + sum(len(chain.code) for chain in self.chains)
