"""Float networks in every form that ONNX Runtime's own tool quantises them in: `python -m tests.networks.quantise`.

    u8s8, s8s8, s16s8    QDQ: activations uint8, int8 or int16, filters int8; signed activations have a zero point of 0
    qoperator            QLinearConv and its like, uint8 with int8 filters
    -tensor, -channel    one scale of a filter, or one a channel

FLOAT/NAME.onnx becomes FOLDER/NAME-FORM.onnx.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from tests.verify.families import Images

ACTIVATIONS = {"u8s8": QuantType.QUInt8, "s8s8": QuantType.QInt8, "s16s8": QuantType.QInt16}
QOPERATOR = "qoperator"
SCALES = {"tensor": False, "channel": True}
FORMS = tuple(f"{types}-{scales}" for types in (*ACTIVATIONS, QOPERATOR) for scales in SCALES)


def options_of(form: str) -> dict[str, Any]:
    """What a form means to the quantiser."""
    types, _, scales = form.partition("-")
    activation = ACTIVATIONS.get(types, QuantType.QUInt8)
    return {
        "quant_format": QuantFormat.QOperator if types == QOPERATOR else QuantFormat.QDQ,
        "per_channel": SCALES[scales],
        "activation_type": activation,
        "weight_type": QuantType.QInt8,
        "extra_options": {} if activation is QuantType.QUInt8 else {"ActivationSymmetric": True},
    }


def quantise(source: Path, folder: Path, forms: list[str]) -> None:
    """Write a network in the forms that the folder doesn't have yet."""
    missing = {form: path for form in forms if not (path := folder / f"{source.stem}-{form}.onnx").exists()}
    if not missing:
        return
    with TemporaryDirectory() as place:
        ready = Path(place) / "ready.onnx"
        quant_pre_process(source, ready, skip_symbolic_shape=True)
        shape = [dim.dim_value for dim in onnx.load(ready).graph.input[0].type.tensor_type.shape.dim]
        for form, path in missing.items():
            quantize_static(ready, path, Images(shape), **options_of(form))
            print(path, path.stat().st_size)


def main() -> None:
    """Quantise all networks of a folder, or some."""
    parser = argparse.ArgumentParser(prog="tests.networks.quantise", description=__doc__)
    parser.add_argument("floats", nargs="+", type=Path, help="float networks")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--forms", nargs="+", default=FORMS, choices=FORMS)
    options = parser.parse_args(sys.argv[1:])
    options.folder.mkdir(parents=True, exist_ok=True)
    for source in options.floats:
        quantise(source, options.folder, options.forms)


if __name__ == "__main__":
    main()
