"""Files that are made once and kept, named by what they are made from.

A file appears whole or not at all (it is built beside its place and renamed), so an interrupted build does no harm.
Of processes that ask for one file at a time one builds it, which may take many seconds, and the others wait.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path

from hexconv.errors import ToolMissing
from hexconv.written import PREFIX, unfinished

KEPT_FILES = 1000
SOURCES = (".py", ".c", ".h", ".s", ".j2")
_LOCK = ".lock-"
_SETTLED_SECONDS = 3600  # No younger file is removed: another run may be about to open it.


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/hexconv`, by default `~/.cache/hexconv`."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "hexconv"


def content_key(*parts: bytes | str) -> str:
    """Hash the parts, in this order, to one name.

    >>> content_key("ab", "c") != content_key("a", "bc")
    True
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


ROOMS = ("spec", "layout", "kernel", "compute", "tir", "schedule", "lower", "analyze", "run", "sweep")
PACKAGES = ("apache-tvm", "apache-tvm-ffi", "numpy", "ziglang")


@cache
def provenance(rooms: tuple[str, ...] = ROOMS) -> str:
    """Return a digest of the source that rows depend on, and of the versions of the libraries that it calls."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return content_key(*versions, *(_source(room) for room in rooms))


def other_code(code: str) -> str:
    """Say that this machine has other code: it came late, or the source was edited; nothing if it has the same."""
    is_same = code == provenance()
    return "" if is_same else f"{platform.node()} has other code than what started the sweep; the same command goes on"


def _source(room: str) -> bytes:
    """Return a digest of all files of a package of hexconv (a room)."""
    digest = hashlib.sha256()
    with resources.as_file(resources.files("hexconv") / room) as folder:
        for path in sorted(path for path in folder.rglob("*.*") if path.suffix in SOURCES):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()


def cached(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The file `kind/key` of the cache; `build(path)` writes it when it isn't there yet.

    Raises:
        ToolMissing: the cache folder can't be written.
    """
    folder = cache_folder() / kind
    place = folder / key
    if place.exists():
        return place
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_surplus(folder)
        with _alone(folder / f"{_LOCK}{key}"):
            if not place.exists():
                with unfinished(folder) as made:
                    build(made / key)
                    (made / key).replace(place)
    except OSError as error:
        raise ToolMissing(
            f"the cache folder {folder} can't be written ({error}); set XDG_CACHE_HOME to one that can"
        ) from error
    return place


def is_cached(kind: str, key: str) -> bool:
    """Whether the file `kind/key` of the cache is there."""
    return (cache_folder() / kind / key).exists()


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait until no other process or thread is in here with this lock, a file that the last one removes."""
    with lock.open("w") as held:
        with contextlib.suppress(OSError):  # a file system without locks: at worst a file is built twice
            fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _remove_surplus(folder: Path) -> None:
    """Remove the oldest files beyond the number that is kept."""
    settled = time.time() - _SETTLED_SECONDS
    files = sorted((_modified(path), path) for path in folder.iterdir() if not path.name.startswith(PREFIX))
    for modified, path in files[: max(0, len(files) - KEPT_FILES)]:
        if modified < settled:
            path.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    """Return when a file was written; the present time if another process has just renamed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()
