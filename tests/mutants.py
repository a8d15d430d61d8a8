"""Mutation testing by a seed: which small changes of the code does no quick test notice?

The mutants are those that `reports/mutants.csv` lists and the code still has, and newly drawn ones up to `--mutants`.
`python -m tests.mutants trace` runs the quick tests once and keeps the lines of mutated files that each one executes,
and its seconds: build/mutants/traced.jsonl. `python -m tests.mutants run` runs for each mutant the test that the list
names, then some that execute its line, quickest first, until one fails, and writes the list anew; reasons in it stay.
What lives may still fail a slower test, which was not run. Both work on a worktree of the commit at which they began,
and go on where they ended, until build/mutants is removed. `make mutants` installs what they need.
"""

import argparse
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import coverage  # pyright: ignore[reportMissingImports]
import hypothesis
import numpy  # noqa: F401 - what the tests import is loaded once, for all mutants
import onnx  # noqa: F401
import pandas  # noqa: F401
import pytest
import tvm  # noqa: F401
from cosmic_ray.ast import ast_nodes, get_ast  # pyright: ignore[reportMissingImports]
from cosmic_ray.mutating import mutate_code  # pyright: ignore[reportMissingImports]
from cosmic_ray.plugins import get_operator  # pyright: ignore[reportMissingImports]

PLACE = Path("build/mutants").resolve()
TREE, TRACED, COMMIT = PLACE / "tree", PLACE / "traced.jsonl", PLACE / "commit"
JUDGED, LIST = PLACE / "judged.csv", Path("reports/mutants.csv").resolve()
ROOMS = (
    *("spec", "kernel", "analyze", "schedule", "lower", "compute", "tir"),
    *("model", "network", "build", "verify", "run", "search"),
)
TESTS = (
    *(f"hexconv/{room}" for room in ROOMS),  # their doctests
    *(f"tests/{room}" for room in ROOMS if room != "kernel"),
    *("tests/any_chain", "tests/documented"),  # end to end
)
FAMILIES = {
    "arithmetic": (
        4,
        "Add_Sub Sub_Add Mul_Add Mul_FloorDiv FloorDiv_Mul FloorDiv_Sub Div_Mul Mod_FloorDiv Mod_Add LShift_RShift "
        "RShift_LShift Pow_Mul BitAnd_BitOr",
        "ReplaceBinaryOperator_",
    ),
    "bounds": (4, "Lt_LtE LtE_Lt Gt_GtE GtE_Gt Eq_NotEq NotEq_Eq Lt_GtE GtE_Lt", "ReplaceComparisonOperator_"),
    "number": (2, "NumberReplacer", ""),
    "guards": (
        3,
        "ReplaceAndWithOr ReplaceOrWithAnd AddNot ReplaceUnaryOperator_Delete_Not ReplaceUnaryOperator_Delete_USub "
        "ReplaceTrueWithFalse ReplaceFalseWithTrue ZeroIterationForLoop ReplaceContinueWithBreak",
        "",
    ),
}
"""Operators of cosmic-ray, and how often a family is drawn. Unions of types are no arithmetic: BitOr is left out."""
MOVING = re.compile("cop|ring|queue|transfer|guard|edge|bound|clamp|overlap|halo|padd|bands|arena|limit|kept")
"""Files about copies, guards and bounds are drawn twice as often as their length says."""
LONGEST_TEST_SECONDS = 6
TESTS_OF_A_MUTANT = 25
SECONDS_OF_A_MUTANT = 40


@dataclass(frozen=True)
class Mutant:
    """One change: the operator of cosmic-ray, and which of its places in the file."""

    file: str
    line: int
    operator: str
    before: str
    after: str
    occurrence: int

    @property
    def key(self) -> tuple[str, str, str]:
        """By which a mutant is known again when lines have moved."""
        return self.file, self.before, self.after


@dataclass(frozen=True)
class Judged(Mutant):
    """What became of a mutant: killed, late (killed by time) or lived; the tests that were run; the one that failed."""

    verdict: str
    tests: int
    seconds: float
    by: str


@dataclass(frozen=True)
class Listed:
    """A row of the list; `reason` is written by hand: why what lived needs no test."""

    file: str
    line: int
    operator: str
    before: str
    after: str
    verdict: str
    by: str
    reason: str


class Tracer:
    """A plugin of pytest that keeps the lines executed by each test, of some files."""

    def __init__(self, out: Path, files: Iterable[str]) -> None:
        self.out, included = out, [str(TREE / file) for file in files]
        self.failed = False
        self.coverage = coverage.Coverage(data_file=None, include=included, config_file=False)
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.failed, start = False, time.monotonic()
        self.coverage.erase()
        self.coverage.start()
        try:
            return (yield)
        finally:
            self.coverage.stop()
            data = self.coverage.get_data()
            files = {str(Path(file).relative_to(TREE)): file for file in data.measured_files()}
            lines = {name: sorted(data.lines(file) or ()) for name, file in files.items()}
            row = {"test": item.nodeid, "seconds": round(time.monotonic() - start, 2), "lines": lines}
            if not self.failed:
                with self.out.open("a") as kept:
                    print(json.dumps(row), file=kept)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        def too_slow(*_: object) -> None:
            pytest.skip("too slow for mutants")

        signal.signal(signal.SIGALRM, too_slow)
        signal.alarm(LONGEST_TEST_SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= not report.passed


class FirstFailure:
    """A plugin of pytest that keeps which test failed first, and how many were run."""

    def __init__(self) -> None:
        self.by, self.tests = "", 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests += report.when == "call"
        if report.failed and not self.by:
            self.by = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.by:
            self.by = report.nodeid


def _enter_tree() -> None:
    """Import hexconv and its tests from the worktree, in processes that tests start too; draw the same examples."""
    os.chdir(TREE)
    here = Path(__file__).resolve().parents[1]
    sys.path[:] = [str(TREE), *(each for each in sys.path if each and Path(each).resolve() != here)]
    for name in [each for each in sys.modules if each.split(".")[0] in ("hexconv", "tests")]:
        del sys.modules[name]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(TREE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)[1:]])
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", deadline=None, derandomize=True, phases=phases)
    hypothesis.settings.load_profile("mutants")


def _pytest(words: Iterable[str], plugin: object) -> int:
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "-m", "not deep and not browser"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # loaded once, for all

    return int(pytest.main([*options, *words], plugins=[plugin]))


def _apart(work: Any, seconds: float) -> str:
    """What a function returns in a forked process, which ends with all that it started; "" if it is late."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        quiet = os.open(PLACE / "last.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(quiet, stream)
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    until, ended = time.monotonic() + seconds, False
    while not ended and time.monotonic() < until:
        time.sleep(0.05)
        ended = bool(os.waitpid(child, os.WNOHANG)[0])
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return said.read() if ended else ""


def trace(options: argparse.Namespace) -> None:
    """Run the quick tests once, a process a file, and keep which lines of the drawn files each test executes."""
    mutated = sorted({mutant.file for mutant in islice(mutants(options.seed), options.mutants)})
    traced = {row["test"].split("::")[0] for row in _traced()}
    rooms = [[str(each.relative_to(TREE)) for each in _test_files(TREE / test)] for test in options.tests]
    for file in filter(None, chain.from_iterable(zip_longest(*rooms))):
        if file in traced:
            continue
        start = time.monotonic()

        def work(file: str = file) -> str:
            _enter_tree()
            return str(_pytest([file], Tracer(TRACED, mutated)))

        said = _apart(work, options.seconds)
        print(f"{file}: {said or 'time'}, {time.monotonic() - start:.0f} s", flush=True)


def _test_files(test: Path) -> list[Path]:
    return sorted(test.rglob("test_*.py")) if test.parent.name == "tests" else [test]


def _traced() -> list[dict[str, Any]]:
    return [json.loads(line) for line in TRACED.read_text().splitlines()] if TRACED.exists() else []


@cache
def _nodes(file: str) -> tuple[Any, ...]:
    return tuple(ast_nodes(get_ast((TREE / file).read_text())))


@cache
def _sites(file: str, operator: str) -> tuple[tuple[int, int], ...]:
    """All mutants of an operator in a file: which of its places, and its line."""
    positions = get_operator(f"core/{operator}")().mutation_positions
    places = [place for node in _nodes(file) for place in positions(node)]
    return tuple((index, place[0][0]) for index, place in enumerate(places))


def _drawn(seed: int) -> Iterator[Mutant]:
    """Mutants without end: a file by its length, a family by its weight, one of its places evenly."""
    rng = random.Random(seed)
    files = [each for room in ROOMS for each in sorted((TREE / "hexconv" / room).rglob("*.py"))]
    weights = [len(each.read_text().splitlines()) * (1 + bool(MOVING.search(each.name))) for each in files]
    while True:
        file = str(rng.choices(files, weights)[0].relative_to(TREE))
        _, names, prefix = rng.choices(list(FAMILIES.values()), [weight for weight, *_ in FAMILIES.values()])[0]
        sites = [(prefix + name, *site) for name in names.split() for site in _sites(file, prefix + name)]
        if sites:
            operator, occurrence, line = rng.choice(sites)
            yield Mutant(file, line, operator, *_changed(file, operator, occurrence), occurrence)


def mutants(seed: int) -> Iterator[Mutant]:
    """The mutants of the list that the code still has; then those of a seed, without end."""
    seen = set()
    for mutant in chain(filter(None, map(_found, _rows(LIST))), _drawn(seed)):
        if mutant.key not in seen and mutant.after:
            seen.add(mutant.key)
            yield mutant


def _found(row: dict[str, str]) -> Mutant | None:
    """The mutant of a row of the list, at the place nearest to where it was."""
    file, operator, text = row["file"], row["operator"], (row["before"], row["after"])
    sites = _sites(file, operator) if (TREE / file).exists() else ()
    for occurrence, line in sorted(sites, key=lambda site: abs(site[1] - int(row["line"]))):
        if _changed(file, operator, occurrence) == text:
            return Mutant(file, line, operator, *text, occurrence)
    return None


def _rows(table: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(table.open())) if table.exists() else []


def _mutated(file: str, operator: str, occurrence: int) -> str:
    return mutate_code((TREE / file).read_text(), get_operator(f"core/{operator}")(), occurrence) or ""


@cache
def _changed(file: str, operator: str, occurrence: int) -> tuple[str, str]:
    """The lines that a mutant changes, before and after."""
    texts = (TREE / file).read_text(), _mutated(file, operator, occurrence)
    pairs = [each for each in zip(*(text.splitlines() for text in texts), strict=False) if each[0] != each[1]]
    old, new = (" / ".join(pair[side].strip() for pair in pairs) for side in (0, 1))
    return old, new


class Chosen:
    """The test of the list; those that execute a line, quickest first and of many files; else those of its module."""

    def __init__(self) -> None:
        self.of_line: dict[tuple[str, int], list[tuple[float, str]]] = defaultdict(list)
        self.of_file: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self.named = {(row["file"], row["before"], row["after"]): row["by"].split("[")[0] for row in _rows(LIST)}
        for row in _traced():
            for file, lines in row["lines"].items():
                self.of_file[file].append((row["seconds"], row["test"]))
                for line in lines:
                    self.of_line[file, line].append((row["seconds"], row["test"]))

    def of(self, mutant: Mutant) -> list[str]:
        """Names of tests, at most TESTS_OF_A_MUTANT and about SECONDS_OF_A_MUTANT in all."""
        inside = self.of_line[mutant.file, mutant.line]
        rounds: dict[str, int] = defaultdict(int)
        ordered = []
        for seconds, test in sorted(inside or self.of_file[mutant.file]):
            rounds[test.split("::")[0]] += 1
            ordered.append((rounds[test.split("::")[0]], seconds, test))
        named, left = self.named.get(mutant.key, ""), SECONDS_OF_A_MUTANT
        chosen = [named] if _exists(named) else []
        for _, seconds, test in sorted(ordered):
            if seconds <= left and len(chosen) < TESTS_OF_A_MUTANT:
                chosen.append(test)
                left -= seconds
        return chosen


def _exists(test: str) -> bool:
    """Whether the worktree has a test; a name may be that of a file."""
    file, _, name = test.partition("::")
    return bool(test) and (TREE / file).exists() and name.rpartition(".")[2] in (TREE / file).read_text()


def judge(mutant: Mutant, tests: list[str]) -> Judged:
    """Write a mutant into the worktree, run the tests until one fails, and put the file back."""
    path, start = TREE / mutant.file, time.monotonic()
    if not tests:
        return Judged(**asdict(mutant), verdict="lived", tests=0, seconds=0, by="")

    def work() -> str:
        _enter_tree()
        plugin = FirstFailure()
        code = _pytest(["-x", *tests], plugin)
        return json.dumps({"verdict": "killed" if code else "lived", "tests": plugin.tests, "by": plugin.by})

    with _in_place(path, _mutated(mutant.file, mutant.operator, mutant.occurrence)):
        said = _apart(work, 2 * SECONDS_OF_A_MUTANT)
    found = json.loads(said) if said else {"verdict": "late", "tests": 0, "by": ""}
    return Judged(**asdict(mutant), **found, seconds=round(time.monotonic() - start, 1))


@contextmanager
def _in_place(path: Path, text: str) -> Iterator[None]:
    before, kept = path.stat(), path.read_bytes()
    try:
        path.write_text(text)
        yield
    finally:
        path.write_bytes(kept)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def run(options: argparse.Namespace) -> None:
    """Judge mutants, a row each; again those that were not killed, if the list names a test by now."""
    chosen, until = Chosen(), time.monotonic() + options.minutes * 60
    judged = {(row["file"], row["before"], row["after"]): row for row in _rows(JUDGED)}
    drawn = list(islice(mutants(options.seed), options.mutants))
    for index, mutant in enumerate(drawn):
        row = judged.get(mutant.key)
        if row and (row["verdict"] == "killed" or not chosen.named.get(mutant.key)):
            continue
        if time.monotonic() > until:
            break
        found = judged[mutant.key] = asdict(judge(mutant, chosen.of(mutant)))
        place = f"{mutant.file}:{mutant.line}"
        print(index, found["verdict"], f"{found['seconds']} s", place, mutant.after, flush=True)
        _write(JUDGED, Judged, judged.values())
    reasons = {(row["file"], row["before"], row["after"]): row["reason"] for row in _rows(LIST)}
    listed = [judged[mutant.key] | {"reason": reasons.get(mutant.key, "")} for mutant in drawn if mutant.key in judged]
    _write(LIST, Listed, sorted(listed, key=lambda row: (row["file"], int(row["line"]), row["after"])))
    verdicts = [row["verdict"] for row in listed]
    print(", ".join(f"{verdicts.count(each)} {each}" for each in ("killed", "late", "lived")))


def _write(table: Path, kind: type, rows: Iterable[dict[str, Any]]) -> None:
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(kind)], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@contextmanager
def _worktree() -> Iterator[None]:
    """The commit at which a run began, in a folder of its own: the draw depends on the code."""
    PLACE.mkdir(parents=True, exist_ok=True)
    if not COMMIT.exists():
        COMMIT.write_text(
            subprocess.run(["git", "rev-parse", "HEAD"], check=True, text=True, capture_output=True).stdout
        )
    if not TREE.exists():
        commit = COMMIT.read_text().strip()
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(TREE), commit], check=True)
    subprocess.run(["git", "-C", str(TREE), "checkout", "--quiet", "."], check=True)  # a killed run leaves its mutant
    try:
        yield
    finally:
        if os.getpid() == PARENT:
            shutil.rmtree(TREE)
            subprocess.run(["git", "worktree", "prune"], check=True)


PARENT = os.getpid()


def main() -> None:
    """Trace, or run."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    commands = parser.add_subparsers(required=True)
    tracing = commands.add_parser("trace")
    tracing.add_argument("--tests", nargs="+", default=TESTS)
    tracing.add_argument("--seconds", type=float, default=600, help="of a file of tests")
    tracing.set_defaults(does=trace)
    running = commands.add_parser("run")
    running.add_argument("--minutes", type=float, default=600)
    running.set_defaults(does=run)
    for command in (tracing, running):
        command.add_argument("--mutants", type=int, default=200)
        command.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with _worktree():
        options.does(options)


if __name__ == "__main__":
    main()
