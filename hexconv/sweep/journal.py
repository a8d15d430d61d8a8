"""The journal of a sweep: a row is written when it is done, under a key of all that its answer depends on.

A row is one line of JSON, written with one call and synced. Whatever ends the program, all rows before are there; a
line that was cut off is dropped when the file is opened again, and its row is done again.
"""

import contextlib
import fcntl
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hexconv.apart import Limits
from hexconv.errors import InputError, NotWritten
from hexconv.run.simulator.made_files import content_key, provenance
from hexconv.spec import Case, Chain, Conv2d, Plan
from hexconv.spec.kernels import KERNELS
from hexconv.sweep.grid_file import Grid, Table, plan_columns

Row = dict[str, Any]
Part = TypeVar("Part")

PLAN_DEFAULTS = plan_columns(Plan())


@dataclass(frozen=True)
class Request:
    """A request for one row.

    Attributes:
        key: a digest of the tables, the target, the seed and the code that answers: equal keys mean equal rows.
        case: a name, the slug of chain and plan; where two cases of a grid share it, with a digest behind.
        digest: the digest of the case alone.
        target: `cache`, `llvm` or `hexagon`.
        seed: the seed of the random tensors.
        known: columns that stand before anything is done: what the case is.
        toml: the case; empty where there is none.
        refusal: why there is none: the combination makes no case.
    """

    key: str
    case: str
    digest: str
    target: str
    seed: int
    known: Row
    toml: str = ""
    refusal: str = ""


def requests(grid: Grid, seed: int) -> list[Request]:
    """Return the requests for the rows of a grid, in its order, none twice."""
    found = {request.key: request for table in grid.tables() for request in _requests(table, grid.targets, seed)}
    digests = {request.digest: request.case for request in found.values()}
    named = Counter(digests.values())
    return [_distinct(request, named[request.case] > 1) for request in found.values()]


def _distinct(request: Request, is_shared: bool) -> Request:
    return replace(request, case=f"{request.case}-{request.digest[:8]}") if is_shared else request


def random_requests(cases: Iterable[Case]) -> list[Request]:
    """Return the requests for drawn cases, each for the target that its kernel runs on."""
    return [_request(case) for case in cases]


def _request(case: Case) -> Request:
    toml, target = case.to_toml(), KERNELS[case.settled.kernel or "plain"].home or "llvm"
    key = content_key(case.name, toml, target, provenance())
    known = {**_of_chain(case.chain, {}), **plan_columns(case.plan)}
    return Request(key, case.name, content_key(toml), target, 0, known, toml)


def _requests(table: Table, targets: tuple[str, ...], seed: int) -> Iterator[Request]:
    """One case under every target."""
    try:
        case = Case.of(table, "case")
        toml, refusal = case.to_toml(), ""
    except InputError as error:
        toml, refusal = "", str(error).removeprefix("case: ")
    chain, plan = _valid(Chain, table["chain"]), _valid(Plan, table["plan"])
    digest = content_key(toml or json.dumps(table, default=str, sort_keys=True))
    slugs = [part.slug if part else f"invalid-{digest[:8]}" for part in (chain, plan)]
    known = {**_of_chain(chain, table["chain"]), **PLAN_DEFAULTS, **plan_columns(plan or table["plan"])}
    for target in targets:
        key = content_key(digest, target, str(seed), provenance())
        yield Request(key, "-".join(dict.fromkeys(slugs)), digest, target, seed, known, toml, refusal)


def _valid(kind: type[Part], table: Table) -> Part | None:
    """Return one part of a case, checked by itself; None where it is not valid."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(table, default=str))
    except (ValidationError, InputError):
        return None


def _of_chain(chain: Chain | None, table: Table) -> Row:
    """Return the columns that state the chain; `convs` is JSON, the fields of each conv as a case file has them."""
    if chain is None:
        convs = json.dumps(table["conv"], default=str)
        return {**_shape(table.get("input")), "dtype": table.get("dtype", "float32"), "convs": convs}
    convs = json.dumps([_conv(conv) for conv in chain.conv])
    dtypes = {"dtype": chain.dtype, "filter_dtype": chain.dtype_of_filters}
    ends = {name: getattr(chain, name) for name in ("zero_point", "input_layout", "output_layout")}
    return {"chain": chain.slug, **_shape(chain.input), **dtypes, **ends, "convs": convs}


def _shape(sizes: Any) -> Row:
    return {"input": "x".join(map(str, sizes)) if isinstance(sizes, (list, tuple)) else str(sizes)}


def _conv(conv: Conv2d) -> Table:
    """Return the fields of a conv that are not at their defaults."""
    stated = {f.name: value for f in fields(conv) if (value := getattr(conv, f.name)) != getattr(_PLAIN, f.name)}
    if "padding" in stated:
        stated["padding"] = list(asdict(conv.padding).values())
    if conv.requantize:
        stated["requantize"] = asdict(conv.requantize)
    if conv.add:
        stated["add"] = {name.rstrip("_"): value for name, value in asdict(conv.add).items()}
    return {"out_channels": conv.out_channels, **stated}


_PLAIN = Conv2d(out_channels=1)


LIMITED = ("overran", "out_of_memory")
"""Statuses that depend on the limits of the row: under other limits the row is done again."""


class Journal:
    """The rows that are there.

    Attributes:
        path: the file.
        rows: the rows by key.
    """

    def __init__(self, path: Path, file: int, limits: Limits) -> None:
        self.path, self._file, self._limits = path, file, asdict(limits)
        self.rows: dict[str, Row] = {}
        self.read()

    @classmethod
    @contextmanager
    def opened(cls, path: Path, limits: Limits, is_fresh: bool = False) -> Iterator["Journal"]:
        """Open or make a journal, for this process alone.

        Args:
            path: the file; its folder is made where it is missing.
            limits: the limits of the rows to come.
            is_fresh: whether to begin again without the rows that are there.

        Raises:
            NotWritten: it can't be opened.
            InputError: another sweep is writing it.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise NotWritten(f"{path}: {error.strerror}; give a path that can be written") from None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise NotWritten(f"{path}: no regular file, which a journal has to be; give another path")
            _lock(file, path)
            if is_fresh:
                os.ftruncate(file, 0)
            yield cls(path, file, limits)
        finally:
            os.close(file)

    def add(self, key: str, row: Row) -> None:
        """Write a row to disk.

        Raises:
            NotWritten: there is no room on the disk; the file is as it was before.
        """
        line = json.dumps({"key": key, "limits": self._limits, "row": row}).encode() + b"\n"
        before = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
            kept = f"its {len(self.rows)} rows are kept; make room, and the same command goes on from there"
            raise NotWritten(f"{self.path}: {error.strerror}; {kept}") from None
        self.rows[key] = row

    def read(self) -> None:
        """Read the rows from the file, which after an interruption alone has them all."""
        self.rows = dict(self._read())

    def _read(self) -> Iterator[tuple[str, Row]]:
        """Return the rows of the file, without rows that other limits ended; a line that was cut off is dropped."""
        with os.fdopen(os.dup(self._file), "rb") as file:
            file.seek(0)
            content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(self._file, whole)
        for line in content[:whole].splitlines():
            record = _record(line)
            if record and (record["row"].get("status") not in LIMITED or record["limits"] == self._limits):
                yield record["key"], record["row"]


def _record(line: bytes) -> dict[str, Any] | None:
    """Parse one line; None where it is no row, as after a loss of power."""
    try:
        record = json.loads(line)
        json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # of surrogates, and of lists that nest as deep as the line is long
        return None
    whole = isinstance(record, dict) and record.keys() >= {"key", "limits", "row"}
    return record if whole and isinstance(record["key"], str) and isinstance(record["row"], dict) else None


def _lock(file: int, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(str(path), "a sweep that is still running", "one sweep at a time for one table") from None
