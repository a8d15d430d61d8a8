"""Panels of the host kernel: what is fetched is what a cache would fetch, and what is chosen costs the least."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hexconv.spec.panels import CYCLES_PER_BYTE, FIRST_CACHE_BYTES, WORTH, Reads, rows_of_panel

KIB = 1024
READS = st.builds(
    Reads,
    rows=st.integers(1, 8),
    stride=st.integers(1, 3),
    reach=st.integers(1, 5),
    row_bytes=st.integers(1, 40).map(lambda size: size * KIB),
    group_bytes=st.integers(1, 40).map(lambda size: size * KIB),
    groups=st.integers(1, 16),
)

Chunk = tuple[str, int, int]
"""A KiB of the source or of the filter: which, row or group, number in it."""


def chunks(reads: Reads, rows: int) -> Iterator[Chunk]:
    """What a panel reads, in order: group by group, row by row."""
    for group in range(reads.groups):
        for row in range(rows):
            for line in range(row * reads.stride, row * reads.stride + reads.reach):
                yield from (("source", line, chunk) for chunk in range(reads.row_bytes // KIB))
            yield from (("filter", group, chunk) for chunk in range(reads.group_bytes // KIB))


def fetched_by_a_cache(reads: Reads, rows: int) -> int:
    """Bytes of what isn't among the last ones read, so many as a cache holds."""
    cache: OrderedDict[Chunk, None] = OrderedDict()
    fetched = 0
    for chunk in chunks(reads, rows):
        fetched += chunk not in cache
        cache[chunk] = None
        cache.move_to_end(chunk)
        if len(cache) > FIRST_CACHE_BYTES // KIB:
            cache.popitem(last=False)
    return fetched * KIB


def lines_read(reads: Reads, rows: int) -> int:
    """Rows of the source that so many rows of the output read."""
    return len({row * reads.stride + line for row in range(rows) for line in range(reads.reach)})


@given(READS, st.integers(1, 8))
def test_what_stays_is_fetched_once(reads: Reads, rows: int) -> None:
    reads = replace(reads, reach=max(reads.reach, reads.stride))  # no row is stepped over
    # the next group's filter arrives while the last one's is still there
    if reads.source_bytes(rows) + 2 * reads.group_bytes <= FIRST_CACHE_BYTES:
        assert reads.fetched_bytes(rows) == fetched_by_a_cache(reads, rows)


@given(READS, st.integers(1, 8))
def test_what_does_not_stay_is_fetched_for_each_group(reads: Reads, rows: int) -> None:
    reads = replace(reads, reach=reads.stride)
    a_row_stays = reads.source_bytes(1) + reads.group_bytes <= FIRST_CACHE_BYTES
    if a_row_stays and reads.source_bytes(rows) + reads.group_bytes > FIRST_CACHE_BYTES:
        assert reads.fetched_bytes(rows) == fetched_by_a_cache(reads, rows)


@given(READS, st.integers(1, 8))
def test_source_bytes_are_those_of_its_rows(reads: Reads, rows: int) -> None:
    reads = replace(reads, reach=max(reads.reach, reads.stride))
    assert reads.source_bytes(rows) == lines_read(reads, rows) * reads.row_bytes


@given(READS, st.lists(st.floats(0, 1e6), min_size=9, max_size=9))
def test_no_other_rows_cost_less(reads: Reads, cycles: list[float]) -> None:
    def cost(rows: int) -> float:
        parts = [min(rows, reads.rows - first) for first in range(0, reads.rows, rows)]
        return sum(cycles[part] + reads.fetched_bytes(part) * CYCLES_PER_BYTE for part in parts)

    chosen = rows_of_panel(reads, lambda rows: cycles[rows])
    best = min(map(cost, range(1, reads.rows + 1)))
    assert 1 <= chosen <= reads.rows
    assert cost(chosen) <= best * (1 + 1e-9) or (chosen == reads.rows and best > WORTH * cost(chosen))


@given(READS)
def test_one_group_takes_all_rows(reads: Reads) -> None:
    alone = replace(reads, groups=1, reach=max(reads.reach, reads.stride))
    assert rows_of_panel(alone, float) == alone.rows
