"""What the tensors of a run are filled with: random values, or extremes, which bring sums to the ends of their range.

Every tensor has a fill of its own. Fills are listed in the order of the kernel's arguments: `input`, `filter1`, ...,
then the biases that there are, as in `most,least,random`. A single word, as in `most`, stands for all tensors.
"""

from typing import Literal, get_args
from zlib import crc32

import numpy as np

from hexconv.errors import InputError
from hexconv.spec import Chain
from hexconv.spec.names import bias_name, filter_name

Fill = Literal["random", "least", "most", "alternating", "one_hot"]
FILLS: tuple[Fill, ...] = get_args(Fill)
Fills = tuple[Fill, ...]
"""The fills of a run, one for each tensor."""
AT_RANDOM: Fill = "random"

CORNERS: tuple[tuple[Fill, Fill], ...] = (("most", "most"), ("least", "least"), ("most", "least"), ("least", "most"))
"""Fills of the input and the filters that make products largest and smallest, whatever the zero points are."""


def tensor_names(chain: Chain) -> tuple[str, ...]:
    """Return the names of the tensors that a run fills, in the order of the kernel's arguments.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=2)
    >>> tensor_names(Chain(input=(1, 8, 8, 2), conv=(conv, Conv2d(out_channels=2, bias=True))))
    ('input', 'filter1', 'filter2', 'bias2')
    """
    numbers = range(1, len(chain.conv) + 1)
    biases = (bias_name(number) for number, conv in zip(numbers, chain.conv, strict=True) if conv.bias)
    return ("input", *(filter_name(number) for number in numbers), *biases)


def fills_of(chain: Chain, text: str) -> Fills:
    """Read fills as a user writes them, such as `most` or `most,least,random`.

    Raises:
        InputError: a word is unknown, or the number of words is neither one nor that of the tensors.
    """
    names, words = tensor_names(chain), text.split(",")
    if len(words) not in (1, len(names)):
        raise InputError("--fill", f"{len(words)} words", f"one for all, or {len(names)}, for {','.join(names)}")
    known: dict[str, Fill] = {fill: fill for fill in FILLS}
    for word in words:
        if word not in known:
            raise InputError("--fill", word, f"{', '.join(FILLS)}, or one of these for each of {','.join(names)}")
    each = words * len(names) if len(words) == 1 else words
    return tuple(known[word] for word in each)


def fills_text(fills: Fills) -> str:
    """Write fills in the form that `fills_of` reads.

    >>> fills_text(("most", "most")), fills_text(("most", "least"))
    ('most', 'most,least')
    """
    return fills[0] if len(set(fills)) == 1 else ",".join(fills)


def fills_of_run(chain: Chain, number: int, seed: int) -> Fills:
    """Return the fills of run `number` of a case.

    Run 0 is all random. Runs 1 to 4 are the four combinations of extremes. Fills of later runs are drawn from `seed`,
    for each chain anew: over many chains every tensor gets every fill.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2, bias=True),))
    >>> [fills_text(fills_of_run(chain, number, 0)) for number in range(5)]
    ['random', 'most', 'least,least,most', 'most,least,least', 'least,most,least']
    """
    names = tensor_names(chain)
    if number == 0:
        return tuple(AT_RANDOM for _ in names)
    if number <= len(CORNERS):
        return _corner(chain, *CORNERS[number - 1])
    random = np.random.default_rng([seed, number, crc32(chain.slug.encode())])
    return tuple(FILLS[random.integers(len(FILLS))] for _ in names)


def _corner(chain: Chain, source: Fill, filters: Fill) -> Fills:
    """Fill the input and the filters with one extreme each, and every bias with the extreme of its sums' own sign."""
    biases: list[Fill] = []
    values: Fill = source
    for conv in chain.conv:
        values = "most" if values == filters else "least"  # products of like signs are large, and sums saturate
        if conv.bias:
            biases.append(values)
    return (source, *(filters for _ in chain.conv), *biases)
