"""Panels of the host kernel: what is fetched is what a cache would fetch, and what is chosen costs the least."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from hexconv.host.panels import CYCLES_PER_BYTE, FIRST_CACHE_BYTES, WORTH, Reads, rows_of_panel

KIB = 1024
READS = st.builds(
    lambda group_bytes, groups, **others: Reads(
        group_bytes=group_bytes, groups=groups, filter_bytes=group_bytes * groups, **others
    ),
    rows=st.integers(1, 20),
    stride=st.integers(1, 3),
    taps=st.integers(1, 3),
    dilation=st.integers(1, 3),
    row_bytes=st.integers(1, 12).map(lambda size: size * KIB),
    group_bytes=st.integers(1, 24).map(lambda size: size * KIB),
    groups=st.integers(1, 6),
)

Chunk = tuple[str, int, int]
"""A KiB of the source or of the filter: which, row or group, number in it."""


def chunks(reads: Reads, rows: int) -> Iterator[Chunk]:
    """What a panel reads, in the kernel's order: each tile its piece of each line, and the filter of its group."""
    for group in range(reads.groups):
        for row in range(rows):
            for tile in range(reads.row_bytes // KIB):
                for tap in range(reads.taps):
                    yield "source", row * reads.stride + tap * reads.dilation, tile
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


@given(READS, st.integers(1, 6))
def test_what_stays_is_fetched_once(reads: Reads, rows: int) -> None:
    once = reads.source_bytes(rows) + reads.filter_bytes
    if reads.groups > 1 and reads.fetched_bytes(rows) == once:
        assert once == fetched_by_a_cache(reads, rows)


@given(READS, st.integers(1, 12))
def test_what_does_not_stay_is_fetched_for_each_group(reads: Reads, rows: int) -> None:
    reads = replace(reads, taps=1)  # no line is read by two rows
    a_tile_stays = reads.group_bytes < FIRST_CACHE_BYTES // 2
    if a_tile_stays and reads.source_bytes(rows) + reads.group_bytes > FIRST_CACHE_BYTES:
        assert reads.fetched_bytes(rows) == fetched_by_a_cache(reads, rows)


@given(READS, st.integers(1, 60))
@example(Reads(20, 1, 2, 3, row_bytes=1, group_bytes=1, filter_bytes=1, groups=1), 10)
def test_source_bytes_are_those_of_the_lines_that_are_read(reads: Reads, rows: int) -> None:
    lines = {row * reads.stride + tap * reads.dilation for row in range(rows) for tap in range(reads.taps)}
    assert reads.source_bytes(rows) == len(lines) * reads.row_bytes


def test_a_stripe_of_many_rows_is_cut_at_once() -> None:
    tall = Reads(20_000, 1, 7, 2, row_bytes=4, group_bytes=196, filter_bytes=3136, groups=16)
    assert 1 <= rows_of_panel(tall, float) <= tall.rows


@given(READS)
def test_the_panels_of_a_stripe_have_all_its_rows(reads: Reads) -> None:
    for rows in range(1, reads.rows + 1):
        panels = reads.panels(rows)
        assert sum(count * part for count, part in panels) == reads.rows
        assert all(0 < part <= rows for _, part in panels)


@given(READS, st.lists(st.floats(0, 1e6), min_size=21, max_size=21))
def test_no_other_rows_cost_less(reads: Reads, cycles: list[float]) -> None:
    def cost(rows: int) -> float:
        parts = [min(rows, reads.rows - first) for first in range(0, reads.rows, rows)]
        return sum(cycles[part] + reads.fetched_bytes(part) * CYCLES_PER_BYTE for part in parts)

    chosen = rows_of_panel(reads, lambda rows: cycles[rows])
    best = min(map(cost, range(1, reads.rows + 1)))
    assert 1 <= chosen <= reads.rows
    assert cost(chosen) <= best * (1 + 1e-9) or (chosen == reads.rows and best > WORTH * cost(chosen) * (1 - 1e-9))


@given(READS)
def test_one_group_takes_all_rows(reads: Reads) -> None:
    alone = replace(reads, groups=1, filter_bytes=reads.group_bytes)
    assert rows_of_panel(alone, float) == alone.rows
