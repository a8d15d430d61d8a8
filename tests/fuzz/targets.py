"""What hostile input is given to: each target takes a text, and accepts it or refuses it with one line.

A target is one function of `TARGETS`. A refusal is a `HexconvError` of one printable line, and comes soon, before
anything large is allocated. Whatever else a target raises is a bug.
"""

import contextlib
import io
import re
import resource
import signal
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from hexconv.analyze import needed_work, planned_work, vtcm_fit
from hexconv.analyze.planned import cache_footprints, shared_allocations
from hexconv.cli.app import exit_code
from hexconv.compute.computable import check_supported
from hexconv.errors import HexconvError
from hexconv.layout.catalog import Placement, find
from hexconv.model import MANIFEST, Manifest, import_model, write_network
from hexconv.run.given import bounded, given
from hexconv.spec import Case, Chain, Conv2d
from hexconv.sweep.grid_file import Grid
from hexconv.sweep.journal import requests

LONGEST_LINE = 4000
LONGEST_SECONDS = 10
MOST_BYTES = 8 << 30
"""Of address space: an input that asks for terabytes and gets them is a bug."""
MOST_ROWS = 300
WEIGHTS_CHAIN = Chain(input=(1, 2, 2, 3), dtype="uint8", conv=(Conv2d(out_channels=2, kernel=(2, 2), bias=True),))

Target = Callable[[str], None]


def case(text: str) -> None:
    """A case file, and every closed form of what it asks for."""
    found = Case.parse(text, "fuzz", "fuzz.toml")
    assert Case.parse(found.to_toml(), "fuzz") == found
    check_supported(found.chain)
    planned_work(found.chain, found.plan)
    needed_work(found.chain)
    cache_footprints(found.chain, found.plan)
    shared_allocations(found.chain, found.plan)
    vtcm_fit(found.chain, found.plan)


def grid(text: str) -> None:
    """A grid file, and the rows that it asks for."""
    found = Grid.parse(text, "fuzz.toml")
    if len(found) > MOST_ROWS:
        for table in islice(found.tables(), MOST_ROWS):
            with contextlib.suppress(HexconvError):
                Case.of(table, "fuzz")
        return
    for request in requests(found, 0):
        assert request.case
        assert not set("/\\\0") & set(request.case), "a name that leaves its folder"


def layout(text: str) -> None:
    """A layout: lines of system, name, shape, dtype, index and options, as the command line has them."""
    system, name, shape, dtype, index, chip, strides, *rest = [*text.split("\n"), *[""] * 7][:10]
    start_npu, offset, columns = (_number(word) for word in [*rest, "", "", ""][:3])
    placement = Placement(
        chip=chip or None, start_npu=start_npu, offset_bytes=offset, strides=_numbers(strides), columns=columns
    )
    found = find(system, name, _numbers(shape) or (), dtype, placement)
    found.address(_numbers(index) or ())


def _numbers(words: str) -> tuple[int, ...] | None:
    numbers = [_number(word) for word in words.split(",")]
    return tuple(number for number in numbers if number is not None) or None


def _number(word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None


def command(text: str) -> None:
    """`hexconv layout` with these words on its command line; what it prints is thrown away."""
    system, name, shape, dtype, index, *_ = [*text.split("\n"), *[""] * 5]
    out, err = io.StringIO(), io.StringIO()
    words = ["layout", system, name, "--shape", shape, "--dtype", dtype, "--at", index, "--draw"]
    if system == "compare":  # another command, which writes a table
        return
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = exit_code(words)
    if code == 2:
        assert err.getvalue().count("\n") == 1, f"a refusal of some lines: {err.getvalue()[:500]}"
        raise HexconvError(err.getvalue())
    assert (code, err.getvalue()) == (0, "")


def network(text: str) -> None:
    """What stands beside the cases of an imported model."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / MANIFEST).write_text(text, encoding="utf-8", newline="")
        for entry in Manifest.load(Path(folder)).chain:
            assert re.fullmatch(r"[\w-]+", entry.case), "a name that leaves its folder"


def onnx(text: str) -> None:
    """A model, a byte a character."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in" / "fuzz.onnx"
        path.parent.mkdir()
        path.write_bytes(text.encode("latin-1", "replace"))
        write_network(import_model(path), Path(folder) / "out", weights=True)
        assert {entry.name for entry in Path(folder).iterdir()} == {"in", "out"}


def weights(text: str) -> None:
    """A file of weights and input for a small chain, a byte a character."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.npz"
        path.write_bytes(text.encode("latin-1", "replace"))
        found = given(WEIGHTS_CHAIN, path, path)
        assert found.weights is not None
        bounded(WEIGHTS_CHAIN, found.weights)


TARGETS: dict[str, Target] = {
    "case": case,
    "grid": grid,
    "layout": layout,
    "command": command,
    "network": network,
    "onnx": onnx,
    "weights": weights,
}
SHARES = {"case": 0.3, "grid": 0.25, "layout": 0.2, "command": 0.05, "network": 0.1, "onnx": 0.05, "weights": 0.05}
"""Of all inputs: those that take long get fewer."""


def accepts(target: Target, text: str) -> bool:
    """Whether a target accepts a text, or refuses it as it should, in time."""
    with _in_time():
        return answers(target, text)


def answers(target: Target, text: str) -> bool:
    """Whether a target accepts a text.

    Raises:
        AssertionError: its refusal is no line that a terminal can show.
        Exception: anything else is a bug too.
    """
    try:
        target(text)
    except HexconvError as refusal:
        line = str(refusal)
        assert line.isprintable(), f"a refusal that is no line: {line!r}"
        assert len(line) < LONGEST_LINE, f"a refusal of {len(line)} characters: {line[:200]}"
        return False
    return True


def limit_memory() -> None:
    """From now on this process can't get more than `MOST_BYTES`."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.RLIM_INFINITY))


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    """By the processor's time: nothing here waits, and the machine may be busy."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"no answer in {LONGEST_SECONDS} s of the processor")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
