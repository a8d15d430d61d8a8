"""ONNX models made node by node, with `onnx.helper`: the networks of the tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LARGEST_RANDOM = 1 << 16
"""Larger weights are a ConstantOfShape: a full-sized network is then a file of kilobytes."""
OPSET = 21
INLINE_INITIALIZERS = 4
"""Files of an older version list every initializer among the inputs of the model too."""


class Builder:
    """A graph that grows; every method adds a node and gives back the name of its result."""

    def __init__(
        self,
        name: str,
        image: Sequence[int | str],
        dtype: int = TensorProto.FLOAT,
        seed: int = 0,
        opset: int = OPSET,
    ) -> None:
        self.name, self.random, self.opset = name, np.random.default_rng(seed), opset
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.dtype = dtype
        self.inputs = [helper.make_tensor_value_info("image", dtype, list(image))]

    def node(self, op: str, inputs: Sequence[str], name: str = "", outputs: int = 1, **attributes: Any) -> str:
        name = name or f"{op.lower()}{len(self.nodes)}"
        results = [f"{name}_out" + (str(i) if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), results, name, **attributes))
        return results[0]

    def constant(self, values: Any, dtype: str | None = None) -> str:
        name = f"constant{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def initializers_value(self, name: str) -> np.ndarray:
        """The values of a stored constant."""
        return next(numpy_helper.to_array(stored) for stored in self.initializers if stored.name == name)

    def weights(self, *shape: int) -> str:
        """Random and scaled by the fan-in, or of a shape alone where they are many."""
        dtype = helper.tensor_dtype_to_np_dtype(self.dtype)
        if np.prod(shape) > LARGEST_RANDOM:
            value = helper.make_tensor("value", self.dtype, [1], [0.01])
            return self.node("ConstantOfShape", [self.constant(shape, "int64")], value=value)
        fan_in = np.prod(shape[1:]) if len(shape) > 1 else 1
        return self.constant(self.random.uniform(-1, 1, shape) * np.sqrt(3 / fan_in), dtype.name)

    def conv(
        self, source: str, shape: tuple[int, int, int, int], name: str = "", bias: bool = True, **rest: Any
    ) -> str:
        """Conv with a filter OIHW of this shape; same padding unless the rest says otherwise."""
        rest = rest if {"pads", "auto_pad"} & rest.keys() else {"pads": [shape[2] // 2, shape[3] // 2] * 2, **rest}
        inputs = [source, self.weights(*shape), *([self.weights(shape[0])] if bias else [])]
        return self.node("Conv", inputs, name, **rest)

    def batch_norm(self, source: str, channels: int) -> str:
        scale, bias, mean = (self.constant(self.random.uniform(-1, 1, channels), "float32") for _ in range(3))
        variance = self.constant(self.random.uniform(0.5, 2, channels), "float32")
        return self.node("BatchNormalization", [source, scale, bias, mean, variance])

    def relu6(self, source: str) -> str:
        return self.node("Clip", [source, self.constant(0, "float32"), self.constant(6, "float32")])

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The model; its outputs are tensors of any shape, or constants."""
        axes = ["a", "b", "c", "d"]
        infos = [onnx.ValueInfoProto(name=name) for name in outputs]
        versions = [helper.make_opsetid("", self.opset)]
        file_version = helper.find_min_ir_version_for(versions)
        versions += [helper.make_opsetid(name, 1) for name in {node.domain for node in self.nodes if node.domain}]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [], self.initializers)
        if file_version < INLINE_INITIALIZERS:
            graph.input.extend(
                helper.make_tensor_value_info(stored.name, stored.data_type, stored.dims)
                for stored in self.initializers
            )
        model = helper.make_model(graph, opset_imports=versions, ir_version=file_version)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        types = {info.name: info.type for info in inferred.graph.value_info}
        types |= {each.name: helper.make_tensor_type_proto(each.data_type, each.dims) for each in self.initializers}
        for info in infos:
            known = types.get(info.name)
            info.CopyFrom(
                onnx.ValueInfoProto(name=info.name, type=known)
                if known
                else helper.make_tensor_value_info(info.name, self.dtype, axes)
            )
        model.graph.output.extend(infos)
        return model
