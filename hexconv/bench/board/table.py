"""A table with rows of several nets, of which some are made anew."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hexconv.bench.board.nets import NETS


def write_rows(path: Path, nets: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write rows of some nets into a table; rows of other nets stay as they are, and all stand in the nets' order."""
    old = pd.read_csv(path) if path.exists() else pd.DataFrame()
    others = old[~old["net"].isin(nets)] if len(old) else old
    table = pd.concat([others, pd.DataFrame(list(rows))])
    place = pd.Series([list(NETS).index(net) for net in table["net"]])
    whole = [name for name in table if str(name).endswith(("bytes", "pieces", "packets"))]
    ordered = table.iloc[place.argsort(kind="stable").to_numpy()].astype(dict.fromkeys(whole, "Int64"))
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered.to_csv(path, index=False)
