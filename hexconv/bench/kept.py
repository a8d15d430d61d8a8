"""Tables of networks that grow: new rows of a network and form replace the old ones."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd


def named(path: Path) -> tuple[str, str]:
    """The network and the form of a file NAME-FORM.onnx.

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
