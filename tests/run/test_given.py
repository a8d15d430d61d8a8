"""Runs on given tensors: a model's own weights give the model's own numbers; files that can't be used are one line."""

import json
import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from hexconv.cli.app import exit_code
from hexconv.compute.computable import check_supported
from hexconv.compute.reference import convolution
from hexconv.errors import InputError, Unsupported
from hexconv.run.array_files import read_array, read_stored
from hexconv.run.given import bounded
from hexconv.spec import Chain, Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE, Dtype
from tests.draws import LOWERED
from tests.model.builder import Builder
from tests.model.quantised import Quantised

Capture = pytest.CaptureFixture[str]
TARGETS = ["llvm", pytest.param("hexagon", marks=pytest.mark.simulator)]
CASE = """[chain]
input = [1, 6, 6, 3]
dtype = "{}"
[[chain.conv]]
out_channels = 4
kernel = [3, 3]
bias = true
"""
NPZ = {"filter1": np.ones((4, 3, 3, 3), np.float32), "bias1": np.zeros(4, np.float32)}


def qlinear() -> onnx.ModelProto:
    net = Quantised("qlinear", (1, 8, 9, 9), "uint8")
    return net.model(net.qlinear("image", (40, 8, 3, 3), (100, 9, 30), filter_dtype="int8"))


def qdq() -> onnx.ModelProto:
    net = Quantised("qdq", (1, 8, 9, 9), "int8")
    return net.model(net.quantize(net.qdq("image", (12, 8, 3, 3), 3, strides=[2, 2]), 0.5, -20))


def float_pair() -> onnx.ModelProto:
    net = Builder("pair", (1, 3, 9, 9))
    x = net.node("Relu", [net.batch_norm(net.conv("image", (8, 3, 3, 3)), 8)])
    return net.model(net.conv(x, (5, 8, 1, 1)))


def case_of(folder: Path, dtype: str = "float32", **arrays: np.ndarray) -> Path:
    (folder / "mine.toml").write_text(CASE.format(dtype))
    if arrays:
        np.savez(folder / "mine.npz", allow_pickle=False, **arrays)
    return folder / "mine.toml"


def result(capsys: Capture, *words: object) -> dict[str, Any]:
    assert exit_code(["run", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)[0]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("network", "apart"), [(qlinear, 1), (qdq, 1), (float_pair, 1e-4)])
def test_an_imported_model_with_its_weights_gives_onnx_s_numbers(
    network: Callable[[], onnx.ModelProto], apart: float, target: str, tmp_path: Path, capsys: Capture
) -> None:
    model = network()
    onnx.save(model, tmp_path / "model.onnx")
    assert exit_code(["import", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "net"), "--weights"]) == 0
    capsys.readouterr()
    [case], kept = [path for path in (tmp_path / "net").glob("0*.toml")], tmp_path / "kept.npz"
    tensor = model.graph.input[0].type.tensor_type
    shape = [dim.dim_value for dim in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    image = np.random.default_rng(0).uniform(*((-1, 1) if dtype.kind == "f" else (0, 127)), shape).astype(dtype)
    np.savez(tmp_path / "image.npz", allow_pickle=False, input=np.moveaxis(image, 1, 3))
    row = result(capsys, case, "--input", tmp_path / "image.npz", "--target", target, "--save", kept)
    assert (row["weights"], row["input"]) == (str(case.with_suffix(".npz")), str(tmp_path / "image.npz"))
    [answer] = ReferenceEvaluator(model).run(None, {"image": image})
    expected = np.moveaxis(np.asarray(answer), 1, 3)
    with np.load(kept) as run:
        assert len(np.unique(run["output"])) > 20
        assert np.abs(run["output"].astype(np.float64) - expected).max() <= apart


def test_weights_beside_a_case_are_taken_and_named_others_where_asked(tmp_path: Path, capsys: Capture) -> None:
    case, other, kept = case_of(tmp_path, **NPZ), tmp_path / "other.npz", tmp_path / "kept.npz"
    np.savez(other, allow_pickle=False, filter1=NPZ["filter1"] * 2, bias1=NPZ["bias1"])
    outputs = []
    for words, name in (([], tmp_path / "mine.npz"), (["--weights", other], other), (["--random"], "random")):
        row = result(capsys, case, *words, "--save", kept, "--csv", tmp_path / "table.csv")
        assert (row["weights"], row["input"]) == (str(name), "random")
        assert f",llvm,{name},random,True," in (tmp_path / "table.csv").read_text()
        outputs.append(np.load(kept)["output"])
    assert np.allclose(outputs[1], outputs[0] * 2)
    assert not np.allclose(outputs[2], outputs[0])
    assert exit_code(["run", str(case)]) == 0
    assert "mine.npz" in capsys.readouterr().out


def test_a_kept_run_runs_again(tmp_path: Path, capsys: Capture) -> None:
    case, first, second = case_of(tmp_path), tmp_path / "first.npz", tmp_path / "second.npz"
    result(capsys, case, "--seed", 3, "--save", first)
    row = result(capsys, case, "--weights", first, "--input", first, "--save", second)
    assert row["fill"] == "given"
    assert np.array_equal(np.load(first)["output"], np.load(second)["output"])


def savez(path: Path, **arrays: Any) -> None:
    np.savez(path, allow_pickle=True, **{**NPZ, **arrays})


def without(path: Path, name: str) -> None:
    np.savez(path, allow_pickle=False, **{other: array for other, array in NPZ.items() if other != name})


def huge(path: Path) -> None:
    """An array that says it has terabytes."""
    header = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }".ljust(
        118
    )
    with zipfile.ZipFile(path, "w") as file:
        for name in NPZ:
            file.writestr(f"{name}.npy", header)


def headed(path: Path, header: bytes) -> None:
    """Arrays with some header."""
    with zipfile.ZipFile(path, "w") as file:
        for name in NPZ:
            file.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def long_headed(path: Path) -> None:
    """Headers that say they have a gigabyte, in the second version of the format."""
    with zipfile.ZipFile(path, "w") as file:
        for name in NPZ:
            file.writestr(f"{name}.npy", b"\x93NUMPY\x02\x00" + (1 << 30).to_bytes(4, "little") + bytes(1000))


def packed_otherwise(path: Path) -> None:
    """What Python's library can unpack if the system has it, and may fail at in ways of its own."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        for name in NPZ:
            file.writestr(f"{name}.npy", bytes(100))
    path.write_bytes(path.read_bytes().replace(b"\x09\x04\x05\x00\x5d", b"\xff" * 5))


def truncated(path: Path) -> None:
    savez(path)
    path.write_bytes(path.read_bytes()[:-100])


def with_more(path: Path, before: bytes = b"", behind: bytes = b"") -> None:
    savez(path)
    path.write_bytes(before + path.read_bytes() + behind)


def entered(path: Path, names: tuple[str, ...], behind: bytes = b"") -> None:
    """The arrays of a chain, some under more names too, with bytes behind each."""
    savez(path)
    with zipfile.ZipFile(path) as file:
        arrays = {name: file.read(name) for name in file.namelist()}
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as file:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name in (*arrays, *names):
            file.writestr(name, arrays[f"{name.removesuffix('.npy')}.npy"] + behind)


WITH_NAN = np.where(np.arange(108).reshape(4, 3, 3, 3) == 5, np.nan, NPZ["filter1"]).astype(np.float32)
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "no filter": (lambda path: without(path, "filter1"), "got no filter1"),
    "no bias": (lambda path: without(path, "bias1"), "got no bias1"),
    "a name too many": (lambda path: savez(path, filter2=NPZ["filter1"]), "an array filter2; expected input, filter1"),
    "another shape": (lambda path: savez(path, filter1=np.ones((4, 3, 3, 1), np.float32)), "[4, 3, 3, 1]; expected "),
    "HWIO": (
        lambda path: savez(path, filter1=np.ones((3, 3, 3, 4), np.float32)),
        "expected [4, 3, 3, 3], which is read",
    ),
    "another dtype": (lambda path: savez(path, bias1=np.zeros(4)), "bias1: got float64; expected float32"),
    "another order of bytes": (
        lambda path: savez(path, bias1=NPZ["bias1"].astype(">f4")),
        "bias1: got float32 in another order of bytes; expected float32",
    ),
    "no number": (lambda path: savez(path, filter1=WITH_NAN), "got 1 values that are no finite numbers"),
    "infinite": (lambda path: savez(path, bias1=np.full(4, np.inf, np.float32)), "got 4 values that are no finite"),
    "objects": (lambda path: savez(path, bias1=np.array([print] * 4)), "got pickled Python objects"),
    "terabytes": (huge, "the shape [1000000000000]"),
    "bytes behind the archive": (lambda path: with_more(path, behind=b"more"), "bytes before or behind its archive"),
    "bytes before the archive": (lambda path: with_more(path, before=b"more"), "bytes before or behind its archive"),
    "bytes behind an array": (lambda path: entered(path, (), b"more"), "bytes behind the array of "),
    "an array twice": (lambda path: entered(path, ("bias1.npy",)), "an array is there twice"),
    "an array twice, once without an ending": (lambda path: entered(path, ("bias1",)), "an array is there twice"),
    "truncated": (truncated, "unreadable file"),
    "half a header": (lambda path: headed(path, b"{'descr': ("), "a header that describes no array"),
    "a header of other types": (lambda path: headed(path, b"{5: 5, 'shape': ()}"), "a header that describes no array"),
    "a header of a short dtype": (
        lambda path: headed(path, b"{'descr': ('<f4',), 'fortran_order': False, 'shape': (4,)}"),
        "a header that describes no array",
    ),
    "a header in steps": (lambda path: headed(path, b"  1\n 2\n"), "a header that describes no array"),
    "another compression": (packed_otherwise, "compressed in a way that numpy doesn't"),
    "text": (lambda path: path.write_text("filter1 = 1"), "unreadable file"),
    "a dtype that divides by zero": (
        lambda path: headed(path, b"{'descr': 'M8[s/0]', 'fortran_order': False, 'shape': (4,)}"),
        "a header that describes no array of numbers",
    ),
    "a truth in a shape": (
        lambda path: headed(path, b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3, 3, True)}"),
        "a header with no shape",
    ),
    "a header of gigabytes": (long_headed, "a header of 1073741824 bytes"),
    "folder": (lambda path: path.mkdir(), "got a folder; expected a regular file"),
    "FIFO": (os.mkfifo, "got a pipe; expected a regular file"),
    "nothing": (lambda path: path.exists(), "No such file"),
}


WORDS = ["<f4", "|u1", "<i8", "|V3", "O", "M8[s/0]", "m8[7/0D]", "M8", "<f3", "f4,f4", "(2,)f4", "S0"]
DESCRIBED = st.one_of(
    st.sampled_from(WORDS),
    st.text("<>|=fiubcVOMmSU0123456789/[]", max_size=9),
    st.sampled_from([None, 5, ("<f4",), [("a", "<f4")]]),
)
AXES = st.one_of(st.sampled_from([True, -1, 0, 1.0, None, 1 << 62, 10**30]), st.integers(1, 4))
SHAPES = st.lists(AXES, max_size=4).map(tuple)


@given(DESCRIBED, st.sampled_from([False, True, 0, None]), SHAPES, st.sampled_from([1, 2]))
def test_any_header_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, descr: object, order: object, shape: object, version: int
) -> None:
    """Numpy alone would end the process at some dtypes, and ask for memory before it looks for the numbers."""
    header = repr({"descr": descr, "fortran_order": order, "shape": shape}).encode()
    path = tmp_path_factory.getbasetemp() / "any.npy"
    length = len(header).to_bytes(2 * version, "little")
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + header + bytes(4096))
    for read in (read_stored, lambda path: read_array(path, ((2, 3), "float32"))):
        try:
            assert isinstance(read(path), np.ndarray)
        except (ValueError, InputError):
            continue


@pytest.mark.parametrize("option", ["--weights", "--input"])
@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_used_is_one_line(name: str, option: str, tmp_path: Path, capsys: Capture) -> None:
    case, path = case_of(tmp_path), tmp_path / "given.npz"
    BAD[name][0](path)
    assert exit_code(["run", str(case), option, str(path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "given.npz" in line
    assert BAD[name][1] in line or option == "--input"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--weights", "x.npz", "--random"], "one of them"),
        (["b.toml", "--weights", "x.npz"], "one at a time"),
        (["b.toml", "--input", "x.npz"], "one at a time"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(
    words: list[str], reason: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case_of(tmp_path).rename("a.toml")
    case_of(tmp_path).rename("b.toml")
    assert exit_code(["run", "a.toml", *words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert reason in line


@LOWERED
@given(st.sampled_from(["uint8", "int8", "int16"]), st.integers(0, 2**32 - 1), st.data())
def test_no_image_drives_the_sums_beyond_the_bounds_of_its_weights(
    dtype: Dtype, seed: int, data: st.DataObject
) -> None:
    random, (low, high) = np.random.default_rng(seed), INTEGER_RANGE[dtype]
    wide = dtype == "int16"  # which has no zero points, and whose sums leave int32 unless filters are small
    zero, filter_zero = (0, 0) if wide else (data.draw(st.integers(low, high)), data.draw(st.integers(low, high)))
    conv = Conv2d(out_channels=3, kernel=(2, 2), filter_zero_point=filter_zero)
    chain = Chain(input=(1, 2, 2, 3), dtype=dtype, zero_point=zero, conv=(conv,))
    filter = random.integers(low, high, (3, 3, 2, 2), dtype, endpoint=True) // (8 if wide else 1)
    [stated] = bounded(chain, {"filter1": filter}).conv
    assert stated.filter_l1 is not None
    farthest = max(high - zero, zero - low)
    for channel in filter:
        signs = np.moveaxis(channel.astype(np.int64) - filter_zero > 0, 0, 2)[None]
        worst = [np.where(signs == up, high, low).astype(dtype) for up in (True, False)]
        assert (
            max(np.abs(convolution(conv, image, filter, zero)).max() for image in worst) <= stated.filter_l1 * farthest
        )


def test_weights_show_that_sums_fit_where_shapes_alone_do_not() -> None:
    chain = Chain(input=(1, 4, 4, 64), dtype="int16", conv=(Conv2d(out_channels=2, kernel=(3, 3), bias=True),))
    filter, bias = np.full((2, 64, 3, 3), 100, np.int16), np.zeros(2, np.int32)
    with pytest.raises(Unsupported, match="filter_l1 of up to"):
        check_supported(chain)
    check_supported(bounded(chain, {"filter1": filter, "bias1": bias}))
    room = 2**31 - 1 - 57600 * 2**15
    for most in (room, room + 1):
        weights = {"filter1": filter, "bias1": np.array([0, -most], np.int32)}
        if most > room:
            with pytest.raises(Unsupported, match=", 1 less; "):
                bounded(chain, weights)
        else:
            bounded(chain, weights)


def test_the_least_bias_that_int32_has_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    weights = {"filter1": np.ones((4, 3, 3, 3), np.int8), "bias1": np.full(4, -(2**31), np.int32)}
    assert exit_code(["run", str(case_of(tmp_path, "int8", **weights))]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "state a bias_limit of up to " in line


def test_a_filter_that_breaks_what_its_case_states_is_refused() -> None:
    conv = Conv2d(out_channels=1, filter_l1=9)
    chain = Chain(input=(1, 1, 1, 2), dtype="int8", conv=(conv,))
    with pytest.raises(InputError, match=r"filter1: got an output channel that sums to 10; expected up to 9"):
        bounded(chain, {"filter1": np.array([[[[5]], [[-5]]]], np.int8)})
