"""The provenance of a sweep's answers: rows that other code computed do not count as rows of this sweep."""

import hashlib
import importlib.metadata
from functools import cache
from importlib import resources

from hexconv.run.simulator.cache import content_key

ROOMS = ("spec", "layout", "kernel", "compute", "schedule", "lower", "analyze", "run", "sweep")
PACKAGES = ("apache-tvm", "apache-tvm-ffi", "numpy", "ziglang")


@cache
def provenance(rooms: tuple[str, ...] = ROOMS) -> str:
    """Return a digest of the source that rows depend on, and of the versions of the libraries that it calls."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return content_key(*versions, *(_source(room) for room in rooms))


def _source(room: str) -> bytes:
    """Return a digest of all files of a package of hexconv (a room)."""
    digest = hashlib.sha256()
    root = resources.files("hexconv") / room
    with resources.as_file(root) as folder:
        for path in sorted(folder.rglob("*.[pchs]*")):
            if path.suffix in (".py", ".c", ".h", ".s"):
                digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()
