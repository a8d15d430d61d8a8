"""The names of a chain's arguments, of its caches, and of what kernels hold beside these: made and read here.

    argument    cache
    input       input_cache
    filter1     filter1_cache     of conv 1
                intermediate1     what conv 1 makes and conv 2 reads
    output      output_cache

Beside them a conv has what its kernel needs: `accumulator1`, `taps1`, `split1`, .. Numbers of convs begin at 1.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

INPUT, OUTPUT = "input", "output"
INPUT_CACHE, OUTPUT_CACHE = "input_cache", "output_cache"
STAGED = ("filter", "output")
"""Roles of arguments that TVM stages; the input is staged by an operation of its own."""
SCOPE_MARK = "_global"
"""What TVM puts between the name of a tensor and the scope that it is staged in."""


@dataclass(frozen=True)
class Name:
    """What a name says.

    Attributes:
        role: `input`, `filter`, `intermediate`, `output`, or what a kernel calls it: `accumulator`, `taps`, `bias`, ..
        number: of the conv, from 1; 0 where there is none.
    """

    role: str
    number: int = 0

    @property
    def reader(self) -> int:
        """The number of the conv that reads it."""
        return self.number + 1 if self.role in ("input", "intermediate") else self.number


def read_name(name: str) -> Name:
    """The role and the number in a name, of an argument or of a cache.

    >>> read_name("filter12_cache"), read_name("intermediate3").reader, read_name("input_cache").reader
    (Name(role='filter', number=12), 4, 1)
    """
    found = re.fullmatch(r"([a-z]+)(\d*)(?:_cache)?", name)
    return Name(found[1], int(found[2] or 0)) if found else Name(name)


def conv_name(number: int) -> str:
    """What counts of a conv's work are called by."""
    return f"conv{number}"


def filter_name(number: int) -> str:
    """The argument."""
    return f"filter{number}"


def bias_name(number: int) -> str:
    """The argument."""
    return f"bias{number}"


def numbered(what: str, number: int) -> str:
    """Anything else that a conv has."""
    return f"{what}{number}"


def filter_cache(number: int) -> str:
    """What a filter is staged in."""
    return f"filter{number}_cache"


def intermediate(number: int) -> str:
    """What a conv makes that another one reads."""
    return f"intermediate{number}"


def accumulator(number: int) -> str:
    """The sums of a conv that are not yet what it makes."""
    return f"accumulator{number}"


def source_cache(number: int) -> str:
    """What a conv reads.

    >>> source_cache(1), source_cache(2)
    ('input_cache', 'intermediate1')
    """
    return intermediate(number - 1) if number > 1 else INPUT_CACHE


def target_cache(number: int, convs: int) -> str:
    """What a conv makes, of a chain of so many.

    >>> target_cache(1, 2), target_cache(2, 2)
    ('intermediate1', 'output_cache')
    """
    return OUTPUT_CACHE if number == convs else intermediate(number)


def copied_arguments(convs: int) -> list[str]:
    """The arguments that are copied to caches, or from them.

    >>> copied_arguments(2)
    ['input', 'filter1', 'filter2', 'output']
    """
    return [INPUT, *(filter_name(number) for number in range(1, convs + 1)), OUTPUT]


def convs_of(arguments: Iterable[str]) -> int:
    """How many convs a chain with these arguments has: each has one filter."""
    return sum(read_name(name).role == "filter" for name in arguments)


def cache_of(buffer: str) -> str:
    """The cache that a buffer of TVM's holds.

    `cache_read`, `cache_write` and `set_scope` all add the scope to a name; a staged argument becomes its cache.

    >>> [cache_of(f"{name}_global.vtcm") for name in ("filter1", "output", "output_cache", "intermediate1")]
    ['filter1_cache', 'output_cache', 'output_cache', 'intermediate1']
    """
    stem, scope, _ = buffer.partition(SCOPE_MARK)
    is_argument = scope and not stem.endswith("_cache")
    return f"{stem}_cache" if is_argument and read_name(stem).role in STAGED else stem
