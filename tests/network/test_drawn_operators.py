"""Drawn operators between chains: each code by numpy is one that float32 can give of the real number before it.

That number is ONNX Runtime's, node by node, and ONNX's evaluator's. Pools are crossed: ceil_mode, padding that counts,
windows that are cut, signs of codes. What import says that an operator moves is what the program's steps move.
"""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from hexconv.errors import Unsupported
from hexconv.model import import_model
from hexconv.network.answer import answer
from hexconv.network.built_network import Wanted, read_network
from hexconv.network.program_steps import Operation, moved_bytes
from tests.draws import LOWERED
from tests.network.models import as_read
from tests.verify.networks import IMAGE, Network

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")

WANTED = Wanted(1 << 20, "llvm")
BATCH, CHANNELS, ROWS, COLUMNS = IMAGE
SHAPE: list[int] = [*IMAGE]
NEAR = 2e-4
"""Steps that float32 may be off by: a sum of some ten numbers of at most 2**9 steps each."""
OF_MATRICES = ("MatMul", "Gemm", "Gemm with a bias")
OF_MANY = 5e-3
"""The same of a sum of some hundred."""


class Drawn(Network):
    """One operator between codes; its result is an output before and behind its quantiser."""

    def __init__(self, seed: int, dtype: str) -> None:
        super().__init__(seed=seed)
        self.dtype_of_codes, self.opset = dtype, int(self.random.choice([19, 21]))
        low = np.iinfo(dtype).min
        self.image_ends = np.float32(self.random.uniform(0.01, 0.03)), int(self.random.integers(low, low + 256))
        self.made_ends = np.float32(self.random.uniform(0.005, 0.05)), int(self.random.integers(low, low + 256))
        self.codes = self.node("QuantizeLinear", ["image", *self.ends(*self.image_ends, dtype)])

    def image(self) -> str:
        return self.node("DequantizeLinear", [self.codes, *self.ends(*self.image_ends, self.dtype_of_codes)])

    def again(self, real: str) -> str:
        """A result in codes of another scale and zero point, as the next operator reads it."""
        scale, zero = np.float32(self.random.uniform(0.01, 0.03)), int(self.random.integers(0, 100))
        ends = self.ends(scale, zero, self.dtype_of_codes)
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [real, *ends]), *ends])

    def pooled(self, side: int) -> str:
        """The largest of each square of pixels."""
        return self.node("MaxPool", [self.image()], kernel_shape=[side, side], strides=[side, side])

    def ended(self, real: str) -> tuple[str, str]:
        return real, self.node("QuantizeLinear", [real, *self.ends(*self.made_ends, self.dtype_of_codes)])


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    """Attributes of a pool that ONNX allows: its padding is less than its window."""
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    sides = [draw(st.integers(0, kernel[at % 2] - 1)) for at in range(4)]
    strides = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    return {"kernel_shape": kernel, "strides": strides, "pads": sides, "ceil_mode": draw(st.integers(0, 1))}


SEEDS, DTYPES = st.integers(0, 999), st.sampled_from(["uint8", "int8"])


@LOWERED
@given(SEEDS, DTYPES, pools(), st.sampled_from(["AveragePool", "MaxPool"]), st.integers(0, 1))
def test_a_pool_means_what_onnx_says(seed: int, dtype: str, told: dict[str, Any], op: str, counts: int) -> None:
    net = Drawn(seed, dtype)
    told |= {"count_include_pad": counts} if op == "AveragePool" else {}
    compare(net, *net.ended(net.node(op, [net.image()], **told)))


@LOWERED
@given(SEEDS, DTYPES, pools(), st.integers(0, 1))
def test_onnx_runtimes_own_average_pool_counts_whole_windows(
    seed: int, dtype: str, told: dict[str, Any], counts: int
) -> None:
    net = Drawn(seed, dtype)
    ends = [*net.ends(*net.image_ends, dtype), *net.ends(*net.made_ends, dtype)]
    told |= {"count_include_pad": counts}
    made = net.node("QLinearAveragePool", [net.codes, *ends], domain="com.microsoft", **told)
    compare(net, "", net.node("DequantizeLinear", [made, *net.ends(*net.made_ends, dtype)]))


@LOWERED
@given(SEEDS, DTYPES, st.sampled_from(["Add", "Mul"]), st.sampled_from([(3, 20, 20), (3, 1, 1), (1, 20, 20), (1,)]))
def test_sums_and_products_mean_what_onnx_says(seed: int, dtype: str, op: str, shape: tuple[int, ...]) -> None:
    net = Drawn(seed, dtype)
    compare(net, *net.ended(net.node(op, [net.image(), net.constant(net.random.normal(0, 1, shape), "float32")])))


@LOWERED
@given(
    SEEDS,
    DTYPES,
    st.sampled_from(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]),
    st.sampled_from(["linear", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]),
    st.tuples(st.integers(1, 50), st.integers(1, 50)),
)
def test_a_resize_means_what_onnx_says(seed: int, dtype: str, places: str, how: str, sizes: tuple[int, int]) -> None:
    """Nearest ones are multiples or a half: float32 puts other coordinates to another side of a half."""
    net = Drawn(seed, dtype)
    told: dict[str, Any] = {"mode": "linear"} if how == "linear" else {"mode": "nearest", "nearest_mode": how}
    sizes = sizes if how == "linear" else (ROWS * (1 + sizes[0] % 3), COLUMNS // (1 + sizes[1] % 2))
    given_sizes = net.constant([BATCH, CHANNELS, *sizes], "int64")
    resized = net.node("Resize", [net.image(), "", "", given_sizes], coordinate_transformation_mode=places, **told)
    compare(net, *net.ended(resized))


@LOWERED
@given(SEEDS, DTYPES, st.integers(1, 3), st.integers(2, 3), st.booleans())
def test_a_concat_means_what_onnx_says(seed: int, dtype: str, axis: int, parts: int, from_the_end: bool) -> None:
    net = Drawn(seed, dtype)
    read = [net.image(), *(net.again(net.node("Relu", [net.image()])) for _ in range(parts - 1))]
    joined = net.node("Concat", read, axis=axis - 4 if from_the_end else axis)
    accounted(net, compare(net, *net.ended(joined)))


@LOWERED
@given(SEEDS, DTYPES, st.sampled_from(["DCR", "CRD"]), st.sampled_from([2, 3]), st.integers(1, 3))
def test_depth_to_space_means_what_onnx_says(seed: int, dtype: str, mode: str, block: int, channels: int) -> None:
    net = Drawn(seed, dtype)
    deep = net.again(net.node("Concat", [net.image()] * block**2 * channels, axis=1))
    accounted(net, compare(net, *net.ended(net.node("DepthToSpace", [deep], blocksize=block, mode=mode))))


@LOWERED
@given(SEEDS, DTYPES, st.sampled_from([4, 5, 7]), st.integers(1, 40), st.integers(0, 1), st.sampled_from(OF_MATRICES))
def test_products_of_matrices_mean_what_onnx_says(
    seed: int, dtype: str, side: int, made: int, turned: int, how: str
) -> None:
    net, read = Drawn(seed, dtype), CHANNELS * (ROWS // side) * (COLUMNS // side)
    flat = net.node("Flatten", [net.again(net.pooled(side))])
    if how == "MatMul":
        found = net.node("MatMul", [flat, net.weights8(read, made, axis=1)])
    else:
        weights = net.weights8(*((made, read) if turned else (read, made)), axis=1 - turned)
        found = net.node(
            "Gemm", [flat, weights, *([net.weights(made)] if how == "Gemm with a bias" else [])], transB=turned
        )
    accounted(net, compare(net, *net.ended(found), near=OF_MANY), converts=True)


@LOWERED
@given(SEEDS, DTYPES, pools(), st.tuples(st.integers(1, 2), st.integers(1, 2)), st.sampled_from([1, 3]), st.booleans())
def test_a_transposed_conv_means_what_onnx_says(
    seed: int, dtype: str, told: dict[str, Any], apart: tuple[int, int], groups: int, has_bias: bool
) -> None:
    net = Drawn(seed, dtype)
    told = {name: told[name] for name in ("strides", "pads")} | {"kernel_shape": told["kernel_shape"]}
    more = [int(net.random.integers(0, stride)) for stride in told["strides"]]
    told |= {"dilations": apart, "group": groups, "output_padding": more}
    weights = net.weights8(CHANNELS, 2, *told["kernel_shape"], axis=1)
    found = net.node("ConvTranspose", [net.image(), weights, *([net.weights(2 * groups)] if has_bias else [])], **told)
    accounted(net, compare(net, *net.ended(found), near=OF_MANY))


def accounted(net: Drawn, made: str, converts: bool = False) -> None:
    """Hold what import says of operators against the program's steps, some of which may convert between layouts."""
    real = net.node("DequantizeLinear", [made, *net.ends(*net.made_ends, net.dtype_of_codes)])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.onnx"
        onnx.save(net.model(real), path)
        entries = import_model(path).network.operator
        steps = as_read(path)
    stored = sum(numpy_helper.to_array(each).nbytes for each in net.initializers)
    assert len(steps) == len(entries) or (converts and len(steps) > len(entries))
    for entry in entries:
        reads = [moved_bytes(step)[0] for step in steps if step.result.bytes == entry.writes_bytes]
        assert any(0 <= entry.reads_bytes - read <= stored for read in reads)


def compare(net: Drawn, real: str, made: str, near: float = NEAR) -> str:
    """Hold numpy against both witnesses; without a `real` result, the numbers of codes are compared. Returns `made`."""
    image = (net.random.standard_normal(IMAGE) * 1.5).astype(np.float32)
    outputs = [name for name in (real, made) if name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.onnx"
        model = net.model(*outputs)
        onnx.save(model, path)
        options: Any = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        try:
            theirs = onnxruntime.InferenceSession(str(path), options).run(outputs, {"image": image})
        except Exception:
            reject()  # it does not take these attributes
        try:
            ours = answer(read_network(path, WANTED), {"image": image})[made]
        except Unsupported:
            reject()  # a window that starts behind the image, which ONNX and ONNX Runtime count otherwise
    if not real:
        steps = (ours - theirs[0]) / net.made_ends[0]
        assert np.max(np.abs(steps)) < 1.5
        assert np.count_nonzero(np.abs(steps) > 0.5) <= 0.002 * steps.size + 1
        return made
    assert_rounded(ours.astype(np.int64), theirs[0], net, near)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = ReferenceEvaluator(model).run([real], {"image": image})[0]
    except (ValueError, IndexError):
        return made  # ONNX's evaluator fails where ceil_mode cuts some windows
    if found.shape == ours.shape and np.allclose(found, theirs[0], atol=1e-5):  # it has other faults there, too
        assert_rounded(ours.astype(np.int64), found, net, near)
    return made


def assert_rounded(codes: np.ndarray, real: np.ndarray, net: Drawn, near: float) -> None:
    """Each code is a nearest one of a real number, within float32's error."""
    ends = np.iinfo(net.dtype_of_codes)
    steps = np.clip(real.astype(np.float64) / net.made_ends[0] + net.made_ends[1], ends.min, ends.max)
    assert np.max(np.abs(codes - steps)) <= 0.5 + near


def moved(net: Drawn, how: str, read: str, shape: list[int]) -> tuple[str, list[int]]:
    """Move the elements of a tensor of four axes; the result and its shape."""
    random = net.random
    axis = int(random.integers(0, 4))
    if how == "Transpose":
        order = random.permutation(4).tolist()
        return net.node("Transpose", [read], perm=order), [shape[at] for at in order]
    if how == "Slice":
        step = int(random.choice([-2, -1, 1, 2]))
        start = int(random.integers(0, shape[axis]))
        ends = [9999] if step > 0 else [-9999]
        given_sizes = [net.constant([value], "int64") for value in (start, ends[0], axis, step)]
        return net.node("Slice", [read, *given_sizes]), cut(shape, axis, len(range(shape[axis])[start::step]))
    if how == "Split":
        part = int(random.integers(1, shape[axis])) if shape[axis] > 1 else 1
        sizes = [part, shape[axis] - part] if shape[axis] > 1 else [1]
        first = net.node("Split", [read, net.constant(sizes, "int64")], outputs=len(sizes), axis=axis)
        return first + ("1" if len(sizes) > 1 else ""), cut(shape, axis, sizes[-1])
    if how == "Gather":
        indices = random.integers(-shape[axis], shape[axis], int(random.integers(1, 9)))
        return net.node("Gather", [read, net.constant(indices, "int64")], axis=axis), cut(shape, axis, len(indices))
    if how == "Pad":
        pads = random.integers(0, 3, 8)
        made = net.node("Pad", [read, net.constant(pads, "int64"), net.constant(0.25, "float32")])
        return made, [size + int(pads[at] + pads[4 + at]) for at, size in enumerate(shape)]
    if how == "MaxPool":
        sides = [min(size, 2) for size in shape[2:]]
        return net.node(how, [read], kernel_shape=sides), [*shape[:2], *(size - min(size, 2) + 1 for size in shape[2:])]
    if how == "joined":
        made = [*shape[:2], 1, shape[2] * shape[3]]
        return net.node("Reshape", [read, net.constant(made, "int64")]), made
    if how == "shuffle":
        parts = [shape[0], 1, *shape[1:]] if shape[1] % 3 else [shape[0], 3, shape[1] // 3, *shape[2:]]
        apart = net.node("Reshape", [read, net.constant(parts, "int64")])
        turned = net.node("Transpose", [apart], perm=[0, 2, 1, 3, 4])
        return net.node("Reshape", [turned, net.constant(shape, "int64")]), shape
    if shape[2] % 2 or shape[3] % 2:
        return read, shape
    made = [shape[0], shape[1] * 4, shape[2] // 2, shape[3] // 2]
    return net.node("SpaceToDepth", [read], blocksize=2), made


def cut(shape: list[int], axis: int, size: int) -> list[int]:
    return [*shape[:axis], size, *shape[axis + 1 :]]


SELECTS = ("Transpose", "Slice", "Split", "Gather", "shuffle", "SpaceToDepth", "MaxPool", "joined")
MOVES = (*SELECTS, "Pad")


@LOWERED
@given(SEEDS, DTYPES, st.lists(st.tuples(st.sampled_from(MOVES), st.booleans()), min_size=1, max_size=4))
def test_elements_that_move_are_where_onnx_says(seed: int, dtype: str, hows: list[tuple[str, bool]]) -> None:
    """One move after the other, with quantisers of one scale or of others between them."""
    net = Drawn(seed, dtype)
    at, shape = net.image(), SHAPE
    for how, is_quantised in hows:
        at, shape = moved(net, how, at, shape)
        at = net.again(at) if is_quantised else at
    compare(net, *net.ended(net.node("Identity", [at])))


@LOWERED
@given(
    SEEDS,
    DTYPES,
    st.sampled_from([None, (), (CHANNELS, 1, 1)]),
    st.lists(st.sampled_from(SELECTS), min_size=1, max_size=3),
)
def test_numbers_that_are_selected_are_codes(
    seed: int, dtype: str, by: tuple[int, ...] | None, hows: list[str]
) -> None:
    """Real numbers that move, or of which the largest are taken, before they are quantised: none lies in memory."""
    net = Drawn(seed, dtype)
    at, shape = net.image(), SHAPE
    if by is not None:
        at = net.node("Div", [at, net.constant(net.random.uniform(0.5, 2, by), "float32")])
    for how in hows:
        at, shape = moved(net, how, at, shape)
    made = net.node("QuantizeLinear", [at, *net.ends(*net.made_ends, dtype)])
    real = net.node("DequantizeLinear", [made, *net.ends(*net.made_ends, dtype)])
    compare(net, "", real)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.onnx"
        onnx.save(net.model(real), path)
        steps = read_network(path, WANTED).steps
    between = [operand.dtype for step in steps for operand in (*step.sources[:1], step.result)]
    assert between.count("float32") == 2, between


@LOWERED
@given(SEEDS, DTYPES, st.integers(1, 3), st.booleans(), st.booleans())
def test_parts_of_a_split_side_by_side_are_the_whole(
    seed: int, dtype: str, axis: int, is_in_order: bool, is_used_apart: bool
) -> None:
    """A concat of all parts in their order reads what was split; a part that is read elsewhere is copied, too."""
    net = Drawn(seed, dtype)
    cuts = sorted(net.random.choice(range(1, SHAPE[axis]), min(SHAPE[axis] - 1, 2), replace=False).tolist())
    sizes = np.diff([0, *cuts, SHAPE[axis]])
    first = net.node("Split", [net.image(), net.constant(sizes, "int64")], outputs=len(sizes), axis=axis)
    parts = [first, *(f"{first}{at}" for at in range(1, len(sizes)))]
    more = [net.pooled(1), net.node("Neg", [parts[0]])] if is_used_apart else [net.pooled(1)]
    ordered = [*more[:1], *(parts if is_in_order else parts[::-1]), *more[1:]]
    made = net.node("Concat", ordered, axis=axis)
    real, codes = net.ended(made)
    compare(net, real, codes)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.onnx"
        onnx.save(net.model(net.node("DequantizeLinear", [codes, *net.ends(*net.made_ends, dtype)])), path)
        steps = read_network(path, WANTED).steps
    copies = [step for step in steps if isinstance(step, Operation) and step.operator == "view"]
    assert len(copies) == (0 if is_in_order else len(parts)) + (is_in_order and is_used_apart)


UNARY = {
    "Sigmoid": {},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.4},
    "Tanh": {},
    "LeakyRelu": {"alpha": 0.1},
    "Softplus": {},
    "Exp": {},
    "Abs": {},
}


@LOWERED
@given(SEEDS, DTYPES, st.sampled_from([*UNARY, "BatchNormalization", "Softmax", "Sub", "Div", "ReduceMean"]))
def test_functions_of_numbers_mean_what_onnx_says(seed: int, dtype: str, op: str) -> None:
    net = Drawn(seed, dtype)
    if op in UNARY:
        made = net.node(op, [net.image()], **UNARY[op])
    elif op == "BatchNormalization":
        given_vectors = [net.random.uniform(0.5, 2, CHANNELS) for _ in range(4)]
        made = net.node(op, [net.image(), *(net.constant(vector, "float32") for vector in given_vectors)])
    elif op == "ReduceMean":
        made = net.node(op, [net.image(), net.constant([2, 3], "int64")], keepdims=int(net.random.integers(0, 2)))
    elif op == "Softmax":
        made = net.node(op, [net.image()], axis=int(net.random.integers(-4, 4)))
    else:
        made = net.node(op, [net.image(), net.constant(net.random.uniform(0.5, 2, (CHANNELS, 1, 1)), "float32")])
    compare(net, *net.ended(made))
