"""Judge many drawn networks: `python -m tests.quantisers --draws 20000 --seed 1 --workers 1`.

Findings go to FOLDER/SOURCE-SEED.jsonl, a line a draw; a run goes on behind the last line. Models that are at fault are
kept beside it.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import onnx

from tests.quantisers.draw import draw_quantised
from tests.quantisers.judge import judgement as judgement_of
from tests.quantisers.tool import draw_by_tool
from tests.quantisers.verified import verify_findings

SOURCES = {"forms": draw_quantised, "tool": draw_by_tool}
"""Drawn in all forms that quantisers write; or float networks, quantised by ONNX Runtime's tool."""
KEPT_OF_EACH_KIND = 40
SHOWN_OF_EACH_KIND = 3
LONGEST_SHOWN = 240
SHOWN_REASONS = 30
NUMBERS = re.compile(r"\w*\d\S*")


def judged(source: str, seed: int, every: int, index: int) -> dict[str, Any]:
    """The line of a draw; every so many draws `verify` is asked too, if the import is right."""
    drawn = SOURCES[source](seed, index)
    with tempfile.TemporaryDirectory() as place:
        judgement = judgement_of(drawn, Path(place))
        found = judgement.findings
        if every and index % every == 0 and not any(each.kind in ("wrong", "traceback", "refused") for each in found):
            found += verify_findings(Path(place) / "model.onnx")
    said = {"taken": judgement.taken, "not_taken": judgement.not_taken}
    return {"index": index, "findings": [asdict(each) for each in found], **said}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _judged_all(options: argparse.Namespace, first: int) -> Iterator[dict[str, Any]]:
    todo, one = range(first, options.draws), partial(judged, options.source, options.seed, options.verify_every)
    if options.workers == 1:
        yield from map(one, todo)
        return
    with ProcessPoolExecutor(options.workers) as pool:
        indices = iter(todo)
        while batch := list(islice(indices, 64 * options.workers)):
            yield from pool.map(one, batch, chunksize=8)


def main() -> int:
    """Print how many draws have which kind of finding; returns 1 if any has one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", choices=SOURCES, default="forms")
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/quantisers"))
    parser.add_argument("--verify-every", type=int, default=0, metavar="N", help="ask verify of every Nth draw")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    journal = options.folder / f"{options.source}-{options.seed}.jsonl"
    lines, start = _lines(journal), time.monotonic()
    done = len(lines)
    kinds = Counter(each["kind"] for line in lines for each in line["findings"])
    with journal.open("a") as file:
        for line in _judged_all(options, done):
            print(json.dumps(line), file=file, flush=True)
            lines.append(line)
            for each in line["findings"]:
                kinds[each["kind"]] += 1
                if kinds[each["kind"]] <= KEPT_OF_EACH_KIND:
                    _keep(options, line["index"], each["kind"])
    _print(lines[: options.draws], (len(lines) - done) / max(time.monotonic() - start, 1e-9))
    return int(any(line["findings"] for line in lines))


def _keep(options: argparse.Namespace, index: int, kind: str) -> None:
    model = SOURCES[options.source](options.seed, index).model
    onnx.save(model, options.folder / f"{kind}-{options.source}-{options.seed}-{index}.onnx")


def _print(lines: list[dict[str, Any]], rate: float) -> None:
    """The count of each kind, and the first draws of it."""
    right = sum(not line["findings"] for line in lines)
    print(f"{len(lines)} draws, {rate:.1f} a second: {right} without a finding")
    kinds = Counter(kind for line in lines for kind in {each["kind"] for each in line["findings"]})
    for kind, count in kinds.most_common():
        print(f"{kind}: {count} draws")
        told = ((line["index"], each["told"]) for line in lines for each in line["findings"] if each["kind"] == kind)
        for index, text in islice(told, SHOWN_OF_EACH_KIND):
            print(f"    {index}: {text[:LONGEST_SHOWN]}")
    reasons = Counter(NUMBERS.sub("N", reason) for line in lines for reason in line["not_taken"])
    print(f"{sum(line['taken'] for line in lines)} convs taken; {reasons.total()} not:")
    for reason, count in reasons.most_common(SHOWN_REASONS):
        print(f"    {count} {reason[:LONGEST_SHOWN]}")


if __name__ == "__main__":
    sys.exit(main())
