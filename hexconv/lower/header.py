"""Write the header of a listing: case, plan, versions, and the tables of caches and allocations."""

from collections.abc import Iterator, Sequence

import tvm

from hexconv.errors import visible
from hexconv.lower.lowered import Lowered
from hexconv.spec import Case
from hexconv.spec.kernel import kernel_words
from hexconv.spec.strips import Strips, strips_of


def header(case: Case, lowered: Lowered, agreement: str) -> Iterator[str]:
    """Yield the header: case, plan, versions, and the tables of caches and allocations."""
    yield f"# hexconv {case.name}: {case.chain.slug}, plan {case.plan.slug}; TVM {tvm.__version__}"
    yield "#"
    yield from (f"#   {visible(line)}".rstrip() for line in case.to_toml().splitlines())
    yield "#"
    yield f"# kernel: {kernel_words(case.kernels)}"
    if strips := strips_of(case.chain, case.settled):
        yield f"# n counts strips of {strips.columns} columns, {strips.count} an image: {_places(strips)}"
    if any(memory.copies > 1 for memory in lowered.allocations):
        yield "# caches of all bands, one a thread; what is allocated in a band is that of its thread"
    elif case.settled.threads > 1:
        yield "# of caches that are allocated in a band, each of its threads has its own"
    yield "# caches (compacted):"
    yield from _table(
        [("cache", "scope", "dtype", "shape", "elements", "bytes")]
        + [
            (c.name, c.scope, c.dtype, "x".join(map(str, c.shape)), str(c.elements), str(c.bytes))
            for c in lowered.caches
        ]
    )
    yield "# allocations (merged):"
    rows = [(a.name, ", ".join(a.holds), str(a.elements), str(a.bytes)) for a in lowered.allocations]
    yield from _table([("allocation", "holds", "elements", "bytes"), *rows])
    yield f"# peak {sum(a.bytes for a in lowered.allocations)} bytes; {agreement}"


def _places(strips: Strips) -> str:
    """Say where the strips of an image begin."""
    if strips.keeps:
        first = strips.first_made(0)
        return f"the first begins at {first}, each other one {strips.columns} left of that before it"
    last = f"the last begins at {strips.first_made(strips.count - 1)}"
    return last if strips.divide else f"{last} and writes from {strips.first_written(strips.count - 1)} on"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as aligned comment lines."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "#   " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
