"""Draw whole quantised models: graphs of convs and of all operators that stand between them.

    image -> Q -> Conv -> Q -+-> MaxPool -> Q -> Concat -> Q -> Gemm -> output
    gates -> Q --------------+-> Mul -> Q ---+ ^              output <- DQ <-+

Tensors are shared, some stay floats, inputs and outputs are several. How convs and quantisers are written is drawn by
`tests.quantisers`. Each operator of `hexconv.network.operator_table.TABLE` has a method here; all models are valid.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.model.drawn import Drawn
from tests.quantisers.draw import Network
from tests.quantisers.tensors import CONTRIB, RANGES, Codes, Real
from tests.verify.saturation import kept_exact

Value = Codes | Real
MOST_ELEMENTS, MOST_INPUTS = 30_000, 600
"""Of a tensor; of a matrix product."""
OLD_AXES = 10
"""The last opset in which no axis is counted from the end."""
OLD_SPLITS = 12
"""The last opset in which the sizes of a Split are an attribute."""
OLD = 0.03
"""The share of the models that are old enough for Upsample."""
UNARY: dict[str, tuple[int, Sequence[dict[str, Any]]]] = {
    "Celu": (13, ({"alpha": 0.7},)),
    "Elu": (13, ({}, {"alpha": 0.5})),
    "Gelu": (20, ({}, {"approximate": "tanh"})),
    "HardSigmoid": (13, ({}, {"alpha": 1 / 6})),
    "HardSwish": (14, ({},)),
    "LeakyRelu": (13, ({}, {"alpha": 0.1})),
    "Mish": (18, ({},)),
    "Selu": (13, ({},)),
    "Swish": (24, ({}, {"alpha": 1.5})),
    "ThresholdedRelu": (13, ({}, {"alpha": 0.3})),
    "Erf": (13, ({},)),
    "Exp": (13, ({},)),
    "Sigmoid": (9, ({},)),
    "Softplus": (13, ({},)),
    "Softsign": (13, ({},)),
    "Tanh": (9, ({},)),
    "Abs": (13, ({},)),
    "Ceil": (13, ({},)),
    "Floor": (13, ({},)),
    "Neg": (13, ({},)),
    "Round": (13, ({},)),
}
"""Functions of one number: the first opset that draws them, and their attributes."""


def draw_program(seed: int, index: int) -> Drawn:
    """The model of this index; every one can be drawn alone."""
    random = np.random.default_rng([seed, index])
    return (OldPrograms if random.random() < OLD else Programs)(random).drawn()


class Programs(Network):
    """A builder of one random model. A method for an operator returns its result, or None where it can't be there."""

    FORMS = (*["qdq"] * 6, "contrib", "qoperator")
    OPSETS = (13, 14, 17, 18, 19, 20, *[21] * 4, 22, 24)
    WIDE_INTEGERS = False
    FLOAT_IMAGES = 0.8
    CONVS, MOST_STEPS = 0.25, 10
    """The share of the steps that are convs or blocks of them; the most steps."""

    @property
    def ways(self) -> Sequence["Operator"]:
        """What steps that are no convs are drawn from."""
        return [way for least, way in OPERATORS.values() if least <= self.opset]

    def drawn(self) -> Drawn:
        self.pool: list[Value] = [self.start()]
        while self.chance(0.3):
            self.pool.append(self.another())
        ways, left = self.ways, self.upto(self.MOST_STEPS)
        while left:
            way = type(self).convs if self.chance(self.CONVS) else self.of(*ways)
            source = self.pool[-1] if self.chance(0.5) else self.of(*self.pool)
            made = way(self, source)
            if made is not None and np.prod(made.shape) <= MOST_ELEMENTS:
                self.pool.append(made)
                left -= 1
        return Drawn(self.ended_by(self.outputs()), self.feed)

    def another(self) -> Codes:
        """One more input of the model, some as gates of channels."""
        batch, channels, *sizes = self.image.shape
        shape = self.of(self.image.shape, (batch, channels, *[1] * len(sizes)), (batch, self.upto(9), *sizes))
        name = f"input{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.feed[name] = self.random.standard_normal(shape).astype(np.float32)
        return self.quantised(Real(name, shape))

    def outputs(self) -> list[Value]:
        """What nothing reads, and now and then what others read too, or a constant; as codes, floats, or in NHWC."""
        read = {name for node in self.nodes for name in node.input}
        made = {name for node in self.nodes for name in node.output}
        ends = [value for value in self.pool if value.name not in read or self.chance(0.1)]
        ends = [value for value in ends if value.name in made] or [self.reals(self.codes(self.pool[-1]))]
        rows = (2, self.upto(5))
        constants = [Real(self.held(self.random.standard_normal(rows), "float32"), rows)] if self.chance(0.05) else []
        return [*(self.end(value) for value in ends), *constants]

    def end(self, value: Value) -> Value:
        value = self.reals(value) if self.chance(0.6) else value
        if isinstance(value, Codes) or len(value.shape) < 4 or self.chance(0.8):
            return value
        n, c, h, w = value.shape
        return replace(value, name=self.node("Transpose", [value.name], perm=[0, 2, 3, 1]), shape=(n, h, w, c))

    def ended_by(self, outputs: Sequence[Value]) -> onnx.ModelProto:
        """The model, some outputs listed twice; inference knows no shapes behind ONNX Runtime's own operators."""
        known = {value.name: value for value in outputs}
        model = self.model(*known, *(name for name in known if self.chance(0.03)))
        for info in model.graph.output:
            value = known[info.name]
            dtype = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype if isinstance(value, Codes) else "float32"))
            info.CopyFrom(helper.make_tensor_value_info(value.name, dtype, value.shape))
        return model

    # Values.

    def reals(self, value: Value) -> Real:
        return value if isinstance(value, Real) else self.real(value)

    def codes(self, value: Value) -> Codes:
        return value if isinstance(value, Codes) else self.quantised(value)

    def closed(self, real: Real) -> Value:
        """A result behind a clamp or a node that changes nothing, quantised or as floats."""
        if self.chance(0.25):
            real = self.of(self.relu, self.clip, self.identity_of)(real)
        return self.quantised(real) if self.chance(0.85) else real

    def like(self, value: Value, name: str, shape: Sequence[int], spread: float | None = None) -> Real:
        """A result whose standard deviation is that of what it is made of, or another."""
        own = value.spread if isinstance(value, Real) else value.scale * self.steps
        return Real(name, tuple(map(int, shape)), spread or own)

    def is_image(self, value: Value) -> bool:
        return len(value.shape) == 4

    # Convs.

    def convs(self, value: Value) -> Value | None:
        """A conv, a residual block, convs side by side, or squeeze-and-excite; now and then a conv of floats."""
        if len(value.shape) not in (3, 4):
            return None
        if self.is_image(value) and self.chance(0.1):
            return self.conv_of_floats(value)
        source = self.codes(value)
        blocks: list[Callable[[], Codes]] = [lambda: self.conv8(source, self.of(0, 0, 0, 5, 33, 64))] * 4
        blocks += [lambda: self.residual(source)]
        if self.is_image(value):
            blocks += [lambda: self.joined(source), lambda: self.pooled(source)]
            blocks += [lambda: self.excited(source)] if self.form != "qoperator" else []
        return self.of(*blocks)()

    def conv_of_floats(self, value: Value) -> Value:
        """A conv that nobody quantised, of what is read as it is, or of what only moved since it was quantised."""
        read, shape = self.reals(value).name, list(value.shape)
        for way in self.of((), ("Slice",), ("Transpose",), ("Split", "Transpose")):
            read, shape = self.selected(way, read, shape)
        outputs = self.upto(8)
        filters = self.random.standard_normal((outputs, shape[1], 1, 1)) / np.sqrt(shape[1])
        made = self.node("Conv", [read, self.held(filters, "float32")])
        return self.closed(self.like(value, made, (shape[0], outputs, *shape[2:])))

    # Functions of one number.

    def unary(self, op: str, value: Value) -> Value:
        attributes = self.of(*UNARY[op][1])
        spread = {"Exp": 1.5, "Erf": 0.6, "Sigmoid": 0.3, "Tanh": 0.6, "Softsign": 0.4, "HardSigmoid": 0.3}.get(op)
        node = self.node(op, [self.reals(self.codes(value)).name], **attributes)
        return self.closed(self.like(value, node, value.shape, spread))

    def of_positive(self, op: str, value: Value) -> Value:
        """Of codes that stand for no negative number."""
        codes = self.codes(value)
        at_least = replace(codes, zero=RANGES[codes.dtype][0])
        real = self.reals(self.quantised(self.reals(value), at_least))
        rest = [self.held(self.of(0.5, 2.0, 1.7), "float32")] if op == "Pow" else []
        return self.quantised(self.like(value, self.node(op, [real.name, *rest]), value.shape, 1.0))

    def with_number(self, op: str, value: Value) -> Value:
        """Max, Min, Pow or PRelu with a constant of one element, or one a channel; now and then with a tensor."""
        real = self.reals(self.codes(value))
        number = self.of(2.0, 3.0) if op == "Pow" else float(self.random.uniform(-0.5, 0.7))
        shape = self.of((), (1,), (1,) * len(value.shape)) if op != "PRelu" else (1,)
        constant = np.full(shape, number)
        if op != "Pow" and 1 < len(value.shape) < 5 and self.chance(0.3):
            constant = self.random.uniform(-0.5, 0.7, (value.shape[1], *[1] * (len(value.shape) - 2)))
        beside = self.held(constant, "float32")
        if op != "Pow" and self.chance(0.1):
            beside = self.reals(self.codes(self.like(value, self.node("Neg", [real.name]), value.shape))).name
        pair = [real.name, beside]
        made = self.node(op, pair if op in ("Pow", "PRelu") or self.chance(0.7) else pair[::-1])
        return self.closed(self.like(value, made, value.shape))

    def clamped(self, op: str, value: Value) -> Value:
        real = self.reals(value)
        return self.closed(self.relu(real) if op == "Relu" else self.clip(real))

    # Of two tensors.

    def pair(self, op: str, value: Value) -> Value | None:
        """With another tensor, as large or broadcast, or with constants."""
        real, shape = self.reals(value), value.shape
        others = [other for other in self.pool if _broadcasts(other.shape, shape)]
        if op == "Div" or not others or self.chance(0.4):
            along = (1, shape[1], *[1] * (len(shape) - 2)) if len(shape) > 1 else (1,)
            own = self.of(along, along[1:], (1,), (), shape)
            numbers = self.random.uniform(0.5, 2, own) * self.random.choice([-1, 1], own)
            other, made = self.held(numbers, "float32"), shape
        else:
            read = self.reals(self.of(*others))
            other, made = read.name, np.broadcast_shapes(read.shape, shape)
        names = [real.name, other] if op == "Div" or self.chance(0.6) else [other, real.name]
        return self.closed(self.like(value, self.node(op, names), made, 1.4))

    def own_pair(self, op: str, value: Value) -> Value | None:
        """QLinearAdd or QLinearMul of ONNX Runtime."""
        one = self.codes(value)
        others = [other for other in self.pool if isinstance(other, Codes) and _broadcasts(other.shape, one.shape)]
        other, made = self.of(one, *others), replace(one, scale=float(self.near(one.scale * 1.5)))
        made = replace(made, shape=np.broadcast_shapes(one.shape, other.shape))
        ends = [one.name, *self.ends_of(one), other.name, *self.ends_of(other), *self.ends_of(made)]
        return replace(made, name=self.node(op, ends, domain=CONTRIB))

    def concat(self, op: str, value: Value) -> Value | None:
        """Along any axis, with tensors of the graph, or with itself; of codes as they are, too."""
        rank = len(value.shape)
        if rank < 2:
            return None
        axis = int(self.random.integers(rank))
        fitting = [other for other in self.pool if _joins(other.shape, value.shape, axis)]
        parts = [value, *(self.of(value, *fitting) for _ in range(self.upto(3)))]
        if self.opset > OLD_SPLITS and self.chance(0.2):
            apart = self.parts(self.reals(value), axis)
            parts = [*(apart if self.chance(0.7) else apart[::-1]), *self.of([], fitting[:1])]
        shape = (*value.shape[:axis], sum(part.shape[axis] for part in parts), *value.shape[axis + 1 :])
        told: dict[str, Any] = {"axis": self.of(axis, axis - rank) if self.opset > OLD_AXES else axis}
        if op == "QLinearConcat":
            read = [self.codes(part) for part in parts]
            made = replace(read[0], shape=shape)
            ends = [name for part in read for name in (part.name, *self.ends_of(part))]
            return replace(made, name=self.node(op, [*self.ends_of(made), *ends], domain=CONTRIB, **told))
        if isinstance(value, Codes) and self.chance(0.15):
            return replace(
                value, name=self.node(op, [value.name] * len(parts), **told), shape=_longer(value, axis, len(parts))
            )
        return self.closed(self.like(value, self.node(op, [self.reals(part).name for part in parts], **told), shape))

    def parts(self, real: Real, axis: int) -> list[Value]:
        """A tensor split along an axis into up to three parts."""
        size = real.shape[axis]
        cuts = self.random.choice(range(1, size), min(size - 1, 2), replace=False).tolist() if size > 1 else []
        sizes = np.diff([0, *sorted(cuts), size]).tolist()
        first = self.node("Split", [real.name, self.held(sizes, "int64")], outputs=len(sizes), axis=axis)
        names = [first, *(f"{first}{at}" for at in range(1, len(sizes)))]
        shapes = [(*real.shape[:axis], part, *real.shape[axis + 1 :]) for part in sizes]
        return [replace(real, name=name, shape=shape) for name, shape in zip(names, shapes, strict=True)]

    # Elements that move.

    def moved(self, op: str, value: Value) -> Value | None:
        """Floats between quantisers, or the codes themselves."""
        is_code = isinstance(value, Codes) and op not in ("DepthToSpace", "SpaceToDepth", "Pad") and self.chance(0.4)
        read = value if is_code else self.reals(value)
        found = getattr(self, f"_{op.lower()}")(read.name, list(value.shape))
        if found is None or np.prod(found[1]) > MOST_ELEMENTS:
            return None
        name, shape = found[0], tuple(map(int, found[1]))
        if is_code:
            return replace(value, name=name, shape=shape)
        return self.closed(self.like(value, name, shape))

    def selected(self, op: str, read: str, shape: Sequence[int]) -> tuple[str, list[int]]:
        """Elements of four axes, moved or the largest of, as floats."""
        if op == "MaxPool":
            sides = [min(size, 2) for size in shape[2:]]
            made = [size - side + 1 for size, side in zip(shape[2:], sides, strict=True)]
            return self.node(op, [read], kernel_shape=sides), [*shape[:2], *made]
        if op == "joined":
            made = [*shape[:2], 1, shape[2] * shape[3]]
            return self.node("Reshape", [read, self.held(made, "int64")]), made
        return getattr(self, f"_{op.lower()}")(read, list(shape)) or (read, list(shape))

    def _transpose(self, read: str, shape: list[int]) -> Any:
        order = self.random.permutation(len(shape)).tolist()
        told: dict[str, Any] = {} if self.chance(0.1) else {"perm": order}
        return self.node("Transpose", [read], **told), [shape[at] for at in told.get("perm", range(len(shape))[::-1])]

    def _slice(self, read: str, shape: list[int]) -> Any:
        axes = sorted(self.random.permutation(len(shape))[: self.upto(2)].tolist())
        cuts = []
        for axis in axes:
            step, start = self.of(-2, -1, 1, 1, 2), int(self.random.integers(shape[axis]))
            stop = self.of(9999, shape[axis]) if step > 0 else -9999
            cuts.append((self.of(start, start - shape[axis]), stop, step, range(shape[axis])[start::step]))
        made = [len(cuts[axes.index(at)][3]) if at in axes else size for at, size in enumerate(shape)]
        told = [[cut[0] for cut in cuts], [cut[1] for cut in cuts], axes, [cut[2] for cut in cuts]]
        return self.node("Slice", [read, *(self.held(each, "int64") for each in told)]), made

    def _split(self, read: str, shape: list[int]) -> Any:
        """The last part; what reads none of the others leaves them out."""
        axis = int(self.random.integers(len(shape)))
        if shape[axis] < 2:
            return None
        part = int(self.random.integers(1, shape[axis]))
        sizes = self.held([part, shape[axis] - part], "int64")
        first = self.node("Split", [read, sizes], outputs=2, axis=axis)
        return f"{first}1", [shape[axis] - part if at == axis else size for at, size in enumerate(shape)]

    def _gather(self, read: str, shape: list[int]) -> Any:
        axis = int(self.random.integers(len(shape)))
        places = self.random.integers(-shape[axis], shape[axis], self.upto(6))
        made = self.node("Gather", [read, self.held(places, "int64")], axis=self.of(axis, axis - len(shape)))
        return made, [len(places) if at == axis else size for at, size in enumerate(shape)]

    def _pad(self, read: str, shape: list[int]) -> Any:
        pads = self.random.integers(0, 3, 2 * len(shape)) * self.random.integers(0, 2, 2 * len(shape))
        value = [self.held(np.float32(self.of(0.25, 0.0, -1.0)))] if self.chance(0.6) else []
        made = [size + int(pads[at] + pads[len(shape) + at]) for at, size in enumerate(shape)]
        return self.node("Pad", [read, self.held(pads, "int64"), *value]), made

    def _reshape(self, read: str, shape: list[int]) -> Any:
        """Two axes joined, one parted, or a shuffle of channels."""
        parts = next((part for part in (4, 3, 2) if shape[1] % part == 0), 0) if len(shape) > 2 else 0
        if parts and self.chance(0.5):
            apart = [shape[0], parts, shape[1] // parts, *shape[2:]]
            turned = self.node("Reshape", [read, self.held(apart, "int64")])
            order = [0, 2, 1, *range(3, len(apart))]
            back = self.node("Transpose", [turned], perm=order)
            return self.node("Reshape", [back, self.held(shape, "int64")]), shape
        if len(shape) < 3:
            made = [shape[0], *shape[1:], 1] if self.chance(0.5) else [shape[0], -1]
            return self.node("Reshape", [read, self.held(made, "int64")]), [*shape, 1] if len(made) > 2 else shape
        joined = self.of([*shape[:-2], shape[-2] * shape[-1]], [shape[0], shape[1] * shape[2], *shape[3:]])
        return self.node("Reshape", [read, self.held(self.of(joined, [*joined[:-1], -1]), "int64")]), joined

    def _flatten(self, read: str, shape: list[int]) -> Any:
        axis = self.of(1, 1, len(shape) - 1)
        return self.node("Flatten", [read], axis=axis), [np.prod(shape[:axis]), np.prod(shape[axis:])]

    def _squeeze(self, read: str, shape: list[int]) -> Any:
        axes = [at for at, size in enumerate(shape) if size == 1 and at > 0]
        if not axes or len(shape) - len(axes) < 2:
            return None
        made = [size for at, size in enumerate(shape) if at not in axes]
        return self.node("Squeeze", [read, self.held(axes, "int64")]), made

    def _unsqueeze(self, read: str, shape: list[int]) -> Any:
        if len(shape) > 3:
            return None
        axis = int(self.random.integers(1, len(shape), endpoint=True))
        return self.node("Unsqueeze", [read, self.held([axis], "int64")]), [*shape[:axis], 1, *shape[axis:]]

    def _depthtospace(self, read: str, shape: list[int]) -> Any:
        block = next((side for side in (3, 2) if len(shape) == 4 and shape[1] % side**2 == 0), 0)
        if not block:
            return None
        mode: dict[str, Any] = {"mode": self.of("DCR", "CRD")} if self.chance(0.8) else {}
        made = [shape[0], shape[1] // block**2, shape[2] * block, shape[3] * block]
        return self.node("DepthToSpace", [read], blocksize=block, **mode), made

    def _spacetodepth(self, read: str, shape: list[int]) -> Any:
        if len(shape) != 4 or shape[2] % 2 or shape[3] % 2:
            return None
        made = [shape[0], shape[1] * 4, shape[2] // 2, shape[3] // 2]
        return self.node("SpaceToDepth", [read], blocksize=2), made

    # Windows.

    def window(self, sizes: Sequence[int], op: str) -> tuple[dict[str, Any], list[int]] | None:
        """Attributes of a pool, and the sizes of its result."""
        kernel = [self.upto(4) for _ in sizes]
        told: dict[str, Any] = {"kernel_shape": kernel}
        stride = [self.upto(3) for _ in sizes]
        ends = [[int(self.random.integers(size)) for size in kernel] for _ in "be"]
        apart = [1] * len(sizes)
        if self.chance(0.2) and (op == "MaxPool" or (op == "AveragePool" and self.opset >= 19)):
            apart = [self.upto(2) for _ in sizes]
            told["dilations"] = apart
        told |= {"strides": stride} if self.chance(0.9) or max(stride) > 1 else {}
        if self.chance(0.15) and max(apart) == 1:
            told["auto_pad"] = self.of("SAME_UPPER", "SAME_LOWER", "VALID")
            if told["auto_pad"] != "VALID":
                made = [-(-size // step) for size, step in zip(sizes, stride, strict=True)]
                reached = [(count - 1) * step + wide for count, step, wide in zip(made, stride, kernel, strict=True)]
                is_padded = all(last >= size for last, size in zip(reached, sizes, strict=True))
                return (told, made) if is_padded else None  # ONNX Runtime takes no negative padding
            ends = [[0] * len(sizes)] * 2
        elif self.chance(0.7):
            told["pads"] = [*ends[0], *ends[1]]
        else:
            ends = [[0] * len(sizes)] * 2
        rounds_up = self.chance(0.3) and "auto_pad" not in told
        told |= {"ceil_mode": 1} if rounds_up else {}
        made = []
        for at, size in enumerate(sizes):
            room = size + ends[0][at] + ends[1][at] - (kernel[at] - 1) * apart[at] - 1
            made.append((-(-room // stride[at]) if rounds_up else room // stride[at]) + 1)
            starts_behind = (made[-1] - 1) * stride[at] >= size + ends[0][at]  # ONNX Runtime leaves that window out
            if room < 0 or starts_behind:
                return None
        return told, made

    def pool_of(self, op: str, value: Value) -> Value | None:
        """Of floats between quantisers, of codes as they are, or ONNX Runtime's own."""
        found = self.window(value.shape[2:], op) if len(value.shape) in (3, 4) else None
        if found is None or (op.startswith("QLinear") and len(value.shape) < 4):
            return None
        told, sizes = found
        if op != "MaxPool" and self.chance(0.4):
            told["count_include_pad"] = self.of(0, 1)
        shape = (*value.shape[:2], *sizes)
        if op.startswith("QLinear"):
            return self.own_mean(op, self.codes(value), shape, told)
        if op == "MaxPool" and isinstance(value, Codes) and self.chance(0.4):
            return replace(value, name=self.node(op, [value.name], **told), shape=shape)
        return self.closed(self.like(value, self.node(op, [self.reals(value).name], **told), shape))

    def own_mean(self, op: str, codes: Codes, shape: tuple[int, ...], told: dict[str, Any]) -> Codes:
        made = replace(codes, scale=float(self.near(codes.scale * self.of(1.0, 0.6))), shape=shape)
        ends = [codes.name, *self.ends_of(codes), *self.ends_of(made)]
        return replace(made, name=self.node(op, ends, domain=CONTRIB, **told))

    def mean(self, op: str, value: Value) -> Value | None:
        """Of all rows and columns."""
        if not self.is_image(value):
            return None
        shape = (*value.shape[:2], 1, 1)
        if op.startswith("QLinear"):
            return self.own_mean(op, self.codes(value), shape, {})
        real, spread = self.reals(value), 0.5
        others = [other for other in self.pool if other.shape == value.shape]
        if others and self.chance(0.4):
            real = replace(real, name=self.node("Add", [real.name, self.reals(self.of(*others)).name]))
            real = self.relu(real) if self.chance(0.5) else real
        if op == "GlobalAveragePool":
            return self.closed(self.like(value, self.node(op, [real.name]), shape, spread))
        keeps, axes = self.of(0, 1), self.of([2, 3], [-1, -2])
        if self.opset >= 18:
            name = self.node(op, [real.name, self.held(axes, "int64")], keepdims=keeps)
        else:
            name = self.node(op, [real.name], axes=axes, keepdims=keeps)
        return self.closed(self.like(value, name, shape if keeps else shape[:2], spread))

    def resize(self, op: str, value: Value) -> Value | None:
        """Nearest ones to multiples or halves: float32 puts other coordinates to another side of a half."""
        if not self.is_image(value):
            return None
        is_linear, old = self.chance(0.5), value.shape[2:]
        sizes = [size * self.upto(3) if size % 2 or self.chance(0.6) else size // 2 for size in old]
        if op == "Upsample":
            sizes = [size * self.upto(3) for size in old]
            scales = [1, 1, *(new / size for new, size in zip(sizes, old, strict=True))]
            told: dict[str, Any] = {"mode": self.of("nearest", "linear")}
            names = [self.reals(value).name, self.held(scales, "float32")]
        else:
            sizes = [self.upto(2 * size) for size in old] if is_linear else sizes
            places = ["half_pixel", "asymmetric", "pytorch_half_pixel", *(["align_corners"] if is_linear else [])]
            rounds = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
            told = {"mode": "linear"} if is_linear else {"mode": "nearest", "nearest_mode": self.of(*rounds)}
            told["coordinate_transformation_mode"] = self.of(*places)
            given = self.held([*value.shape[:2], *sizes], "int64")
            names = [self.reals(value).name, "", "", given]
            if not is_linear and self.chance(0.5):
                scales = [1, 1, *(new / size for new, size in zip(sizes, old, strict=True))]
                names = [names[0], "", self.held(scales, "float32")]
        return self.closed(self.like(value, self.node(op, names, **told), (*value.shape[:2], *sizes)))

    # Sums of products, and what is along an axis.

    def matrix(self, op: str, value: Value) -> Value | None:
        """MatMul, Gemm, QGemm, QLinearMatMul of what is flattened, with quantised or float weights."""
        inputs = int(np.prod(value.shape[1:]))
        if inputs > MOST_INPUTS or len(value.shape) < 2:
            return None
        codes, outputs = self.codes(value), self.upto(40)
        if len(codes.shape) > 2:
            codes = replace(codes, name=self.node("Flatten", [codes.name]), shape=(value.shape[0], inputs))
        is_turned = op in ("Gemm", "QGemm") and self.chance(0.6)
        shape = (outputs, inputs) if is_turned else (inputs, outputs)
        step = 1 / 60 / np.sqrt(inputs)
        count = outputs if self.chance(0.5) and op not in ("QLinearMatMul",) else 1
        scales = (step * self.random.uniform(0.5, 1, count)).astype(np.float32)
        scales = scales[0] if count == 1 else scales
        whole = self.random.integers(-127, 128, shape)
        made = (value.shape[0], outputs)
        if op.startswith("Q"):
            weights = [
                self.held(kept_exact(whole), "int8"),
                self.held(scales),
                self.held(np.zeros(np.shape(scales)), "int8"),
            ]
            end = Codes("", made, codes.dtype, float(self.near(1 / self.steps)), codes.zero)
            units = np.broadcast_to(np.float32(codes.scale) * scales, (outputs,))
            ends = [codes.name, *self.ends_of(codes), *weights]
            if op == "QLinearMatMul":
                return replace(end, name=self.node(op, [*ends, *self.ends_of(end)]))
            bias = self.held(np.rint(self.random.standard_normal(outputs) / units), "int32")
            told = {"transB": int(is_turned), "domain": CONTRIB}
            return replace(end, name=self.node(op, [*ends, bias, *self.ends_of(end)], **told))
        if self.chance(0.2):
            weights8 = self.held(whole * step, "float32")
        else:
            axis: dict[str, Any] = {} if count == 1 else {"axis": 0 if is_turned else 1}
            weights8 = self.node("DequantizeLinear", [self.held(whole, "int8"), self.held(scales)], **axis)
        names = [self.real(codes).name, weights8]
        if op == "MatMul":
            return self.closed(Real(self.node(op, names), made))
        names += [self.held(self.random.standard_normal(outputs), "float32")] if self.chance(0.6) else []
        return self.closed(Real(self.node(op, names, transB=int(is_turned)), made))

    def conv_transpose(self, op: str, value: Value) -> Value | None:
        if not self.is_image(value) or value.shape[1] > 64:
            return None
        n, channels, *sizes = list(value.shape)
        groups = self.of(1, 1, 1, channels)
        own = self.upto(12) if groups == 1 else self.upto(2)
        kernel, stride = [self.upto(4) for _ in sizes], [self.upto(3) for _ in sizes]
        if self.chance(0.3):
            stride = kernel
        apart = [self.of(1, 1, 1, 2) for _ in sizes]
        more = [int(self.random.integers(step)) for step in stride] if self.chance(0.3) else [0, 0]
        pads = [int(self.random.integers(size)) for size in (*kernel, *kernel)] if self.chance(0.5) else [0] * 4
        told: dict[str, Any] = {"strides": stride, "group": groups, "kernel_shape": kernel, "dilations": apart}
        told |= {"output_padding": more} if any(more) else {}
        is_wide = all(size >= step for size, step in zip(kernel, stride, strict=True))
        if self.chance(0.15) and max(apart) == 1 and not any(more) and is_wide:
            told["auto_pad"] = self.of("SAME_UPPER", "SAME_LOWER")
            made = [size * step for size, step in zip(sizes, stride, strict=True)]
        else:
            told |= {"pads": pads}
            places = zip(sizes, stride, kernel, apart, more, pads[:2], pads[2:], strict=True)
            made = [step * (size - 1) + add + (k - 1) * d + 1 - b - a for size, step, k, d, add, b, a in places]
        if min(made) < 1 or np.prod(made) * own * groups > MOST_ELEMENTS:
            return None
        step = 1 / 60 / np.sqrt(channels * np.prod(kernel) / groups)
        whole = self.held(self.random.integers(-127, 128, (channels, own, *kernel)), "int8")
        scales = (step * self.random.uniform(0.5, 1, own)).astype(np.float32)
        is_one = self.chance(0.4)
        axis: dict[str, Any] = {} if is_one else {"axis": 1}
        weights = self.node("DequantizeLinear", [whole, self.held(scales[0] if is_one else scales)], **axis)
        bias = [self.held(self.random.standard_normal(own * groups), "float32")] if self.chance(0.5) else []
        name = self.node(op, [self.reals(value).name, weights, *bias], **told)
        return self.closed(Real(name, (n, own * groups, *made)))

    def normalised_alone(self, _: str, value: Value) -> Value | None:
        if len(value.shape) < 3:
            return None
        return self.closed(self.normalised(self.reals(self.codes(value))))

    def softmax(self, op: str, value: Value) -> Value | None:
        rank = len(value.shape)
        if rank not in (2, 3, 4):
            return None
        axis = int(self.random.integers(-rank, rank))
        made = self.node(op, [self.reals(self.codes(value)).name], axis=axis)
        spread = 2 / max(value.shape[axis], 2)
        return self.closed(replace(self.like(value, made, value.shape, spread), is_signed=False))

    def own_softmax(self, op: str, value: Value) -> Value | None:
        """QLinearSoftmax of ONNX Runtime, of old opsets too."""
        rank, codes = len(value.shape), self.codes(value)
        if rank not in (2, 3, 4):
            return None
        axis, opset = int(self.random.integers(-rank, rank)), self.of(11, 13)
        over = value.shape[axis % rank :] if opset < 13 else value.shape[axis : axis + 1 or None]
        made = replace(codes, scale=float(self.near(2 / max(np.prod(over), 2) / 127)))
        ends = [codes.name, *self.ends_of(codes), *self.ends_of(made)]
        return replace(made, name=self.node(op, ends, domain=CONTRIB, axis=axis, opset=opset))

    def own_function(self, op: str, value: Value) -> Value:
        """QLinearSigmoid or QLinearLeakyRelu of ONNX Runtime."""
        codes = self.codes(value)
        made = replace(codes, scale=float(self.near(1 / 127 if op == "QLinearSigmoid" else codes.scale)))
        slope: dict[str, Any] = {} if op == "QLinearSigmoid" else {"alpha": self.of(0.1, -0.2)}
        ends = [codes.name, *self.ends_of(codes), *self.ends_of(made)]
        return replace(made, name=self.node(op, ends, domain=CONTRIB, **slope))

    def again_scaled(self, _: str, value: Value) -> Value:
        """Quantised once more, by another scale."""
        return self.quantised(self.reals(self.codes(value)))

    def the_same(self, op: str, value: Value) -> Value:
        return self.closed(replace(self.reals(value), name=self.node(op, [self.reals(value).name])))


Operator = Callable[[Any, Value], Value | None]


def _way(method: Callable[..., Value | None], op: str) -> Operator:
    return lambda net, value: method(net, op, value)


def _broadcasts(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes broadcast to one of them."""
    pairs = zip(one[::-1], other[::-1], strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs) and len(one) > 1 < len(other)


def _joins(one: Sequence[int], other: Sequence[int], axis: int) -> bool:
    return len(one) == len(other) and all(
        a == b for at, (a, b) in enumerate(zip(one, other, strict=True)) if at != axis
    )


def _longer(value: Value, axis: int, times: int) -> tuple[int, ...]:
    return tuple(size * times if at == axis else size for at, size in enumerate(value.shape))


MOVES = ("Transpose", "Slice", "Split", "Gather", "Pad", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
BLOCKS = ("DepthToSpace", "SpaceToDepth")
OPERATORS: dict[str, tuple[int, Operator]] = {
    **{op: (least, _way(Programs.unary, op)) for op, (least, _) in UNARY.items()},
    **{op: (13, _way(Programs.of_positive, op)) for op in ("Log", "Sqrt", "Reciprocal")},
    **{op: (13, _way(Programs.with_number, op)) for op in ("Max", "Min", "Pow", "PRelu")},
    **{op: (9, _way(Programs.clamped, op)) for op in ("Relu", "Clip")},
    **{op: (9, _way(Programs.pair, op)) for op in ("Add", "Mul", "Sub", "Div", "Sum")},
    **{f"{CONTRIB}.{op}": (9, _way(Programs.own_pair, op)) for op in ("QLinearAdd", "QLinearMul")},
    "Concat": (9, _way(Programs.concat, "Concat")),
    f"{CONTRIB}.QLinearConcat": (9, _way(Programs.concat, "QLinearConcat")),
    **{op: (13, _way(Programs.moved, op)) for op in (*MOVES, *BLOCKS)},
    **{op: (12, _way(Programs.pool_of, op)) for op in ("MaxPool", "AveragePool")},
    f"{CONTRIB}.QLinearAveragePool": (12, _way(Programs.pool_of, "QLinearAveragePool")),
    "GlobalAveragePool": (9, _way(Programs.mean, "GlobalAveragePool")),
    f"{CONTRIB}.QLinearGlobalAveragePool": (9, _way(Programs.mean, "QLinearGlobalAveragePool")),
    "ReduceMean": (13, _way(Programs.mean, "ReduceMean")),
    "Resize": (13, _way(Programs.resize, "Resize")),
    **{op: (13, _way(Programs.matrix, op)) for op in ("MatMul", "Gemm", "QLinearMatMul")},
    f"{CONTRIB}.QGemm": (13, _way(Programs.matrix, "QGemm")),
    "ConvTranspose": (13, _way(Programs.conv_transpose, "ConvTranspose")),
    "BatchNormalization": (9, _way(Programs.normalised_alone, "BatchNormalization")),
    "Softmax": (13, _way(Programs.softmax, "Softmax")),
    f"{CONTRIB}.QLinearSoftmax": (13, _way(Programs.own_softmax, "QLinearSoftmax")),
    **{f"{CONTRIB}.{op}": (13, _way(Programs.own_function, op)) for op in ("QLinearSigmoid", "QLinearLeakyRelu")},
    "QuantizeLinear": (9, _way(Programs.again_scaled, "QuantizeLinear")),
    "DequantizeLinear": (9, _way(Programs.again_scaled, "DequantizeLinear")),
    **{op: (9, _way(Programs.the_same, op)) for op in ("Identity", "Dropout")},
}
"""How each operator is drawn: the first opset that it is drawn in, and its method."""


class OldPrograms(Programs):
    """Of the last opset that has Upsample, which is older than quantisers: all is float."""

    FORMS, OPSETS, FLOAT_IMAGES = ("qdq",), (9,), 1.0

    def drawn(self) -> Drawn:
        shape = self.image.shape if self.is_image(self.image) else (1, 3, 5, 4)
        self.inputs, self.feed = [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)], {}
        self.feed["image"] = self.random.standard_normal(shape).astype(np.float32)
        self.pool = [Real("image", shape)]
        for _ in range(self.upto(4)):
            way = self.of(UPSAMPLE, *(OPERATORS[op][1] for op in ("Add", "Mul", "Concat", "Relu", "GlobalAveragePool")))
            made = way(self, self.of(*self.pool))
            self.pool += [made] if made and np.prod(made.shape) <= MOST_ELEMENTS else []
        self.pool += [made] if (made := UPSAMPLE(self, self.pool[0])) else []
        return Drawn(self.ended_by(self.outputs()), self.feed)

    def closed(self, real: Real) -> Value:
        return self.relu(real) if self.chance(0.2) else real


UPSAMPLE = _way(Programs.resize, "Upsample")
