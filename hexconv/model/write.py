"""Write an imported model to files: `network.toml`, a case file per chain, and its weights where they are wanted."""

from pathlib import Path

import numpy as np

from hexconv.model.imported import Imported
from hexconv.model.manifest import MANIFEST, Manifest
from hexconv.written import whole_folder


def write_network(imported: Imported, folder: Path, weights: bool = False) -> list[Path]:
    """Write all files into `folder`, which is made if need be; return their paths.

    Files of an earlier import that this one doesn't have are removed: the old manifest names them. Nothing
    else in the folder is touched, and nothing outside of it. If weights can't be read, nothing is written at all.

    Args:
        imported: the imported model.
        folder: where to write.
        weights: whether to write `CASE.npz` too.

    Raises:
        NotWritten: the folder can't be written to.
        InputError: weights can't be read.
    """
    texts = {f"{case.name}.toml": case.to_toml() for case in imported.cases}
    texts[MANIFEST] = imported.network.to_toml()
    arrays = {f"{case.name}.npz": index for index, case in enumerate(imported.cases)} if weights else {}
    with whole_folder(folder) as made:
        for name, index in arrays.items():
            np.savez(made / name, allow_pickle=False, **imported.weights(index))
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        stale = _earlier(folder) - texts.keys() - arrays.keys()
    for name in stale:
        (folder / name).unlink(missing_ok=True)
    return [folder / name for name in (*texts, *arrays)]


def _earlier(folder: Path) -> set[str]:
    """The names of the files that an earlier import wrote into the folder."""
    if not (folder / MANIFEST).exists():
        return set()
    cases = [chain.case for chain in Manifest.load(folder).chain]
    return {f"{case}.{ending}" for case in cases for ending in ("toml", "npz")}
