"""The cases of the tests that the source documents come from, in this project's words.

Apache TVM had them in `tests/python/contrib/test_hexagon/` until 2025: `test_conv2d_conv2d` (a chain of two) and
`test_conv2d_blocked` (one conv), both float32 and without padding, and both wider at first.
"""

from collections.abc import Iterator
from itertools import product

from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, tensor_extents


def case_of(chain: Chain, k_split: int, h_split: int) -> Case | None:
    """A case named by all that it is made of; none if there is nothing to split so far."""
    outputs = tensor_extents(chain)[1:]
    plan = Plan(kernel="plain", k_split=k_split, h_split=h_split)
    has_blocks = h_split <= max(output.row_blocks for output in outputs)
    return Case(f"{chain.slug}-{plan.slug}", chain, plan) if has_blocks else None


def square(size: int, channels: int, *convs: tuple[int, int], padding: int = 0) -> Chain:
    """A chain over a square input; per conv its kernel size and output channels."""
    around = Padding(top=padding, left=padding, bottom=padding, right=padding)
    made = (Conv2d(out_channels=count, kernel=(kernel, kernel), padding=around) for kernel, count in convs)
    return Chain(input=(1, size, size, channels), conv=tuple(made))


def ancestor() -> Iterator[Case | None]:
    """The 16 cases of the chain's test in its last state."""
    for kernel1, kernel2, k_split, h_split in product((1, 3), (1, 3), (1, 2), (1, 2)):
        yield case_of(square(64, 128, (kernel1, 128), (kernel2, 128)), k_split, h_split)


def wide_chains() -> Iterator[Case | None]:
    """Chains over the sizes that the tests had at first."""
    axes = ((8, 56, 64), (64, 128), (0, 1), (1, 3), (1, 3), (1, 2), (1, 2))
    for size, channels, padding, kernel1, kernel2, k_split, h_split in product(*axes):
        chain = square(
            size,
            channels,
            (kernel1, channels),
            (kernel2, channels),
            padding=padding,
        )
        yield case_of(chain, k_split, h_split)


def sibling() -> Iterator[Case | None]:
    """The 8 cases of the single conv's test in its last state."""
    for kernel, k_split, h_split in product((1, 3), (1, 2), (1, 2)):
        yield case_of(square(64, 64, (kernel, 128)), k_split, h_split)


def wide_single() -> Iterator[Case | None]:
    """The single conv's test as it was at first."""
    axes = ((8, 56, 64), (64, 128), (64, 128), (0, 1), (1, 3), (1, 2), (1, 2))
    for size, channels, outputs, padding, kernel, k_split, h_split in product(*axes):
        yield case_of(
            square(size, channels, (kernel, outputs), padding=padding),
            k_split,
            h_split,
        )


def unique(*grids: Iterator[Case | None]) -> list[Case]:
    """The cases of several grids, each once."""
    return list({case.name: case for grid in grids for case in grid if case is not None}.values())
