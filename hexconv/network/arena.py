"""The arena: one place for all tensors between the steps of a network, by their lifetimes.

A tensor lives from the step that writes it to the last step that reads it, both included, so no step writes where it
reads. The largest is placed first, each at the lowest place that is free all the while that it lives (TensorFlow
Lite's planner, "greedy by size": Pisarchyk, Lee 2020, "Efficient memory management for deep neural net inference").
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hexconv.network.program_steps import Program
from hexconv.spec.places import ALIGNMENT_BYTES


@dataclass(frozen=True)
class Life:
    """When one tensor lives, and how many bytes it takes.

    Attributes:
        first: the number of the step that writes it.
        last: the number of the last step that reads it.
        bytes: the bytes that it takes, a whole number of vectors.
    """

    first: int
    last: int
    bytes: int

    def meets(self, other: "Life") -> bool:
        """Tell whether both tensors live at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Arena:
    """Where every tensor lies in the arena.

    Attributes:
        offsets_bytes: the offset of each tensor, by the name of its buffer.
        bytes: the size of the whole arena.
        least_bytes: the bytes of all tensors that live at the fullest step: a lower bound of any arena.
    """

    offsets_bytes: Mapping[str, int]
    bytes: int
    least_bytes: int


def lives_of(program: Program) -> dict[str, Life]:
    """When each tensor between steps lives that lies in memory; the caller's tensors and constants are left out."""
    lives: dict[str, Life] = {}
    elsewhere = program.outside | program.constants.keys() | {each.tensor for each in program.residents}
    for at, step in enumerate(program.steps):
        for operand in (step.result, *step.sources):
            if operand.buffer in elsewhere:
                continue
            known = lives.get(operand.buffer)
            size = -(-operand.bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            first, size = (known.first, max(known.bytes, size)) if known else (at, size)
            lives[operand.buffer] = Life(first, at, size)
    return lives


def arena_of(lives: Mapping[str, Life]) -> Arena:
    """Give every tensor its place, the largest tensor first."""
    offsets: dict[str, int] = {}
    for name in sorted(lives, key=lambda name: (-lives[name].bytes, lives[name].first, name)):
        beside = [other for other in offsets if lives[other].meets(lives[name])]
        taken = sorted((offsets[other], offsets[other] + lives[other].bytes) for other in beside)
        offsets[name] = _lowest_free(taken, lives[name].bytes)
    ends = [offsets[name] + life.bytes for name, life in lives.items()]
    steps = {life.first for life in lives.values()}
    fullest = [sum(life.bytes for life in lives.values() if life.first <= step <= life.last) for step in steps]
    return Arena(offsets, max(ends, default=0), max(fullest, default=0))


def _lowest_free(taken: list[tuple[int, int]], size: int) -> int:
    """The lowest offset at which `size` bytes are free between taken stretches, which are sorted by where they begin.

    >>> _lowest_free([(0, 128), (256, 384)], 128), _lowest_free([(0, 128), (256, 384)], 256)
    (128, 384)
    """
    at = 0
    for start, end in taken:
        if at + size <= start:
            return at
        at = max(at, end)
    return at
