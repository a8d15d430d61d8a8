"""Where every cache lies in the arena of its plan, and when it is live."""

from collections.abc import Sequence

from rich.table import Table

from hexconv.analyze import Arena

LIVE, DEAD = "█", "·"


def arena_table(arenas: Sequence[tuple[str, Arena]]) -> Table:
    """One row a cache: its bytes, and a mark for each statement of the nest at which it is live."""
    table = Table(title="all caches in one arena")
    for heading in ("case", "name"):
        table.add_column(heading)
    for heading in ("from byte", "to byte", "bytes"):
        table.add_column(heading, justify="right")
    table.add_column("live, by statement")
    for case, arena in arenas:
        statements = 1 + max(placement.lifetime.last for placement in arena.placements)
        for place in arena.placements:
            first, last = place.lifetime.first, place.lifetime.last
            marks = DEAD * first + LIVE * (last + 1 - first) + DEAD * (statements - 1 - last)
            span = (str(place.offset_bytes), str(place.end_bytes), str(place.bytes))
            table.add_row(case, place.name, *span, marks)
        most = f"{arena.live_bytes} live at once"
        table.add_row(case, "arena", "0", str(arena.bytes), str(arena.bytes), most, end_section=True)
    return table
