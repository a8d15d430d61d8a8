"""A sweep of a grid in a process of its own that tests can kill, with rows of a test's choice; no TVM in it."""

import json
import resource
import signal
import sys
from collections import Counter
from pathlib import Path

from hexconv.apart import Limits
from hexconv.errors import HexconvError
from hexconv.sweep.grid_file import Grid
from hexconv.sweep.journal import requests
from hexconv.sweep.survey import GOOD, Settings, survey


def main(grid: str, out: str, job: str, scheduler: str | None = None, largest_file_bytes: int | None = None) -> int:
    if largest_file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file_bytes, resource.RLIM_INFINITY))
    limits = Limits(seconds=5, memory_bytes=600 << 20)
    settings = Settings(limits, workers=2, scheduler=scheduler, job=f"tests.sweep.faults:{job}")
    try:
        rows = survey(
            requests(Grid.load(Path(grid)), settings.seed), Path(out), settings, lambda new, _there, _total: new
        )
    except HexconvError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    statuses = Counter(row["status"] for row in rows)
    print(json.dumps(statuses))
    return 0 if statuses.keys() <= set(GOOD) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs tests in the background ignores it
    sys.exit(main(**json.loads(sys.argv[1])))
