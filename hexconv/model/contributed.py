"""Write ONNX Runtime's own quantised operators as ONNX's, so that ONNX's inference and its evaluator know them.

Each such operator does what a standard operator between DequantizeLinear and QuantizeLinear does:

    before:  c = QLinearAdd(a, sa, za, b, sb, zb, sc, zc)
    after:   c = QuantizeLinear(Add(DequantizeLinear(a, sa, za), DequantizeLinear(b, sb, zb)), sc, zc)
"""

from collections.abc import Iterator, Sequence

import onnx
from onnx import helper

DOMAIN = "com.microsoft"
STANDARD = {
    "QLinearAdd": ("Add", 2),
    "QLinearMul": ("Mul", 2),
    "QLinearAveragePool": ("AveragePool", 1),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", 1),
    "QLinearLeakyRelu": ("LeakyRelu", 1),
    "QLinearSigmoid": ("Sigmoid", 1),
    "QLinearSoftmax": ("Softmax", 1),
}
"""The standard operator inside of each, and how many tensors it reads, each with its scale and zero point."""
QUANTISERS = ("QuantizeLinear", "DequantizeLinear")
"""Operators of ONNX Runtime's domain that are ONNX's own, but for more dtypes in models of an old opset."""
CONCAT, GEMM = "QLinearConcat", "QGemm"
OPTIMISED = ("QLinearConv", "FusedConv", "NhwcFusedConv", "NhwcMaxPool", "FusedGemm", "FusedMatMul")
"""Operators that no exporter writes: ONNX Runtime's optimisation makes them for the machine that it runs on."""
OPTIMISED_DOMAINS = (f"{DOMAIN}.nchwc", "com.ms.internal.nhwc")
OWN_ATTRIBUTES = ("channels_last", "opset")


def is_standard(node: onnx.NodeProto) -> bool:
    """Whether a node means what ONNX defines: it is of ONNX's own domain, or a quantiser of ONNX Runtime's."""
    return node.domain in ("", "ai.onnx") or (node.domain == DOMAIN and node.op_type in QUANTISERS)


def is_optimised(op: str) -> bool:
    """Whether an operator, its domain before it, is one that ONNX Runtime's optimisation makes.

    >>> is_optimised("com.microsoft.FusedConv"), is_optimised("com.microsoft.QLinearAdd"), is_optimised("QLinearConv")
    (True, False, False)
    """
    domain, _, name = op.rpartition(".")
    return domain in OPTIMISED_DOMAINS or (domain == DOMAIN and name in OPTIMISED)


def _is_known(node: onnx.NodeProto) -> bool:
    if node.domain != DOMAIN:
        return False
    return len(node.input) >= _tensors(node)[1] if node.op_type in STANDARD else node.op_type in (CONCAT, GEMM)


def _tensors(node: onnx.NodeProto) -> tuple[list[int], int]:
    """The indices of the tensors among a node's inputs, and how many inputs the node has at least."""
    if node.op_type == CONCAT:
        return list(range(2, len(node.input), 3)), 2
    if node.op_type == GEMM:
        return [0, 3], 6
    count = STANDARD[node.op_type][1]
    return list(range(0, 3 * count, 3)), 3 * count + 1


def as_standard(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Write a node of ONNX Runtime's own domain as nodes of ONNX's; leave any other node as it is."""
    if node.domain == DOMAIN and node.op_type in QUANTISERS:
        own = onnx.NodeProto()
        own.CopyFrom(node)
        own.domain = ""
        yield own
        return
    if not _is_known(node):
        yield node
        return
    stem, places = f"{node.output[0]}/", _tensors(node)[0]
    for place in places:
        yield helper.make_node("DequantizeLinear", _present(node.input[place : place + 3]), [f"{stem}{place}"])
    inside = helper.make_node(_inside(node), [f"{stem}{place}" for place in places], [f"{stem}made"])
    inside.attribute.extend(attribute for attribute in node.attribute if attribute.name not in OWN_ATTRIBUTES)
    if ends := _present(_ends(node, places[-1] + 3)):
        yield inside
        yield helper.make_node("QuantizeLinear", [f"{stem}made", *ends], list(node.output[:1]))
    else:
        inside.output[:] = node.output[:1]
        yield inside


def _inside(node: onnx.NodeProto) -> str:
    """The name of the standard operator inside of a node."""
    return {CONCAT: "Concat", GEMM: "Gemm"}.get(node.op_type) or STANDARD[node.op_type][0]


def _ends(node: onnx.NodeProto, after: int) -> Sequence[str]:
    """The names of a result's scale and zero point; a Gemm has a bias before them, and may have neither."""
    if node.op_type == CONCAT:
        return node.input[:2]
    return node.input[after + 1 : after + 3] if node.op_type == GEMM else node.input[after : after + 2]


def _present(names: Sequence[str]) -> list[str]:
    """The names without the empty one of an optional zero point that is left out."""
    return [name for name in names if name]
