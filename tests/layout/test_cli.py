"""`hexconv layout` on its command line: the contract's JSON, and one clear line for what can't be."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hexconv.cli.answers import VERSION
from hexconv.cli.app import exit_code
from hexconv.layout.catalog import Placement, find
from tests.draws import LOWERED


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = exit_code(["layout", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            "packed NHWC8h8w32c --shape 1,64,64,128 --at 0,9,10,33",
            {
                "system": "packed",
                "name": "NHWC8h8w32c",
                "shape": [1, 64, 64, 128],
                "dtype": "float32",
                "bytes": 2097152,
                "axes": ["n", "h", "w", "c"],
                "packed_shape": [1, 8, 8, 4, 8, 8, 32],
                "at": [
                    {
                        "index": [0, 9, 10, 33],
                        "address": {"index": [0, 1, 1, 1, 1, 2, 1], "offset_elements": 76097},
                    }
                ],
            },
        ),
        (
            "onednn aBcd16b --shape 2,17,4,5 --at 1,16,3,4",
            {
                "system": "onednn",
                "name": "aBcd16b",
                "shape": [2, 17, 4, 5],
                "dtype": "float32",
                "bytes": 5120,
                "axes": ["a", "b", "c", "d"],
                "format_kind": "blocked",
                "dims": [2, 17, 4, 5],
                "padded_dims": [2, 32, 4, 5],
                "strides": [640, 320, 80, 16],
                "inner_blks": [16],
                "inner_idxs": [1],
                "offset0": 0,
                "at": [{"index": [1, 16, 3, 4], "address": {"offset_elements": 1264}}],
            },
        ),
        (
            "mace IN_OUT_CHANNEL --shape 2,10 --dtype float16 --at 1,9",
            {
                "system": "mace",
                "name": "IN_OUT_CHANNEL",
                "shape": [2, 10],
                "dtype": "float16",
                "bytes": 48,
                "axes": ["n", "h", "w", "c"],
                "purpose": "input and output of most operators; the default",
                "image_size": {"width": 3, "height": 2},
                "at": [{"index": [1, 9], "address": {"x": 2, "y": 1, "lane": 1}}],
            },
        ),
        (
            "okk aligned --shape 2,3,4,5 --start-npu 62 --offset 128 --at 1,2,3,4",
            {
                "system": "okk",
                "name": "aligned",
                "shape": [2, 3, 4, 5],
                "dtype": "float32",
                "bytes": 32768,
                "bytes_per_npu": 512,
                "axes": ["n", "c", "h", "w"],
                "npus": 64,
                "address": 62 * 524288 + 128,
                "start_npu": 62,
                "offset": 128,
                "local_size": 524288,
                "strides": [64, 32, 5, 1],
                "channels_per_npu": 2,
                "empty_blocks": 125,
                "at": [{"index": [1, 2, 3, 4], "address": {"npu": 0, "byte": 588}}],
            },
        ),
        (
            "okk continuous --shape 2,3,4,5 --offset 100 --at 1,2,3,4",
            {
                "system": "okk",
                "name": "continuous",
                "shape": [2, 3, 4, 5],
                "dtype": "float32",
                "bytes": 480,
                "axes": ["n", "c", "h", "w"],
                "strides": [60, 20, 5, 1],
                "at": [{"index": [1, 2, 3, 4], "address": {"byte": 576}}],
            },
        ),
        (
            "onednn any --shape 2,3",
            {
                **{"system": "onednn", "name": "any", "shape": [2, 3], "dtype": "float32", "bytes": 0},
                **{"format_kind": "any", "dims": [2, 3], "at": []},
            },
        ),
    ],
)
def test_json_is_the_contract_s(run, arguments, expected):
    code, out, err = run(*arguments.split(), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"version": VERSION, **expected}


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ("okk line-aligned --chip bm1684x --shape 2,3,4,5 --at 1,2,3,4", {"npu": 2, "byte": 4 * (64 + 48 + 4)}),
        ("okk compact --chip bm1688 --shape 2,3,4,5 --offset 4 --at 1,2,3,4", {"npu": 2, "byte": 4 + 4 * 39}),
        ("okk strided --shape 2,5,3,4 --strides 120,56,16,2 --at 1,4,2,3", {"npu": 4, "byte": 4 * 158}),
        ("okk system-strided --shape 2,5,3,4 --strides 300,56,16,2 --at 1,4,2,3", {"byte": 4 * 562}),
        ("okk matrix --shape 2,40 --columns 15 --at 1,39", {"npu": 2, "byte": 4 * 41}),
        ("okk 4n --shape 6,5,4,5 --dtype int8 --at 5,4,3,4", {"npu": 4, "byte": 205}),
        ("okk 2n --shape 3,5,4,5 --dtype int16 --at 2,4,3,4", {"npu": 4, "byte": 4 * (32 + 19)}),
        ("okk 2ic --shape 3,65,2,2 --at 1,64,1,1", {"npu": 0, "byte": 60}),
        ("onednn strided --shape 2,3 --strides 1,2 --at 1,2", {"offset_elements": 5}),
        ("onednn ldgoi --shape 1,1,2,3,4 --at 0,0,1,2,3", {"offset_elements": 2 * 8 + 3 * 2 + 1}),
        ("mace argument --shape 10 --at 9", {"x": 2, "y": 0, "lane": 1}),
        ("mace winograd-2 --shape 5,6,3,3 --at 4,5,3,3", {"x": 1, "y": 79, "lane": 1}),
        ("mace cpu-filter --shape 2,3,3,3 --at 1,2,2,2", {"offset_elements": 53}),
        ("okk aligned --npus 4 --shape 2,3,4,5 --start-npu 2 --at 1,2,3,4", {"npu": 0, "byte": 4 * (64 + 32 + 19)}),
        ("onednn any --shape 2,32,4,5 --use data --at 1,17,2,3", {"offset_elements": ((3 * 4 + 2) * 5 + 3) * 16 + 1}),
        ("onednn ldgo --shape 1,2,4,3 --cell lstm --at 0,1,candidate,2", {"offset_elements": (4 + 2) * 3 + 2}),
        ("onednn nchw --shape 2,3,4,5 --view submemory 1,2,2,3 1,1,1,2 --at 0,1,1,2", {"offset_elements": 87 + 27}),
        ("onednn ab --shape 4,6 --view reshape 2,2,6 permute-axes 0,2,1 --at 1,3,1", {"offset_elements": 21}),
        ("packed NCHW16c --logical NHWC --shape 1,4,4,20 --at 0,1,2,19",
         {"index": [0, 1, 1, 2, 3], "offset_elements": (16 + 4 + 2) * 16 + 3}),
    ],
)  # fmt: skip
def test_every_kind_of_name_and_option(run, arguments, address):
    code, out, _ = run(*arguments.split(), "--json")
    assert code == 0
    assert [row["address"] for row in json.loads(out)["at"]] == [address]


@pytest.mark.parametrize(
    "at", [["--at", "0,1", "--at", "1,2"], ["--at", "0,1", "1,2"], ["--at", "0,1;1,2"], ["--at", "[0, 1]; [1, 2]"]]
)
def test_indices_come_one_by_one_or_together(run, at):
    words = [word.replace(", ", ",") for word in at]
    _, out, _ = run("packed", "AB", "--shape", "2,3", *words, "--json")
    assert [row["address"]["offset_elements"] for row in json.loads(out)["at"]] == [1, 5]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("packed NHWC8h8w32c --shape 1,64,64", "4 sizes: N,H,W,C"),
        ("packed NHWC8k --shape 1,2,3,4", "no axis K"),
        ("packed NHWC --shape 1,2,3,x", "whole numbers parted by commas"),
        ("packed NHWC --shape 1,2,,3", "whole numbers parted by commas"),
        ("packed NHWC --shape 1,2,3,4 --at 0,0,0,4", "0 to 3"),
        ("packed NHWC --shape 1,2,3,4 --at 0,0", "4 of them"),
        ("packed NHWC --shape 1,2,3,4 --dtype float31", "dtype"),
        ("packed NHWC --shape 1,2,3,4 --chip bm1684", "--chip"),
        ("packed NHWC --shape 9999999999,9999999999,9999999999,9", "up to 4611686018427387904 bytes"),
        ("onednn nchx --shape 1,2,3,4", "is no tag"),
        ("onednn nchw --shape 1,2,3", "has 4 dimensions"),
        ("onednn any --shape 2,3 --at 0,0", "gives no element a place"),
        ("onednn strided --shape 2,3 --strides 3,2", "shorter strides reach"),
        ("onednn oihw --shape 8,0,3,3", "oneDNN takes a zero in the weights of a convolution for an error"),
        ("onednn gOIhw4i16o4i --shape 2,16,16,0,3", "got 0; expected sizes from 1 on"),
        ("onednn nchw --shape 1,2,3,4 --at 0,0,3,0", "index along h: got 3"),
        ("okk 2ic --shape 4,6,3,3 --logical NCHW", "each of IOHW once"),
        ("okk aligned --shape 2,3,4,5 --address 128 --offset 0", "leave the others out"),
        ("okk aligned --shape 2,3,4,5 --address 33554432", "0 to 33554431"),
        ("mace in-out-channel --shape 1,2,3", "2 or 4 sizes"),
        ("mace dw-conv2d-filter --shape 2,6,3,3", "multiplier 2"),
        ("okk aligned --shape 2,3,4,5 --offset 100", "multiples of 128 bytes, such as 0 or 128"),
        ("okk aligned --shape 2,3,4,5 --start-npu 64", "0 to 63"),
        ("okk aligned --shape 2,3,4,5 --chip bm1690", "bm1684, bm1684x, bm1688"),
        ("okk aligned --shape 2,3,4,5 --columns 3", "--columns"),
        ("okk strided --shape 2,3,4,5", "--strides"),
        ("okk matrix --shape 2,40", "--columns"),
        ("okk aligned --shape 2,3,4,5 --npus 0", "1 to 256; the chip itself has 64"),
        ("okk continuous --shape 2,3,4,5 --npus 4", "--npus"),
        ("okk aligned --shape 2,3,4,5 --beside compact", "NAME SHAPE"),
        ("okk aligned --shape 2,3,4,5 --beside compact 1,1,1,1 float32 x", "whole numbers"),
        ("okk aligned --shape 2,3,4,5 --beside matrix 1,1", "aligned, line-aligned"),
        ("okk aligned --shape 2,3,4,5 --beside compact 1,1,4,5 int8 3 64", "got empty blocks of aligned [2, 3, 4, 5]"),
        ("okk aligned --shape 2,3,4,5 --beside compact 1,1,4,5 int8 2 64", "got 16 bytes of elements of aligned"),
        ("onednn nchw --shape 2,3,4,5 --use data", "--use"),
        ("onednn any --shape 2,3 --use bias", "data, weights, grouped-weights"),
        ("onednn ab --shape 2,3 --view 3,2", "a view first"),
        ("onednn ab --shape 2,3 --view layout 3,2", "reshape, permute_axes, submemory"),
        ("onednn ab --shape 2,3 --view submemory 3,2", "sizes and offsets"),
        ("onednn ab --shape 2,3 --view reshape 5", "could not reshape"),
        ("onednn ldigo --shape 1,1,2,3,4 --cell lstm", "l,d,i,4,o"),
        ("onednn ldigo --shape 1,1,2,3,4 --cell gru --at 0,0,0,rest,0", "did you mean reset?"),
        ("onednn ldigo --shape 1,1,2,3,4 --cell rnn", "lstm, gru"),
        ("okk diagonal --shape 2,3,4,5", "aligned, line-aligned, compact"),
        ("okk 4n --shape 2,3,4,5", "int8 or uint8"),
        ("tvm NHWC --shape 1,2,3,4", "tvm"),
        ("packed NHWC", "shape"),
        ("packed AB --shape 2,2 --draw --json", "--svg"),
        ("onednn any --shape 2,3 --draw", "no places to draw"),
        ("compare nowhere.toml", "nowhere.toml"),
        ("compare", "no case file given"),
    ],
)
def test_what_can_t_be_is_one_line_and_exit_2(run, arguments, said):
    code, out, err = run(*arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith("hexconv: ")
    assert err.count("\n") == 1
    assert said in err


def test_a_table_and_a_drawing_for_people(run, tmp_path):
    drawn = tmp_path / "layout.svg"
    code, out, _ = run("packed", "AB2a", "--shape", "3,2", "--at", "2,1", "--draw", "--svg", str(drawn))
    assert code == 0
    assert "packed AB2a [3, 2] float32: 32 bytes, 25.0% unused" in out
    assert "A=1 B=1 | 2 · | b=1" in out
    assert drawn.read_text().startswith("<svg")


def test_a_start_at_which_the_matrix_dma_differs_is_told(run):
    asked = ("okk", "matrix", "--shape", "2,40", "--columns", "15", "--start-npu")
    assert "note: okk matrix: the DMA of bm1684 writes rows 32 elements apart" in run(*asked, "62")[1]
    assert "note" not in run(*asked, "60")[1]
    assert "note" not in run(*asked, "62", "--json")[1]


def test_a_matrix_is_told_its_best_width_and_a_mode_its_view(run):
    told = json.loads(run("okk", "matrix", "--npus", "4", "--shape", "2,40", "--columns", "8", "--json")[1])
    assert (told["advised_columns"], told["view"]) == (10, {"shape": [2, 5, 1, 8], "dtype": "float32"})
    told = json.loads(run("okk", "4n", "--npus", "4", "--shape", "6,5,4,5", "--dtype", "int8", "--json")[1])
    assert (told["strides"], told["view"]) == ([64, 32, 5, 1], {"shape": [2, 5, 4, 5], "dtype": "int8x4"})


def test_what_is_refused_is_a_zero_descriptor_where_that_is_allowed(run):
    asked = ("onednn", "nhwc", "--shape", "2,3,4,5", "--view", "reshape", "6,4,5")
    assert run(*asked)[0] == 2
    code, out, _ = run(*asked, "--allow-empty", "--json")
    told = json.loads(out)
    assert (code, told["bytes"], told["format_kind"], told["dims"]) == (0, 0, "undef", [])


@pytest.mark.parametrize(
    ("system", "source", "target", "shape", "dtype"),
    [
        ("onednn", "nchw", "nChw16c", (2, 17, 4, 5), "float32"),
        ("packed", "NHWC", "NCHW4h16c", (2, 4, 5, 17), "int8"),
        ("mace", "in-out-channel", "in-out-height", (2, 4, 5, 7), "float16"),
        ("okk", "continuous", "4n", (6, 5, 4, 5), "int8"),
    ],
)
def test_reorder_moves_a_file_there_and_back(run, tmp_path, system, source, target, shape, dtype):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    given, made, back = (tmp_path / name for name in ("given.npy", "made.npy", "back.npy"))
    layout = find(system, source, shape, dtype, Placement()).layout
    assert layout
    np.save(given, layout.pack(values))
    options = ("--shape", ",".join(map(str, shape)), "--dtype", dtype)
    assert run("reorder", system, source, target, str(given), str(made), *options)[0] == 0
    logical = "NHWC" if system == "packed" else None
    there = find(system, target, shape, dtype, Placement(logical=logical)).layout
    assert there
    np.testing.assert_array_equal(np.load(made), there.pack(values))
    if system != "packed":
        assert run("reorder", system, target, source, str(made), str(back), *options)[0] == 0
        np.testing.assert_array_equal(layout.unpack(np.load(back)), values)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("onednn nChw16c nchw given.npy", "got float32 [2, 17]; expected [1280]"),
        ("onednn nchw any given.npy", "gives no element a place"),
        ("onednn nchw nhwc none.npy", "No such file"),
        ("onednn nchw nhwc text.npy", "no array of numpy"),
        ("mace in-out-width in-out-channel given.npy", "no kernel from"),
        ("mace cpu-filter in-out-channel given.npy", "axes of in-out-channel: got N,H,W,C; expected a layout"),
        (
            "onednn nchw nhwc given.npy --strides 1,2,3,4",
            "--strides: got 1 value; expected none: neither nchw nor nhwc takes it",
        ),
        ("onednn strided nhwc given.npy --strides 1 2", "--strides: got 2 values; expected 1: strided takes it"),
        ("okk NCHW strided given.npy", "no --strides given"),
        ("okk NCHW aligned given.npy --chip bm1690", "bm1684, bm1684x, bm1688"),
        ("mace NCHW in-out-channel given.npy --dtype float32 float16", "mace converts no types"),
    ],
)
def test_a_file_that_can_t_be_reordered_is_one_line(run, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    np.save("given.npy", np.zeros((2, 17), np.float32))
    Path("text.npy").write_text("text")
    files, options = words.split(" --")[0], words.split()[4:]
    code, out, err = run("reorder", *files.split(), "made.npy", "--shape", "2,17,4,5", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_axes_have_the_letters_of_their_domain_behind_every_view(run):
    """A permutation moves letters with their axes; a reshape makes axes that have none."""
    _, out, _ = run("onednn", "nchw", "--shape", "1,3,2,2", "--draw")
    assert "axes: n=1,c=3,h=2,w=2" in out
    assert "cells: h.w;" in out
    assert "| n=0 c=2" in out
    _, out, _ = run("onednn", "nhwc", "--shape", "1,3,2,4", "--view", "permute_axes", "0,3,1,2")
    assert "axes: n=1,h=2,w=4,c=3" in out
    _, out, _ = run("onednn", "nchw", "--shape", "1,3,2,4", "--view", "reshape", "3,8")
    assert "axes: dim0=3,dim1=8" in out


def test_a_view_has_its_own_shape_bytes_and_start(run):
    asked = ("onednn", "nchw", "--shape", "2,6,4,5", "--view", "submemory", "1,3,2,2", "1,1,1,1")
    told = json.loads(run(*asked, "--at", "0,0,0,0", "--json")[1])
    last = 2 * 20 + 5 + 1
    assert (told["shape"], told["bytes"], told["offset0"]) == ([1, 3, 2, 2], 4 * (last + 1), 120 + 20 + 5 + 1)
    assert told["at"][0]["address"] == {"offset_elements": told["offset0"]}
    assert "of such a region get_size() says 0" in run(*asked)[1]


def test_a_text_says_the_size_of_an_image_and_the_shape_of_a_pack(run):
    assert "image size: width=15 height=3" in run("mace", "channel-major", "--shape", "1,3,5,10")[1]
    assert "packed shape: 1,2,2,2,8,8,32" in run("packed", "NHWC8h8w32c", "--shape", "1,10,10,40")[1]


@given(st.integers(0, 63), st.integers(0, 4000))
def test_an_address_is_an_npu_and_an_offset(start_npu, lines):
    """A = Q * S + R."""
    shape, offset = (1, 2, 3, 4), 128 * lines
    place = {"start_npu": start_npu, "offset_bytes": offset}
    found = find("okk", "aligned", shape, "float32", Placement(**place))
    size = found.facts["local_size"]
    assert found.facts["address"] == start_npu * size + offset
    other = find("okk", "aligned", shape, "float32", Placement(address=found.facts["address"]))
    assert (other.layout, other.facts) == (found.layout, found.facts)
    assert (other.facts["start_npu"], other.facts["offset"]) == divmod(found.facts["address"], size)


def test_2ic_says_in_which_order_its_sizes_come_and_takes_the_other(run):
    """The same element has one address, whichever way its shape is given."""
    _, out, _ = run("okk", "2ic", "--shape", "4,6,3,3", "--at", "3,5,1,2")
    assert "axes: i=4,o=6,h=3,w=3" in out
    assert "the sizes of 2ic are I,O,H,W" in out
    one = json.loads(run("okk", "2ic", "--shape", "4,6,3,3", "--at", "3,5,1,2", "--json")[1])
    asked = ("okk", "2ic", "--logical", "OIHW", "--shape", "6,4,3,3", "--at", "5,3,1,2")
    other = json.loads(run(*asked, "--json")[1])
    assert other["at"][0]["address"] == one["at"][0]["address"]
    assert (other["bytes"], other["strides"], other["axes"]) == (one["bytes"], one["strides"], ["o", "i", "h", "w"])
    assert "note" not in run(*asked)[1]


def moved(run, folder: Path, values: np.ndarray, words: str) -> np.ndarray:
    """What a reorder makes of an array."""
    np.save(folder / "given.npy", values)
    system, source, target, *options = words.split()
    files = (str(folder / "given.npy"), str(folder / "made.npy"))
    shape = [] if "--shape" in options else ["--shape", ",".join(map(str, values.shape))]
    code, _, err = run("reorder", system, source, target, *files, *shape, *options)
    assert (code, err) == (0, "")
    return np.load(folder / "made.npy")


@settings(LOWERED, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(*[st.integers(1, 6)] * 3, st.integers(1, 10)), st.sampled_from(["float32", "float16", "uint8"]))
def test_an_activation_image_holds_what_the_document_says(run, tmp_path, shape, dtype):
    """P[i, j] = {E[n, h, w, c] | n = j / H, h = j % H, w = i % W, c = i / W * 4 + k}, from either order of axes."""
    n, h, w, c = shape
    values = np.arange(n * h * w * c).reshape(shape).astype(dtype)
    made = moved(run, tmp_path, values, f"mace NHWC in-out-channel --dtype {dtype}")
    assert made.itemsize == {"float32": 4, "float16": 2, "uint8": 4}[dtype]
    wide = np.pad(values, [(0, 0)] * 3 + [(0, -c % 4)])
    j, i, k = np.ogrid[: n * h, : w * -(-c // 4), :4]
    np.testing.assert_array_equal(made, wide[j // h, j % h, i % w, i // w * 4 + k])
    nchw = np.ascontiguousarray(values.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(moved(run, tmp_path, nchw, f"mace cpu-in-out in-out-channel --dtype {dtype}"), made)
    back = moved(run, tmp_path, made, f"mace in-out-channel NHWC --shape {n},{h},{w},{c} --dtype {dtype}")
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize(
    ("words", "placement"),
    [
        ("strided --strides 200,20,5,1 --chip bm1688 --start-npu 31", {"strides": (200, 20, 5, 1), "start_npu": 31}),
        ("aligned --chip bm1688 --npus 4 --start-npu 3 --offset 128", {"npus": 4, "start_npu": 3, "offset_bytes": 128}),
        ("compact --chip bm1688 --address 131076", {"address": 131076}),
    ],
)
def test_a_tensor_is_reordered_into_local_memory_where_it_is_asked_for(run, tmp_path, words, placement):
    values = np.arange(2 * 6 * 4 * 5, dtype=np.float32).reshape(2, 6, 4, 5)
    made = moved(run, tmp_path, values, f"okk NCHW {words}")
    layout = find("okk", words.split()[0], values.shape, "float32", Placement(chip="bm1688", **placement)).layout
    assert layout
    np.testing.assert_array_equal(layout.unpack(made), values)


def test_both_layouts_of_a_reorder_may_have_strides_columns_and_types_of_their_own(run, tmp_path):
    values = np.arange(2 * 40, dtype=np.float32).reshape(2, 40)
    first = moved(run, tmp_path, values, "okk RM matrix --columns 15")
    second = moved(run, tmp_path, first, "okk matrix matrix --shape 2,40 --columns 15 10")
    np.testing.assert_array_equal(second, moved(run, tmp_path, values, "okk RM matrix --columns 10"))
    values -= 30.5
    made = moved(run, tmp_path, values, "onednn strided strided --strides 40,1 1,2 --dtype f32 s8")
    np.testing.assert_array_equal(made.reshape(40, 2).T, np.rint(values).astype(np.int8))


def test_a_view_of_an_array_is_reordered(run, tmp_path):
    values = np.arange(2 * 6 * 4 * 5, dtype=np.float32).reshape(2, 6, 4, 5)
    words = "onednn nchw nhwc --view submemory 1,3,2,2 1,1,1,1 permute_axes 0,1,3,2"
    region = values[1:2, 1:4, 1:3, 1:3].transpose(0, 1, 3, 2)
    made = moved(run, tmp_path, values, words)
    np.testing.assert_array_equal(made.reshape(1, 2, 2, 3), region.transpose(0, 3, 2, 1).transpose(0, 1, 2, 3))


def test_filters_are_reordered_into_2ic(run, tmp_path):
    values = np.arange(5 * 3 * 2 * 2, dtype=np.float32).reshape(5, 3, 2, 2)
    made = moved(run, tmp_path, values, "okk OIHW 2ic")
    layout = find("okk", "2ic", (3, 5, 2, 2), "float32", Placement()).layout
    assert layout
    np.testing.assert_array_equal(layout.unpack(made), values.transpose(1, 0, 2, 3))


CASE = """
[chain]
input = [1, 12, 12, 40]
dtype = "{dtype}"
[[chain.conv]]
out_channels = 8
kernel = [3, 3]
[[chain.conv]]
out_channels = 33
"""


def case_file(folder: Path, dtype: str) -> str:
    path = folder / "small.toml"
    path.write_text(CASE.format(dtype=dtype))
    return str(path)


def test_compare_puts_four_systems_side_by_side(run, tmp_path):
    table = tmp_path / "usage.csv"
    code, out, _ = run("compare", case_file(tmp_path, "float32"), "--csv", str(table), "--json")
    assert code == 0
    rows = json.loads(out)
    assert [row["tensor"] for row in rows[::4]] == ["input", "filter1", "intermediate", "filter2", "output"]
    sizes = {(row["tensor"], row["system"]): row["bytes"] for row in rows}
    assert sizes["input", "packed"] == 4 * 2 * 2 * 2 * 8 * 8 * 32
    assert sizes["input", "onednn"] == 4 * 12 * 12 * 48
    assert sizes["input", "mace"] == 4 * 12 * 12 * 40
    assert sizes["input", "okk"] == 4 * 64 * 160
    assert sizes["filter1", "packed"] == 4 * 32 * 64 * 9
    assert sizes["filter1", "okk"] == 64 * 8 * 20 * 9
    with table.open() as file:
        written = list(csv.DictReader(file))
    assert [int(row["bytes"]) for row in written] == [row["bytes"] for row in rows]
    assert all(row["waste_bytes"] == row["bytes"] - row["logical_bytes"] for row in rows)


def test_compare_says_why_a_system_doesn_t_take_a_tensor(run, tmp_path):
    _, out, _ = run("compare", case_file(tmp_path, "float16"), "--csv", str(tmp_path / "x.csv"), "--json")
    refused = {(row["tensor"], row["system"]): row["refusal"] for row in json.loads(out) if row["bytes"] is None}
    assert refused == {
        ("filter1", "okk"): "okk 2ic: dtype: got float16; expected float32",
        ("filter2", "okk"): "okk 2ic: dtype: got float16; expected float32",
    }


def test_compare_prints_a_table(run, tmp_path):
    code, out, _ = run("compare", case_file(tmp_path, "float32"), "--csv", str(tmp_path / "x.csv"))
    assert code == 0
    assert out.count("in-out-channel") == 3
