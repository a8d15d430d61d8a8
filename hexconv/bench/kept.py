"""Keep tables that grow as benches run: new rows replace the old ones that have the same key."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from hexconv.errors import HexconvError


def named(path: Path) -> tuple[str, str]:
    """Return the network and the form of a file NAME-FORM.onnx.

    >>> named(Path("q/mobilenet_v2-u8s8-channel.onnx"))
    ('mobilenet_v2', 'u8s8-channel')
    """
    network, _, form = path.stem.partition("-")
    return network, form


def keep(path: Path, rows: Sequence[Any], key: tuple[str, ...] = ("network", "form")) -> None:
    """Put rows into a table, sorted; they are dataclasses with the same key."""
    fresh = pd.DataFrame([asdict(each) for each in rows])
    if path.exists():
        table = pd.read_csv(path)
        other = (table[list(key)] != fresh[list(key)].iloc[0]).any(axis=1)
        fresh = pd.concat([table[other], fresh]) if other.any() else fresh
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = fresh.convert_dtypes()
    whole.sort_values(list(key), kind="stable").to_csv(path, index=False)


def keep_all(paths: Sequence[Path], rows: Callable[[Path], Iterable[Any]], table: Path, key: tuple[str, ...]) -> int:
    """Print the rows of files and put each into a table as soon as it is measured; `rows` measures those of a file.

    Returns:
        0 if all rows hold; 1 if one doesn't, or a file can't be measured: a line says why, and the next file follows.
    """
    all_hold = True
    for path in paths:
        try:
            for row in rows(path):
                print(row, flush=True)
                keep(table, [row], key)
                all_hold &= row.holds
        except HexconvError as error:
            print(f"{path}: {error}", file=sys.stderr)
            all_hold = False
    return 0 if all_hold else 1
