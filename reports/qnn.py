"""`python -m reports.qnn PYTHON`: asks QNN's planner for its account of DDR traffic, `reports/qnn.csv`.

PYTHON is the interpreter of an environment that has onnxruntime-qnn, whose licence allows use for benchmarks and
forbids reverse engineering; hexconv neither needs nor distributes it. It prepares a graph without a device, for each
HTP and each size of VTCM, and its log states the bytes that it reads from and writes to DDR, spills and fills included.

The graph reads and writes NHWC. Each conv stands between a `DequantizeLinear` and a `QuantizeLinear`; filters are int8
with one scale, biases int32. Only shapes matter to a planner of bytes, so that all scales are the same, and filters are
drawn so that none compresses well.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from hexconv.spec import Chain, Conv2d
from reports.board import LIMITS_MIB, NETS, write_rows

OPSET, IR_VERSION = 17, 9
SCALES = {
    "scale": np.float32(1 / 16),
    "zero_point": np.uint8(128),
    "filter_scale": np.float32(1 / 128),
    "filter_zero_point": np.int8(0),
    "bias_scale": np.float32(1 / 2048),
    "bias_zero_point": np.int32(0),
}
TO_NCHW, TO_NHWC = [0, 3, 1, 2], [0, 2, 3, 1]


def qdq_model(chain: Chain) -> onnx.ModelProto:
    """Return a chain as a model whose input `x` and output `y` are uint8 in NHWC."""
    inner = [f"map{number}" for number in range(len(chain.conv) + 1)]
    nodes = _transposed("x", inner[0], TO_NCHW)
    for number, (conv, (source, result)) in enumerate(zip(chain.conv, pairwise(inner), strict=True)):
        nodes += _conv(conv, f"conv{number}", source, result)
    nodes += _transposed(inner[-1], "y", TO_NHWC)
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in (*SCALES.items(), *_weights(chain))]
    shapes = chain.shapes[0], chain.shapes[-1]
    ends = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in zip("xy", shapes, strict=True)]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _transposed(source: str, result: str, order: Sequence[int]) -> list[NodeProto]:
    """Return the nodes that transpose a quantised tensor."""
    inside = f"{source}_float", f"{source}_transposed"
    return [
        _dequantize(source, inside[0]),
        helper.make_node("Transpose", [inside[0]], [inside[1]], perm=order),
        _quantize(inside[1], result),
    ]


def _conv(conv: Conv2d, name: str, source: str, result: str) -> list[NodeProto]:
    """Return the nodes of one conv, of its operands and of its result."""
    image, filters, bias, made = (f"{name}_{part}" for part in ("image", "float_filter", "float_bias", "made"))
    nodes = [_dequantize(source, image), _dequantize(f"{name}_filter", filters, "filter_")]
    operands = [image, filters]
    if conv.bias:
        nodes.append(_dequantize(f"{name}_bias", bias, "bias_"))
        operands.append(bias)
    pad = conv.padding
    nodes.append(
        helper.make_node(
            "Conv",
            operands,
            [made],
            kernel_shape=conv.kernel,
            strides=conv.stride,
            dilations=conv.dilation,
            pads=[pad.top, pad.left, pad.bottom, pad.right],
            group=conv.groups,
        )
    )
    return [*nodes, _quantize(made, result)]


def _weights(chain: Chain) -> list[tuple[str, np.ndarray]]:
    """Return the filter of each conv, OIHW, and the bias where there is one."""
    drawn = np.random.default_rng(0)
    weights: list[tuple[str, np.ndarray]] = []
    for number, (conv, (*_, channels)) in enumerate(zip(chain.conv, chain.shapes, strict=False)):
        shape = conv.out_channels, channels // conv.groups, *conv.kernel
        weights.append((f"conv{number}_filter", drawn.integers(-127, 128, shape, dtype=np.int8)))
        if conv.bias:
            weights.append((f"conv{number}_bias", drawn.integers(-999, 1000, conv.out_channels, dtype=np.int32)))
    return weights


def _dequantize(source: str, result: str, kind: str = "") -> NodeProto:
    return helper.make_node("DequantizeLinear", [source, f"{kind}scale", f"{kind}zero_point"], [result])


def _quantize(source: str, result: str) -> NodeProto:
    return helper.make_node("QuantizeLinear", [source, "scale", "zero_point"], [result])


PREPARE = Path(__file__).with_name("qnn_prepare.py")
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
                        (read, written, spilled, filled), said = prepared(python, model, limit, isa)
                        yield Account(net, chain_name, isa, limit, read, written, spilled, filled, said)


def _saved(chain: Chain, folder: Path) -> Path:
    model = folder / "chain.onnx"
    onnx.save(qdq_model(chain), model)
    return model


def prepared(python: Path, model: Path, limit_mib: int, isa: str) -> tuple[Figures, str]:
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
    parser = argparse.ArgumentParser(prog="reports.qnn", description=__doc__)
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
