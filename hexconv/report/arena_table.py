"""Where every cache lies in the arena of its plan, and when it is live."""

from rich.table import Table

from hexconv.analyze import Arena

LIVE, DEAD = "█", "·"


def arena_table(case: str, arena: Arena) -> Table:
    """One row a cache: its bytes, and a mark for each statement of the nest at which it is live."""
    table = Table(title=f"{case}: all caches in one arena of {arena.bytes} bytes; {arena.live_bytes} live at once")
    table.add_column("name")
    for heading in ("from byte", "to byte", "bytes"):
        table.add_column(heading, justify="right")
    table.add_column("live, by statement")
    statements = 1 + max(placement.lifetime.last for placement in arena.placements)
    for place in arena.placements:
        first, last = place.lifetime.first, place.lifetime.last
        marks = DEAD * first + LIVE * (last + 1 - first) + DEAD * (statements - 1 - last)
        table.add_row(place.name, str(place.offset_bytes), str(place.end_bytes), str(place.bytes), marks)
    return table
