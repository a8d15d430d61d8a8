"""Files that are no models, or models that lie: one line and exit code 2, and nothing written outside of the folder."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from hexconv.cli.app import exit_code
from tests.model.builder import OPSET, Builder
from tests.model.quantised import Quantised

Capture = pytest.CaptureFixture[str]


def small() -> onnx.ModelProto:
    net = Builder("small", (1, 3, 8, 8))
    x = net.node("Relu", [net.batch_norm(net.conv("image", (4, 3, 3, 3), "first"), 4)])
    return net.model(net.conv(x, (2, 4, 3, 3), "second"))


def refusal(path: Path, capsys: Capture, *options: str) -> str:
    folder = path.parent / "out"
    assert exit_code(["import", str(path), "-o", str(folder), *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "Traceback" not in err
    assert not folder.exists()
    return err


@pytest.mark.parametrize(
    "content",
    [b"", b"hello, this is no model\n" * 9, b"\x08\x07", bytes(1000), b"\xff" * 64],
    ids=["empty", "text", "tiny", "zeros", "ones"],
)
def test_what_is_no_onnx_file_is_one_line(content: bytes, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert "a valid ONNX model" in refusal(path, capsys)


def test_a_truncated_model_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    path, whole = tmp_path / "m.onnx", small().SerializeToString()
    for size in range(1, len(whole) - 1, len(whole) // 20):
        path.write_bytes(whole[:size])
        refusal(path, capsys)


def test_a_name_that_is_no_text_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(small().SerializeToString().replace(b"second", b"sec\xffnd"))
    assert "no UTF-8" in refusal(path, capsys)


@pytest.mark.parametrize(
    ("constant", "number", "reason"),
    [
        (0, np.inf, "its filter has 27 values that are no finite float32 with BatchNormalization folded"),
        (2, 3e38, "its bias has 1 values that are no finite float32"),
        (5, -1, "its filter has 27 values"),
    ],
    ids=["infinite filter", "scale that overflows", "negative variance"],
)
def test_weights_that_fold_to_no_numbers_cost_their_own_conv_alone(
    constant: int, number: float, reason: str, tmp_path: Path, capsys: Capture
) -> None:
    path, model = tmp_path / "m.onnx", small()
    values = numpy_helper.to_array(model.graph.initializer[constant]).copy()
    values[0] = number
    model.graph.initializer[constant].CopyFrom(numpy_helper.from_array(values, f"constant{constant}"))
    path.write_bytes(model.SerializeToString())
    for options in ([], ["--weights"]):
        assert exit_code(["import", str(path), "-o", str(tmp_path / "out"), *options]) == 0
        said = capsys.readouterr().out
        assert f"first (Conv): in no chain: {reason}" in said
        assert "m.onnx: 1 of 2 convs in 1 chain" in said


@pytest.mark.parametrize("number", [0, -1, np.nan, np.inf, 1e-45, 3e38])
def test_scales_and_bounds_that_are_no_use_are_told(number: float, tmp_path: Path, capsys: Capture) -> None:
    """Accepted, not taken, or refused in a line; a warning of numpy's is an error here."""
    net = Quantised("q", (1, 4, 6, 6), "uint8")
    x = net.qlinear("image", (4, 4, 3, 3), (3, 128, 5), pads=[1, 1, 1, 1])
    y = net.node("Clip", [net.qdq(x, (4, 4, 3, 3), 5, "float32"), net.scale(0), net.scale(6)])
    whole = net.model(net.quantize(y, 0.05, 0)).SerializeToString()
    floats = [i for i, tensor in enumerate(net.initializers) if tensor.data_type == onnx.TensorProto.FLOAT]
    assert len(floats) == 9
    for place in floats:
        model = onnx.load_from_string(whole)
        constant = model.graph.initializer[place]
        values = np.full_like(numpy_helper.to_array(constant), number)
        constant.CopyFrom(numpy_helper.from_array(values, constant.name))
        path = tmp_path / "m.onnx"
        path.write_bytes(model.SerializeToString())
        code = exit_code(["import", str(path), "-o", str(tmp_path / f"out{place}"), "--weights"])
        assert code in (0, 1) or capsys.readouterr().err.count("\n") == 1


def test_what_is_no_file_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    assert "No such file" in refusal(tmp_path / "none.onnx", capsys)
    (tmp_path / "folder").mkdir()
    assert "no regular file" in refusal(tmp_path / "folder", capsys)


def test_a_file_beyond_protobuf_s_limit_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 2**31)  # sparse: takes no room
    assert "at most 2147483647; save the weights as external data" in refusal(path, capsys)


def external(folder: Path) -> Path:
    onnx.save(small(), folder / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    return folder / "m.onnx"


def test_external_data_is_read_from_beside_the_model(tmp_path: Path) -> None:
    assert exit_code(["import", str(external(tmp_path)), "-o", str(tmp_path / "out"), "--weights"]) == 0
    expected = numpy_helper.to_array(small().graph.initializer[6])
    assert np.array_equal(np.load(tmp_path / "out" / "01-first.npz")["filter2"], expected)


def test_external_data_that_is_missing_cut_short_or_elsewhere_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    path = external(tmp_path)
    (tmp_path / "m.bin").write_bytes(b"12")
    assert "m.bin of 2 bytes, where " in refusal(path, capsys)
    (tmp_path / "m.bin").unlink()
    assert "m.bin" in refusal(path, capsys)
    model = onnx.load(path, load_external_data=False)
    for place in ("../../../etc/passwd", "/etc/passwd"):
        model.graph.initializer[0].external_data[0].value = place
        path.write_bytes(model.SerializeToString())
        assert "passwd" in refusal(path, capsys)


def test_external_data_of_attributes_is_read_from_beside_the_model_too(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from the working folder, which may have another file of that name."""
    net = Builder("attribute", (1, 4, 8, 8))
    weights = numpy_helper.from_array(np.full((4, 4, 1, 1), 2, np.float32), "w")
    made = net.node("Constant", [], value=weights)
    onnx.save(
        net.model(net.node("Conv", ["image", made], "conv")),
        tmp_path / "m.onnx",
        save_as_external_data=True,
        location="m.bin",
        size_threshold=0,
        convert_attribute=True,
    )
    assert b"m.bin" in (tmp_path / "m.onnx").read_bytes()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    np.full((4, 4, 1, 1), 77, np.float32).tofile("m.bin")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--weights"]) == 0
    assert np.all(np.load(tmp_path / "out" / "01-conv.npz")["filter1"] == 2)
    capsys.readouterr()
    (tmp_path / "m.bin").write_bytes(b"12")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "none")]) == 2
    assert "m.bin of 2 bytes, where " in capsys.readouterr().err


def test_external_data_beyond_its_tensor_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    """What states no length is read to the end of its file, which may be a terabyte of nothing."""
    path = external(tmp_path)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        kept = [each for each in tensor.external_data if each.key == "location"]
        del tensor.external_data[:]
        tensor.external_data.extend(kept)
    path.write_bytes(model.SerializeToString())
    os.truncate(tmp_path / "m.bin", 1 << 40)
    assert "which has 1728 at most" in refusal(path, capsys)
    for key in ("length", "offset"):
        model.graph.initializer[0].external_data.add(key=key, value="-1")
        path.write_bytes(model.SerializeToString())
        refusal(path, capsys)
        del model.graph.initializer[0].external_data[-1]


def test_names_are_no_paths_and_no_markup(tmp_path: Path, capsys: Capture) -> None:
    net = Builder("names", (1, 2, 4, 4))
    names = ["../../evil", "/etc/cron.d/evil", 'a"b\\n\n[x]', "\x1b[2J[bold]é", "." * 300, "network"]
    x = "image"
    for index, name in enumerate(names):
        x = net.node("Softsign", [net.conv(x, (2, 2, 1, 1), name)], f"end{index}")  # no conv takes it
    onnx.save(net.model(x), tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "deep" / "out")]) == 0
    out, _ = capsys.readouterr()
    assert "\x1b[2J" not in out
    assert sorted(path.name for path in tmp_path.rglob("*.toml")) == [
        "01-evil.toml",
        "02-etc-cron-d-evil.toml",
        "03-a-b-n-x.toml",
        "04-2J-bold.toml",
        "05-conv.toml",
        "06-network.toml",
        "network.toml",
    ]
    assert {path.parent for path in tmp_path.rglob("*.toml")} == {tmp_path / "deep" / "out"}


def test_constants_too_large_to_fold_are_not_folded(tmp_path: Path, capsys: Capture) -> None:
    net = Builder("bomb", (1, 4, 8, 8))
    ones = net.node("ConstantOfShape", [net.constant([2**20, 2**20, 2**10], "int64")])
    mean = net.node("ReduceMean", [ones])
    x = net.node("Clip", [net.conv("image", (4, 4, 1, 1), "conv"), mean], "clip")
    onnx.save(net.model(x), tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 0
    assert "Clip clip leaves it a range" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["products", "memory", "windows", "expression"])
def test_constants_that_take_too_long_or_too_much_are_not_folded(kind: str, tmp_path: Path, capsys: Capture) -> None:
    """A few bytes of a file ask for a product of 2**39 steps, windows of 2**24, 16 GiB, or a search without end."""
    net = Builder("bomb", (1, 4, 8, 8))
    if kind == "expression":
        text = numpy_helper.from_array(np.array(["a" * 40 + "b"], object), "text")
        made = net.node(
            "Cast", [net.node("RegexFullMatch", [net.node("Constant", [], value=text)], pattern="(a+)+$")], to=1
        )
    else:
        one = numpy_helper.from_array(np.array([1], np.int32))
        made = net.node("ConstantOfShape", [net.constant([2**13, 2**13], "int64")], value=one)
        if kind == "products":
            made = net.node("MatMul", [made, made])
        elif kind == "memory":
            for _ in range(64):
                made = net.node("Neg", [made])
        else:
            real = net.node("Cast", [net.node("Reshape", [made, net.constant([1, 1, 2**13, 2**13], "int64")])], to=1)
            made = net.node("AveragePool", [real], kernel_shape=[2**12, 2**12])
        made = net.node("Cast", [made], to=1)
    least = net.node("ReduceMax", [made], keepdims=0)
    x = net.node("Clip", [net.conv("image", (4, 4, 1, 1), "conv"), least], "clip")
    model = net.model(x)
    model.opset_import[0].version = max(model.opset_import[0].version, 20)
    onnx.save(model, tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 0
    assert "Clip clip leaves it a range" in capsys.readouterr().out


def test_convs_larger_than_any_case_are_not_taken(tmp_path: Path, capsys: Capture) -> None:
    net = Builder("huge", (1, 1, 2**30, 2**30))
    onnx.save(net.model(net.conv("image", (1, 1, 1, 1), "conv")), tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 1
    assert "less than or equal to 1048576" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "numbers"), [("strides", [0, 1]), ("dilations", [1, -2]), ("pads", [2**62] * 4)])
def test_one_conv_of_impossible_numbers_hides_no_other(
    name: str, numbers: list[int], tmp_path: Path, capsys: Capture
) -> None:
    net = Builder("two", (1, 3, 8, 8))
    good, bad = net.conv("image", (4, 3, 3, 3), "good"), net.conv("image", (4, 3, 1, 1), "bad")
    model = net.model(good, bad)
    node = next(node for node in model.graph.node if node.name == "bad")
    others = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend([*others, helper.make_attribute(name, numbers)])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "m.onnx: 1 of 2 convs in 1 chain" in said
    assert "bad (Conv): in no chain: its case: chain.conv." in said


@pytest.mark.parametrize("quantised", [False, True], ids=["float", "integer"])
@pytest.mark.parametrize("shape", [(4, 4, 1, 1), (3,), (1,), ()], ids=str)
def test_a_bias_that_is_none_of_every_channel_is_not_taken(
    shape: tuple[int, ...], quantised: bool, tmp_path: Path, capsys: Capture
) -> None:
    net = Quantised("b", (1, 4, 6, 6), "uint8") if quantised else Builder("b", (1, 4, 6, 6))
    if isinstance(net, Quantised):
        model = net.model(net.quantize(net.qdq("image", (4, 4, 1, 1), 1), 6 / 255, 0))
        name = next(node for node in model.graph.node if node.op_type == "Conv").input[2]
        name = next(node for node in model.graph.node if list(node.output) == [name]).input[0]
    else:
        model = net.model(net.batch_norm(net.conv("image", (4, 4, 1, 1), "conv"), 4))
        name = model.graph.node[0].input[2]
    bias = next(constant for constant in model.graph.initializer if constant.name == name)
    bias.CopyFrom(numpy_helper.from_array(np.ones(shape, numpy_helper.to_array(bias).dtype), name))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--weights"]) in (1, 2)
    said = "".join(capsys.readouterr())
    assert "bias" in said or "shape" in said


def test_a_long_line_of_constants_is_no_recursion(tmp_path: Path) -> None:
    net = Builder("deep", (1, 1, 2, 2))
    x = net.constant([[[[2.0]]]], "float32")
    for _ in range(1500):
        x = net.node("Identity", [x])
    onnx.save(net.model(net.node("Conv", ["image", x], "conv")), tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--weights"]) == 0
    assert np.load(tmp_path / "out" / "01-conv.npz")["filter1"].item() == 2.0


@pytest.mark.parametrize("quantised", [False, True], ids=["float", "integer"])
def test_flipped_bytes_never_end_in_a_traceback(quantised: bool, tmp_path: Path, capsys: Capture) -> None:
    net = Quantised("q", (1, 4, 6, 6), "uint8")
    model = net.model(net.quantize(net.relu6(net.qdq("image", (4, 4, 3, 3), 3)), 6 / 255, 0)) if quantised else small()
    random, whole = np.random.default_rng(0), model.SerializeToString()
    for _ in range(60):
        content = bytearray(whole)
        for place in random.integers(0, len(whole), 3):
            content[place] = random.integers(256)
        (tmp_path / "m.onnx").write_bytes(content)
        command = ["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--weights", "--target", "llvm"]
        assert (code := exit_code(command)) in (0, 1, 2)
        assert capsys.readouterr().err.count("\n") == (code == 2)


def test_an_old_network_of_the_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    out, mine = tmp_path / "out", tmp_path / "out" / "mine.toml"
    net = Builder("two", (1, 4, 8, 8))
    x = net.node("Softsign", [net.conv("image", (4, 4, 1, 1), "one")])
    onnx.save(net.model(net.conv(x, (4, 4, 1, 1), "two")), tmp_path / "two.onnx")
    onnx.save(small(), tmp_path / "small.onnx")
    assert exit_code(["import", str(tmp_path / "two.onnx"), "-o", str(out), "--weights"]) == 0
    mine.write_text("")
    assert exit_code(["import", str(tmp_path / "small.onnx"), "-o", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["01-first.toml", "mine.toml", "network.toml"]


def test_another_network_toml_is_not_written_over(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "network.toml").write_text("[network]\nname = 'mine'\n")
    onnx.save(small(), tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path)]) == 2
    assert "network.toml" in capsys.readouterr().err
    assert (tmp_path / "network.toml").read_text().endswith("'mine'\n")


@pytest.mark.parametrize("shape", ["image", "image=", "image=1,2", "image=1,3,8,x", "image=1,3,8,0", "nobody=1,3,8,8"])
def test_a_bad_shape_is_one_line(shape: str, tmp_path: Path, capsys: Capture) -> None:
    onnx.save(small(), tmp_path / "m.onnx")
    assert "--shape" in refusal(tmp_path / "m.onnx", capsys, "--shape", shape)


def test_a_shape_that_the_model_cannot_have_is_told_once_with_its_cause(tmp_path: Path, capsys: Capture) -> None:
    net = Builder("halves", (1, 3, "h", "w"))
    x = net.conv("image", (4, 3, 3, 3), "half", strides=[2, 2])
    x = net.node("Add", [x, net.constant(np.zeros((1, 4, 8, 8)), "float32")], "sum")
    for index in range(9):
        x = net.node("Sigmoid", [net.conv(x, (4, 4, 3, 3), f"conv{index}")])
    onnx.save(net.model(x), tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--shape", "image=1,3,9,9"]) == 0
    out = capsys.readouterr().out
    assert (
        out.count("shape inference ends at Add sum, which reads half_out [1, 4, 5, 5] and constant2 [1, 4, 8, 8]") == 1
    )
    assert "conv0, conv1, conv2 and 6 more" in out


def test_a_model_without_a_conv_has_no_chain_and_exits_1(tmp_path: Path, capsys: Capture) -> None:
    net = Builder("none", (1, 3, 8, 8))
    onnx.save(net.model(net.node("Relu", ["image"])), tmp_path / "m.onnx")
    assert exit_code(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().out == "m.onnx: 0 of 0 convs in 0 chains\n"


@pytest.mark.parametrize("way", ["doubling", "recursive", "in branches", "behind an overload"])
def test_functions_that_grow_without_end_are_one_line(way: str, tmp_path: Path, capsys: Capture) -> None:
    versions, functions = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)], list[onnx.FunctionProto]()
    overload: dict[str, Any] = {"overload": "large"} if way == "behind an overload" else {}

    def called(callee: str, source: str, made: str) -> onnx.NodeProto:
        return helper.make_node(callee, [source], [made], domain="local" if callee[0] == "F" else "", **overload)

    def branching(callee: str) -> list[onnx.NodeProto]:
        yes = helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True])
        then, other = (
            helper.make_graph(
                [called(callee, "x", f"{name}0"), called(callee, f"{name}0", name)],
                name,
                [],
                [helper.make_tensor_value_info(name, 1, None)],
            )
            for name in ("then", "other")
        )
        made = helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
        return [helper.make_node("Constant", [], ["yes"], value=yes), made]

    for level in range(40):
        callee = f"F{level if way == 'recursive' else level - 1}" if level or way == "recursive" else "Relu"
        nodes = [called(callee, a, b) for a, b in (("x", "t"), ("t", "y"))]
        nodes = branching(callee) if way == "in branches" and level else nodes
        functions.append(helper.make_function("local", f"F{level}", ["x"], ["y"], nodes, versions, **overload))
    for level in range(40 if overload else 0):
        small = [helper.make_node("Relu", ["x"], ["y"])]
        functions.append(helper.make_function("local", f"F{level}", ["x"], ["y"], small, versions, overload="small"))
    net = Builder("bomb", (1, 4, 8, 8))
    output = helper.make_tensor_value_info("called", 1, [1, 4, 8, 8])
    graph = helper.make_graph([called("F39", "image", "called")], "g", net.inputs, [output])
    made = helper.make_model(graph, opset_imports=versions, functions=functions, ir_version=10)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    refusal(tmp_path / "m.onnx", capsys)
