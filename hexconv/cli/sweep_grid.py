"""`hexconv sweep GRID --out FILE`: every case of a grid, to one table."""

from collections import Counter
from pathlib import Path

from hexconv.cli.cases import print_json
from hexconv.cli.progress import with_progress
from hexconv.sweep.grid import Grid
from hexconv.sweep.rows import GOOD
from hexconv.sweep.survey import Settings, survey


def sweep_grid(grid: Path, out: Path, settings: Settings, json: bool) -> int:
    """Sweep a grid file.

    Args:
        grid: the file.
        out: the table; its journal is beside it.
        settings: how.
        json: print JSON instead of a summary.

    Returns:
        0 if every row holds, or says why there is nothing to hold; 1 if something is wrong with one.
    """
    rows = survey(Grid.load(grid), out, settings, with_progress)
    statuses = Counter(row["status"] for row in rows)
    if json:
        print_json({"file": str(out), "rows": len(rows), "statuses": statuses})
    else:
        print(f"{out}: {len(rows)} rows: " + ", ".join(f"{count} {status}" for status, count in statuses.items()))
    return 1 if any(status not in GOOD for status in statuses) else 0
