"""Make the names of a chain's arguments, of its caches, and of the further buffers of kernels.

    argument    cache
    input       input_cache
    filter1     filter1_cache     of conv 1
                intermediate1     what conv 1 makes and conv 2 reads
    output      output_cache

A filter whose words scalar loads read has the cache `words1`. A conv's kernel may need more buffers: `accumulator1`,
`split1`, `planes1`, .. Numbers of convs begin at 1. Constants of channels that it copies into VTCM, `offset1` and
`scales1`, have caches, too.

Whoever makes a buffer says what it holds. Names are read in `hexconv.lower.buffers` alone, where TVM leaves no more.
"""

INPUT, OUTPUT = "input", "output"
INPUT_CACHE, OUTPUT_CACHE = "input_cache", "output_cache"


def conv_name(number: int) -> str:
    """Return the name of a conv in counts of its work."""
    return f"conv{number}"


def filter_name(number: int) -> str:
    """Return the name of the argument with a conv's filter."""
    return f"filter{number}"


def bias_name(number: int) -> str:
    """Return the name of the argument with a conv's bias."""
    return f"bias{number}"


def numbered(what: str, number: int) -> str:
    """Return the name of any other buffer of a conv."""
    return f"{what}{number}"


def filter_cache(number: int) -> str:
    """Return the name of the cache that a conv's filter is staged in."""
    return f"filter{number}_cache"


def words_cache(number: int) -> str:
    """Return the name of the cache of a filter whose words scalar loads read; it never lies in VTCM."""
    return numbered("words", number)


def constant_cache(name: str) -> str:
    """Return the name of the cache of an argument with constants of channels.

    >>> constant_cache("offset1")
    'offset1_cache'
    """
    return f"{name}_cache"


def intermediate(number: int) -> str:
    """Return the name of the intermediate that a conv writes and the next one reads."""
    return f"intermediate{number}"


def kept_cache(number: int) -> str:
    """Return the name of the cache that keeps columns of an intermediate for the next strip."""
    return f"kept{number}"


def accumulator(number: int) -> str:
    """Return the name of the buffer of a conv's sums, before the epilogue."""
    return f"accumulator{number}"


def source_cache(number: int) -> str:
    """Return the name of the cache that a conv reads.

    >>> source_cache(1), source_cache(2)
    ('input_cache', 'intermediate1')
    """
    return intermediate(number - 1) if number > 1 else INPUT_CACHE


def target_cache(number: int, convs: int) -> str:
    """Return the name of the cache that conv `number` of `convs` writes.

    >>> target_cache(1, 2), target_cache(2, 2)
    ('intermediate1', 'output_cache')
    """
    return OUTPUT_CACHE if number == convs else intermediate(number)


def copied_arguments(convs: int) -> list[str]:
    """Return the names of the arguments that are copied to caches or from them.

    >>> copied_arguments(2)
    ['input', 'filter1', 'filter2', 'output']
    """
    return [INPUT, *(filter_name(number) for number in range(1, convs + 1)), OUTPUT]


def copied_caches(convs: int) -> list[str]:
    """Return the names of the caches that these arguments are copied to or from, in the same order.

    >>> copied_caches(2)
    ['input_cache', 'filter1_cache', 'filter2_cache', 'output_cache']
    """
    return [INPUT_CACHE, *(filter_cache(number) for number in range(1, convs + 1)), OUTPUT_CACHE]
