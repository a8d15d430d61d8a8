"""Write an imported model to files: `network.toml`, a case file per chain, and its weights where they are wanted."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hexconv.errors import InputError
from hexconv.model.imported import Imported, limited
from hexconv.model.manifest import MANIFEST, Manifest


def write_network(imported: Imported, folder: Path, weights: bool = False) -> list[Path]:
    """Write all files into `folder`, which is made if need be; return their paths.

    Files of an earlier import that this one doesn't have are removed: the old manifest names them. Nothing
    else in the folder is touched, and nothing outside of it. If weights can't be read, nothing is written at all.

    Args:
        imported: the imported model.
        folder: where to write.
        weights: whether to write `CASE.npz` too; integer cases then state how far the sums of these weights go.

    Raises:
        InputError: the folder can't be written to, or weights can't be read.
    """
    texts = {f"{case.name}.toml": case.to_toml() for case in imported.cases}
    texts[MANIFEST] = imported.network.to_toml()
    arrays = {f"{case.name}.npz": index for index, case in enumerate(imported.cases)} if weights else {}
    try:
        with _made_aside(folder) as made:
            for name, index in arrays.items():
                case, folded = imported.cases[index], imported.weights(index)
                np.savez(made / name, allow_pickle=False, **folded)
                texts[f"{case.name}.toml"] = limited(case, folded).to_toml()
            for name, text in texts.items():
                (made / name).write_text(text, encoding="utf-8")
            folder.mkdir(exist_ok=True)
            stale = _earlier(folder) - texts.keys() - arrays.keys()
            for name in (*arrays, *texts):
                (made / name).replace(folder / name)
        for name in stale:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        given = error.strerror or "an unwritable place"
        raise InputError(str(folder), given, "a folder that can be written") from None
    return [folder / name for name in (*texts, *arrays)]


@contextmanager
def _made_aside(folder: Path) -> Iterator[Path]:
    """Make a temporary folder on the same file system; complete files are moved out before it is removed."""
    place = folder if folder.is_dir() else folder.parent
    place.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".import-", dir=place) as made:
        yield Path(made)


def _earlier(folder: Path) -> set[str]:
    """The names of the files that an earlier import wrote into the folder."""
    if not (folder / MANIFEST).exists():
        return set()
    cases = [chain.case for chain in Manifest.load(folder).chain]
    return {f"{case}.{ending}" for case in cases for ending in ("toml", "npz")}
