"""Write files and folders whole or not at all, and keep temporary files where whoever starts a process can remove them.

What is not finished lies in a hidden folder, `.hexconv-XXXXXXXX`, beside its target or in the system's temporary
folder. It is removed however the work ends, by an exception, Ctrl-C or SIGTERM. SIGKILL alone leaves it; its lock is
free then, and the next run that writes in the same place removes it.
"""

import atexit
import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hexconv.errors import NotWritten

PREFIX = ".hexconv-"
"""What the names of unfinished folders begin with."""
_FILE = "file"

_kept = ExitStack()
atexit.register(_kept.close)
_temporary: list[Path] = []


@contextmanager
def unfinished(place: Path) -> Generator[Path, None, None]:
    """Make a folder in `place` that is removed at the end, and first those that killed processes have left there."""
    _remove_abandoned(place)
    folder, lock = _locked(place)
    remove = _remover(folder)
    atexit.register(remove)  # a second signal may come while the first one's exception unwinds
    try:
        yield folder
    finally:
        remove()
        os.close(lock)
        atexit.unregister(remove)


def _remover(folder: Path) -> Callable[[], None]:
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def _locked(place: Path) -> tuple[Path, int]:
    """Make a folder, and lock it as long as this process lives; no other process inherits the lock."""
    while True:
        folder = place / f"{PREFIX}{secrets.token_hex(4)}"
        folder.mkdir()
        try:
            lock = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # another process has taken it for an abandoned one already
            continue
        with contextlib.suppress(OSError):  # a file system without locks: then nobody removes the folder either
            fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():  # likewise, before it was locked
            return folder, lock
        os.close(lock)


def _remove_abandoned(place: Path) -> None:
    """Remove the unfinished folders of processes that are gone."""
    for folder in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def temporary_folder() -> Path:
    """Return this process's temporary folder, which ends with it; a process that it starts gets a part as TMPDIR."""
    if not _temporary or not _temporary[-1].exists():
        _temporary.append(_kept.enter_context(unfinished(Path(tempfile.gettempdir()))))
    return _temporary[-1]


@contextmanager
def scratch() -> Generator[Path, None, None]:
    """Make a temporary folder and remove it at the end."""
    with tempfile.TemporaryDirectory(dir=temporary_folder()) as folder:
        yield Path(folder)


@contextmanager
def whole_file(path: Path) -> Generator[Path, None, None]:
    """Yield a path to write a file at, which is then renamed; what was at its place stays if anything fails.

    Folders that are missing are made. A pipe or a device, and a file in a folder that can't be written, is written
    where it is.

    Raises:
        NotWritten: the file can't be written.
    """
    with _told(path):
        if _is_written_in_place(path):
            yield path
            return
        target = path.resolve()
        with _folders(target.parent), unfinished(target.parent) as folder:
            made = folder / _FILE
            yield made
            if target.exists():
                made.chmod(target.stat().st_mode & 0o7777)
            made.replace(target)


@contextmanager
def whole_folder(folder: Path) -> Generator[Path, None, None]:
    """Yield a folder to write files into, which then takes the place of `folder`.

    If `folder` is there already, its new files replace those of the same names, and others stay. If no file was
    written, no folder is made.

    Raises:
        NotWritten: a file can't be written, or a folder or a device is where a file has to be.
    """
    is_there = folder.is_dir()
    with _told(folder), _folders(folder if is_there else folder.parent) as place, unfinished(place) as made:
        yield made
        files = sorted(file.relative_to(made) for file in made.rglob("*") if file.is_file())
        if files and not is_there:
            made.rename(folder)
            return
        for file in files:
            if (folder / file).exists() and not (folder / file).is_file():
                raise FileExistsError(0, f"{file} is there, and no file")
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (made / file).replace(folder / file)


def _is_written_in_place(path: Path) -> bool:
    """Whether a file can't be renamed to: a device, a pipe, an open file by its number, or one in a locked folder."""
    if os.path.realpath(path.parent).startswith("/proc/") or str(path) in ("/dev/stdout", "/dev/stderr"):
        return True
    return path.exists() and not (path.is_file() and os.access(path.resolve().parent, os.W_OK))


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole; errors are those of `whole_file`."""
    with whole_file(path) as made:
        made.write_bytes(content)


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, by their names or paths in it; errors are those of `whole_folder`.

    Returns:
        their paths.
    """
    with whole_folder(folder) as made:
        for name, content in contents.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(content)
    return [folder / name for name in contents]


@contextmanager
def _folders(place: Path) -> Generator[Path, None, None]:
    """Make the folders that are missing down to `place`; in the end those of them that stayed empty are removed."""
    missing = [folder for folder in (place, *place.parents) if not folder.exists()]
    try:
        place.mkdir(parents=True, exist_ok=True)
        yield place
    finally:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextmanager
def _told(path: Path) -> Generator[None, None, None]:
    """Turn an error of the file system into one that names what was to be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise NotWritten(f"{path}: {reason}; give a path that can be written, on a disk with room") from None
