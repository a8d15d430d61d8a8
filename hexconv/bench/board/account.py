"""`python -m hexconv.bench.board.account PYTHON`: asks QNN's planner for its account of DDR traffic, `reports/qnn.csv`.

PYTHON is the interpreter of an environment that has onnxruntime-qnn, whose licence allows use for benchmarks and
forbids reverse engineering; hexconv neither needs nor distributes it. It prepares a graph without a device, for each
HTP and each size of VTCM, and its log states the bytes that it reads from and writes to DDR, spills and fills included.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx

from hexconv.bench.board.nets import NETS
from hexconv.bench.board.qdq import qdq_model
from hexconv.bench.board.question import LIMITS_MIB
from hexconv.bench.board.table import write_rows
from hexconv.spec import Chain

PREPARE = Path(__file__).with_name("prepare.py")
ARCHITECTURES = ("v73", "v75")
SECONDS = 600
FIELDS = ("read_total", "write_total", "spill", "fill")
Figures = tuple[int | None, int | None, int | None, int | None]
NO_GRAPH: Figures = (None, None, None, None)
ERROR = re.compile(r":ERROR:(.*)")


@dataclass(frozen=True)
class Account:
    """What QNN's planner says of one chain.

    Attributes:
        net: the network that the chain is part of.
        chain: the chain.
        isa: the Hexagon that the graph is prepared for.
        vtcm_mib: the MiB of VTCM that the planner may take.
        read_bytes: the bytes that are read from DDR; None if the planner gave no graph.
        write_bytes: the bytes that are written to DDR.
        spill_bytes: how many of the written bytes only make room in VTCM.
        fill_bytes: how many of the read bytes are spilled ones that come back.
        said: the planner's reason where it gave no graph.
    """

    net: str
    chain: str
    isa: str
    vtcm_mib: int
    read_bytes: int | None
    write_bytes: int | None
    spill_bytes: int | None
    fill_bytes: int | None
    said: str


def parsed(log: str) -> Figures:
    r"""Return read, written, spilled and filled bytes as a log states them last, None for what it doesn't state.

    >>> parsed("x] spill_bytes=1\ny] fill_bytes=2\nz] write_total_bytes=3\nread_total_bytes=4")
    (4, 3, 1, 2)
    """
    read, written, spilled, filled = (_last(field, log) for field in FIELDS)
    return read, written, spilled, filled


def _last(field: str, log: str) -> int | None:
    found = re.findall(rf"\b{field}_bytes=(\d+)", log)
    return int(found[-1]) if found else None


def accounts(python: Path, names: Sequence[str]) -> Iterator[Account]:
    """Ask for every chain of some nets, on every Hexagon, in every size of VTCM."""
    with tempfile.TemporaryDirectory() as folder:
        for net in names:
            for chain_name, chain in NETS[net].items():
                model = _saved(chain, Path(folder))
                for isa in ARCHITECTURES:
                    for limit in LIMITS_MIB:
                        (read, written, spilled, filled), said = _prepared(python, model, limit, isa)
                        yield Account(net, chain_name, isa, limit, read, written, spilled, filled, said)


def _saved(chain: Chain, folder: Path) -> Path:
    model = folder / "chain.onnx"
    onnx.save(qdq_model(chain), model)
    return model


def _prepared(python: Path, model: Path, limit_mib: int, isa: str) -> tuple[Figures, str]:
    """Prepare a model in a process apart; return the account and, where there is no graph, the reason."""
    command = [str(python), str(PREPARE), str(model), str(limit_mib), isa.removeprefix("v")]
    for left in model.parent.glob("*context*"):
        left.unlink()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return NO_GRAPH, f"no graph after {SECONDS} s"
    if ran.returncode == 0:
        return parsed(ran.stderr), ""
    errors = ERROR.findall(ran.stderr) or ran.stderr.strip().splitlines()[-1:]
    return NO_GRAPH, errors[0].strip() if errors else f"the planner ended with {ran.returncode}"


def main(arguments: Sequence[str]) -> int:
    """Write the table, a row as soon as it is there."""
    parser = argparse.ArgumentParser(prog="hexconv.bench.board.account", description=__doc__)
    parser.add_argument("python", type=Path, help="the interpreter that has onnxruntime-qnn")
    parser.add_argument("--nets", nargs="+", choices=tuple(NETS), default=list(NETS))
    parser.add_argument("--csv", type=Path, default=Path("reports/qnn.csv"), help="the table")
    options = parser.parse_args(arguments)
    found: list[Account] = []
    for account in accounts(options.python, options.nets):
        found.append(account)
        stated = "no graph: " + account.said if account.read_bytes is None else f"reads {account.read_bytes}"
        print(f"{account.net} {account.chain} on {account.isa} in {account.vtcm_mib} MiB: {stated}", flush=True)
        write_rows(options.csv, options.nets, [asdict(each) for each in found])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
