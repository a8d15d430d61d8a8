"""Draw small networks for the matrix engine, and how each is asked for: threads, VTCM, objective, requantisation.

    image of few channels -> Conv 7x7, stride 2 -> MaxPool -> Conv 3x3 -+-> Conv, depthwise -> Concat -> Gemm
                                                     +-> Conv 1x1 ------+-> Add ^                 <- Clip, Resize

Channels lie about the 32 of a crouton, rows and columns about its 8; a VTCM may be too small for a chain in one piece,
or for the engine. Most programs have every chain on the engine that it serves, whether that pays or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from hexconv.network import Wanted
from hexconv.run.copy_engine import MOMENTS, Copies
from hexconv.search import Question
from hexconv.spec.choices import Engine, Objective
from tests.model.drawn import Drawn
from tests.network.drawn_programs import OPERATORS, Operator, Programs, Value
from tests.quantisers.tensors import Codes, Real

ISA = "v67"
VTCM_KIB = (64, 96, 160, 256, 512, 1024, 4096)
CHANNELS = (1, 2, 3, 3, 4, 5, 8, 16, 31, 32, 33, 64)
OUT_CHANNELS = (*CHANNELS, 24, 32, 48, 64, 65, 96)
KERNELS = (1, 1, 1, 2, 3, 3, 3, 3, 5, 7)
MOST_MACS = 2_000_000
"""Of a conv, which the emulator and numpy take a moment for."""
BETWEEN = (
    *["MaxPool", "Concat", "Add"] * 3,
    *["AveragePool", "GlobalAveragePool", "ConvTranspose", "Gemm", "Mul", "Clip", "Resize", "QuantizeLinear"],
    *["Slice", "Pad", "DepthToSpace", "SpaceToDepth", "Split", "Sigmoid", "HardSwish", "MatMul"],
)
"""What stands between convs in networks, most of it more than once."""


def draw_for_engine(seed: int, index: int) -> Drawn:
    """The model of this index; every one can be drawn alone."""
    return EnginePrograms(np.random.default_rng([seed, index])).drawn()


class EnginePrograms(Programs):
    """A builder of one network, most of which is convs that the engine may serve."""

    FORMS, OPSETS = (*["qdq"] * 6, "qoperator"), (13, 17, 19)
    """Of which none has filters with scales by blocks, which no chain has."""
    CONVS, MOST_STEPS = 0.6, 4

    def start(self) -> Codes:
        return self.conv8(super().start(), self.of(0, 8, 16, 33, 64))

    def behind(self, real: Real) -> Real:
        """Mostly what folds into a conv."""
        ways = [self.identity_of, *[self.relu] * 4, self.clip, self.clip, self.leaky, self.silu, self.hard_swish]
        real = self.normalised(real) if self.chance(0.1) else real
        return self.of(*ways)(real)

    def shape_of_image(self, axes: int) -> tuple[int, ...]:
        return (self.of(1, 1, 1, 1, 2), self.of(*CHANNELS), *(self.upto(24) for _ in range(axes)))

    @property
    def ways(self) -> Sequence[Operator]:
        return [way for least, way in map(OPERATORS.__getitem__, BETWEEN) if least <= self.opset]

    def convs(self, value: Value) -> Value | None:
        """A conv, convs behind one another, one of depth and one of points, a residual block, or convs side by side."""
        if len(value.shape) not in (3, 4):
            return None
        at = self.codes(value)
        blocks = [self.conv8, self.conv8, self.in_a_row, self.residual]
        if self.is_image(value):
            blocks += [self.joined, self.apart, *([self.excited] if self.form != "qoperator" else [])]
        return self.of(*blocks)(at)

    def in_a_row(self, at: Codes) -> Codes:
        """Two or three convs that one chain may have."""
        for _ in range(self.of(2, 2, 3)):
            at = self.conv8(at)
        return at

    def apart(self, at: Codes) -> Codes:
        """A depthwise conv and one of 1x1."""
        return self.conv8(self.conv8(at, -1, is_same=self.chance(0.7)), self.of(8, 32, 40))

    def geometry(
        self, codes: Codes, out: int, is_pointwise: bool, is_same: bool
    ) -> tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]]:
        """As of any network, with more channels, larger kernels and padding that keeps sizes; -1 is depthwise."""
        n, c, *sizes = codes.shape
        groups = c if out == -1 or (not out and self.chance(0.12)) else 2 if not out and self.chance(0.05) else 1
        groups = groups if c % groups == 0 else 1
        out = c if groups == c else out or self.of(*OUT_CHANNELS)
        out = -(-out // groups) * groups
        side = self.of(*KERNELS)
        kernel = [1 if is_pointwise else side if self.chance(0.9) else self.of(*KERNELS) for _ in sizes]
        kernel = [size - 1 + size % 2 for size in kernel] if is_same else kernel
        while np.prod(kernel) * np.prod(codes.shape) * out // groups > MOST_MACS and max(kernel) > 1:
            kernel = [max(size - 2, 1) for size in kernel]
        step = 1 if is_same or is_pointwise else self.of(1, 1, 1, 2, 2, 3)
        stride = [step if self.chance(0.95) else 1 for _ in sizes]
        apart = [self.of(1, 1, 1, 1, 1, 2) if not is_same and max(stride) == 1 else 1 for _ in sizes]
        reach = [(size - 1) * wide + 1 for size, wide in zip(kernel, apart, strict=True)]
        is_padded = is_same or self.chance(0.7)
        before = [size // 2 if is_padded else self.of(0, 0, 0, 1) for size in reach]
        behind = [size // 2 if is_same or self.chance(0.8) else self.of(0, 1) for size in reach]
        before = [
            max(first, size - length - last)
            for first, size, length, last in zip(before, reach, sizes, behind, strict=True)
        ]
        places = zip(sizes, reach, stride, before, behind, strict=True)
        result = [(length + first + last - size) // by + 1 for length, size, by, first, last in places]
        told = {"strides": stride, "dilations": apart, "group": groups, "pads": [*before, *behind]}
        return (out, c // groups, *kernel), {"kernel_shape": kernel, **told}, (n, out, *result)


@dataclass(frozen=True)
class Way:
    """How a program is asked for.

    Attributes:
        wanted: what it is built for.
        is_forced: whether every chain that the engine serves is on it, else those that cost no more there.
        copies: when copies are performed, one way for each call.
    """

    wanted: Wanted
    is_forced: bool
    copies: tuple[Copies, ...]

    @property
    def question(self) -> Question:
        """What is asked of each chain."""
        asked = self.wanted.question
        return replace(asked, plan=replace(asked.plan, kernel="hmx"), weighs=()) if self.is_forced else asked


def draw_way(seed: int, index: int) -> Way:
    """How the program of this index is asked for."""
    random = np.random.default_rng([seed, index, 1])
    objective, engine = random.choice(get_args(Objective)), random.choice(get_args(Engine))
    wanted = Wanted(
        int(random.choice(VTCM_KIB)) << 10,
        "hexagon",
        ISA,
        str(objective),  # pyright: ignore[reportArgumentType]
        threads=int(random.integers(1, 4, endpoint=True)),
        kernel="hmx",
        engine=str(engine),  # pyright: ignore[reportArgumentType]
    )
    moments = ("random", MOMENTS[index % 2])
    return Way(wanted, random.random() < 0.9, tuple(Copies(moment, index) for moment in moments))
