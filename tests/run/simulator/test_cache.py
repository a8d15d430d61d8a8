"""Files made once: whole or not at all, one for each content, for many at once."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import ToolMissing
from hexconv.run.simulator import made_files
from hexconv.run.simulator.made_files import cached, content_key
from hexconv.written import unfinished


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@given(st.lists(st.binary()), st.lists(st.binary()))
def test_other_parts_get_another_key(parts: list[bytes], others: list[bytes]) -> None:
    assert (content_key(*parts) == content_key(*others)) == (parts == others)


def test_a_file_is_built_once(tmp_path: Path) -> None:
    first = cached("things", "key", lambda path: _write(path, b"first"))
    second = cached("things", "key", lambda path: _write(path, b"second"))
    assert first == second == tmp_path / "hexconv" / "things" / "key"
    assert second.read_bytes() == b"first"


def test_an_interrupted_build_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    def interrupted(path: Path) -> None:
        path.write_bytes(b"half of it")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("things", "key", interrupted)
    assert not list((tmp_path / "hexconv" / "things").iterdir())
    assert cached("things", "key", lambda path: _write(path, b"all of it")).read_bytes() == b"all of it"


def test_of_many_that_want_a_file_at_a_time_one_builds_it_and_all_get_it_whole() -> None:
    built: list[Path] = []

    def build(path: Path) -> None:
        built.append(path)
        time.sleep(0.2)  # for the others to come meanwhile
        _write(path, bytes(1 << 20))

    with ThreadPoolExecutor(4) as pool:
        places = list(pool.map(lambda _: cached("things", "large", build), range(16)))
    assert {place.stat().st_size for place in places} == {1 << 20}
    assert len(built) == 1
    assert [entry.name for entry in places[0].parent.iterdir()] == ["large"]


def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    with pytest.raises(ToolMissing, match=r"cache folder .* can't be written .*; set XDG_CACHE_HOME"):
        cached("things", "key", lambda path: _write(path, b""))


def test_the_oldest_files_go_and_unfinished_ones_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(made_files, "KEPT_FILES", 2)
    folder = tmp_path / "hexconv" / "things"
    folder.mkdir(parents=True)
    for age, name in enumerate(["e", "d", "c", "b", "a"]):
        _write(folder / name, b"")
        os.utime(folder / name, (10**9 - age, 10**9 - age))
    with unfinished(folder) as other:
        cached("things", "new", lambda path: _write(path, b""))
        assert {entry.name for entry in folder.iterdir()} == {"e", "d", "new", other.name}


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
