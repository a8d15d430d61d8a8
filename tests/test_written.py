"""Files and folders are there whole or not at all, however a run ends."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hexconv.apart import Limits
from hexconv.apart.process import Apart
from hexconv.errors import NotWritten
from hexconv.written import PREFIX, scratch, temporary_folder, unfinished, whole_file, whole_folder, write_folder


class Cut(BaseException):
    """An interruption, as Ctrl-C is."""


def _all(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _interrupted(made: Path) -> None:
    (made / "a").write_bytes(b"half")
    raise Cut


def _too_large(made: Path) -> None:
    (made / "a").write_bytes(bytes(1 << 20))


def _too_long_a_name(made: Path) -> None:
    (made / "a").write_bytes(b"whole")
    (made / ("b" * 300)).write_bytes(b"")


def _in_the_way(made: Path) -> None:
    (made / "a").write_bytes(b"new")
    (made / "folder").write_bytes(b"new")


@contextmanager
def _short_disk(largest_bytes: int) -> Iterator[None]:
    """Let this process write no file that is larger: the system then refuses the rest, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FAILURES = [_interrupted, _too_large, _too_long_a_name]


@pytest.mark.parametrize(
    ("write", "is_there"), [*((one, False) for one in FAILURES), *((one, True) for one in (*FAILURES, _in_the_way))]
)
def test_a_folder_that_fails_is_as_it_was(tmp_path: Path, write: Callable[[Path], None], is_there: bool) -> None:
    target = tmp_path / "some" / "where"
    if is_there:
        (target / "folder").mkdir(parents=True)
        (target / "a").write_bytes(b"old")
    before = _all(tmp_path)
    with pytest.raises((Cut, NotWritten)), _short_disk(1000), whole_folder(target) as made:
        write(made)
    assert _all(tmp_path) == before
    assert not is_there or (target / "a").read_bytes() == b"old"


def test_a_folder_is_replaced_file_by_file_and_keeps_its_others(tmp_path: Path) -> None:
    for contents in ({"a": b"1", "b": b"1"}, {"b": b"2", "c": b"2"}):
        assert write_folder(tmp_path / "x" / "y", contents) == [tmp_path / "x" / "y" / name for name in contents]
    assert {path.name: path.read_bytes() for path in (tmp_path / "x" / "y").iterdir()} == {
        "a": b"1",
        "b": b"2",
        "c": b"2",
    }
    assert (tmp_path / "x" / "y").stat().st_mode == (tmp_path / "x").stat().st_mode


def test_folders_that_were_made_for_a_path_that_can_not_be_are_removed(tmp_path: Path) -> None:
    with pytest.raises(NotWritten, match="File name too long; give a path"):
        write_folder(tmp_path / "x" / ("y" * 300) / "z", {"a": b""})
    assert not _all(tmp_path)


def test_a_folder_without_files_is_not_made(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "x" / "y"):
        pass
    assert not _all(tmp_path)


def test_a_file_that_fails_is_as_it_was_and_one_that_does_not_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    with pytest.raises(NotWritten, match="link: File too large; give a path"), _short_disk(9), whole_file(link) as made:
        made.write_bytes(bytes(10))
    assert file.read_bytes() == b"old"
    with whole_file(link) as made:
        made.write_bytes(b"new")
    assert (file.read_bytes(), file.stat().st_mode & 0o777, link.is_symlink()) == (b"new", 0o640, True)
    assert _all(tmp_path) == {"file", "link"}


def test_standard_output_and_pipes_are_written_as_they_are(tmp_path: Path) -> None:
    program = "from hexconv.written import write_file; from pathlib import Path; import sys\n"
    program += "for path in sys.argv[1:]: write_file(Path(path), b'out')"
    for named in ("/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
        with (tmp_path / "kept").open("w+b") as kept:
            subprocess.run([sys.executable, "-c", program, named], stdout=kept, check=True)
            kept.seek(0)
            assert kept.read() == b"out"
    assert _all(tmp_path) == {"kept"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_temporary_files_of_a_killed_process_are_removed_by_the_next_one(tmp_path: Path, number: int) -> None:
    """Those of a process that lives stay. A process that is not killed hard removes its own."""
    program = """
import signal, time
from hexconv.cli.app import app, main
from hexconv.written import scratch, unfinished
from pathlib import Path
def wait():
    with scratch() as folder, unfinished(Path.cwd()):
        (folder / "kernel.o").touch()
        print("there", flush=True)
        time.sleep(60)
app.command(wait)
signal.signal(signal.SIGINT, signal.default_int_handler)
main(["wait"])
"""
    settings = {"cwd": tmp_path, "env": {**os.environ, "TMPDIR": str(tmp_path)}, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, **settings) as process:
        assert process.stdout
        assert process.stdout.readline() == "there\n"
        held = _all(tmp_path)
        with unfinished(tmp_path):
            assert _all(tmp_path) >= held
        process.send_signal(number)
        process.wait()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert bool(_all(tmp_path)) == (number == signal.SIGKILL)
    with unfinished(tmp_path):
        pass
    assert not _all(tmp_path)


def test_a_temporary_folder_that_somebody_removed_is_made_again(tmp_path: Path) -> None:
    temporary_folder().rename(tmp_path / "moved")
    with scratch() as folder:
        assert folder.parent == temporary_folder()
        assert temporary_folder().name.startswith(PREFIX)


def waiting(task: dict[str, Any]) -> dict[str, Any]:
    """Work that begins a temporary file, says so, and never ends."""
    with scratch() as folder:
        (folder / "kernel.o").touch()
        Path(task["begun"]).touch()
        time.sleep(60)
    return {}


def test_a_process_that_is_killed_leaves_no_temporary_file(tmp_path: Path) -> None:
    before = _all(temporary_folder())
    apart = Apart("tests.test_written:waiting", Limits(seconds=1, memory_bytes=1 << 33))
    assert apart.do({"begun": str(tmp_path / "begun")}).how == "overran"
    assert (tmp_path / "begun").exists()
    assert _all(temporary_folder()) == before
    apart.close()


def test_a_process_that_nobody_ends_ends_with_its_parent() -> None:
    """And is waited for: Python would warn of a process that still runs."""
    program = """
from hexconv.apart import Limits
from hexconv.apart.process import Apart
kept = [Apart("builtins:dict", Limits(60, 1 << 33))]
print(kept[0].do({"a": 1}).answer)
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{'a': 1}\n", "")


CASE = "[chain]\ninput = [1, 8, 8, 4]\n[[chain.conv]]\nout_channels = 2\n[plan]\n"


@pytest.mark.parametrize(("blocks", "code"), [(4, 2), (10_000, 0)])
def test_an_object_that_may_not_be_so_large_is_an_error_and_no_end_of_llvm(
    blocks: int, code: int, tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text(CASE)
    command = f"ulimit -f {blocks}; exec {sys.executable} -m hexconv build a.toml -o lib --target llvm"
    found = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == code
    assert found.stderr == ("hexconv: this machine: File too large; mend that, and try again\n" if code else "")
    assert {path.name for path in tmp_path.iterdir()} == {"a.toml", *(() if code else ("lib",))}
