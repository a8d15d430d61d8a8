"""Networks at full size, quantised by ONNX Runtime's own tool: `python -m tests.verify.full_size FOLDER [NAME..]`.

Each is NAME.onnx, or with `--forms` NAME-FORM.onnx in these forms. With `--codes` stands NAME-codes.onnx or
NAME-FORM-codes.onnx beside it: the same network, whose input and output are codes of 8 bits instead of floats.

The classifiers of `tests.verify.classifiers`; for 128x128 FSRCNN (Dong et al. 2016), a U-Net of four levels with 32
channels (Ronneberger et al. 2015) and an EDSR of four blocks (Lim et al. 2017). Random weights; activations are uint8,
filters int8, one scale a tensor unless the form says otherwise.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnxruntime.quantization import quantize_static

from tests.verify.classifiers import FURTHER, Full, mobilenet_v2, resnet18
from tests.verify.families import FORMS, TYPES, Images


def fsrcnn() -> tuple[Full, str]:
    net = Full("fsrcnn", 1, 128)
    x = net.rectified(net.rectified("image", 56, 1, 5, 5), 12, 56, 1, 1)
    for _ in range(4):
        x = net.rectified(x, 12, 12, 3, 3)
    x = net.conv(net.rectified(x, 56, 12, 1, 1), (4, 56, 3, 3))
    return net, net.node("DepthToSpace", [x], blocksize=2, mode="CRD")


def unet() -> tuple[Full, str]:
    net = Full("unet", 3, 128)

    def level(source: str, channels: int, wide: int) -> str:
        return net.rectified(net.rectified(source, wide, channels, 3, 3), wide, wide, 3, 3)

    x, channels, before = level("image", 3, 32), 32, []
    for _ in range(3):
        before.append(x)
        down = net.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
        x, channels = level(down, channels, 2 * channels), 2 * channels
    for beside in reversed(before):
        half = channels // 2
        upward = [x, net.weights(channels, half, 2, 2), net.weights(half)]
        up = net.node("ConvTranspose", upward, kernel_shape=[2, 2], strides=[2, 2])
        x, channels = level(net.node("Concat", [beside, up], axis=1), channels, half), half
    return net, net.conv(x, (2, channels, 1, 1))


def edsr() -> tuple[Full, str]:
    net = Full("edsr", 3, 128)
    x = head = net.conv("image", (32, 3, 3, 3))
    for _ in range(4):
        x = net.node("Add", [x, net.conv(net.rectified(x, 32, 32, 3, 3), (32, 32, 3, 3))])
    x = net.node("Add", [net.conv(x, (32, 32, 3, 3)), head])
    return net, net.node("DepthToSpace", [net.conv(x, (12, 32, 3, 3))], blocksize=2, mode="CRD")


NETWORKS = {network.__name__: network for network in (resnet18, mobilenet_v2, fsrcnn, unet, edsr, *FURTHER)}
"""Without names the first five are written."""


def in_codes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a quantised network without QuantizeLinear of its input, and DequantizeLinear before its output.

    A DepthToSpace of what is dequantised moves codes then.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    nodes, image, result = made.graph.node, made.graph.input[0], made.graph.output[0]
    (first,) = [node for node in nodes if image.name in node.input]
    image.name = first.output[0]
    (last,) = [node for node in nodes if result.name in node.output]
    if last.op_type == "DepthToSpace":
        last, moved = next(node for node in nodes if node.output[0] == last.input[0]), last
        moved.input[0] = last.input[0]
    else:
        result.name = last.input[0]
    if (first.op_type, last.op_type) != ("QuantizeLinear", "DequantizeLinear"):
        raise ValueError(f"{made.graph.name} is in codes, or floats lie at its ends")
    nodes.remove(first)
    nodes.remove(last)
    for port in (image, result):
        port.type.tensor_type.elem_type = onnx.TensorProto.UINT8
    return made


def write(folder: Path, names: Sequence[str], forms: Sequence[str] = (), *, codes: bool = False) -> None:
    """Some networks, each as `NAME.onnx`, or as `NAME-FORM.onnx` in every form; also in codes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or list(NETWORKS)[:5]:
        net, output = NETWORKS[name]()
        model = net.model(output)
        shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
        with TemporaryDirectory() as place:
            onnx.save(model, Path(place) / "float.onnx")
            for form in forms or ["tensor"]:
                path = folder / (f"{name}-{form}.onnx" if forms else f"{name}.onnx")
                quantize_static(Path(place) / "float.onnx", path, Images(shape), **FORMS[form], **TYPES)
                if codes:
                    onnx.save(in_codes(onnx.load(path)), path.with_name(f"{path.stem}-codes.onnx"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.verify.full_size", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *NETWORKS])
    parser.add_argument("--forms", nargs="+", default=(), choices=tuple(FORMS))
    parser.add_argument("--codes", action="store_true")
    options = parser.parse_args(sys.argv[1:])
    write(options.folder, options.names, options.forms, codes=options.codes)
