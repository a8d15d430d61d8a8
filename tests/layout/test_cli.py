"""`hexconv layout` on its command line: the contract's JSON, and one clear line for what can't be."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from hexconv.cli.app import exit_code
from hexconv.layout.catalog import Placement, find


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
                "format_kind": "blocked",
                "dims": [2, 17, 4, 5],
                "padded_dims": [2, 32, 4, 5],
                "strides": [640, 320, 80, 16],
                "inner_blks": [16],
                "inner_idxs": [1],
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
                "purpose": "input and output of most operators; the default",
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
                "npus": 64,
                "address": 62 * 524288 + 128,
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
    assert json.loads(out) == expected


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
    np.save(given, layout.pack(values))
    options = ("--shape", ",".join(map(str, shape)), "--dtype", dtype)
    assert run("reorder", system, source, target, str(given), str(made), *options)[0] == 0
    logical = "NHWC" if system == "packed" else None
    there = find(system, target, shape, dtype, Placement(logical=logical)).layout
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
        ("mace cpu-in-out in-out-channel given.npy", "axes of in-out-channel: got N,H,W,C; expected a layout"),
    ],
)
def test_a_file_that_can_t_be_reordered_is_one_line(run, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    np.save("given.npy", np.zeros((2, 17), np.float32))
    Path("text.npy").write_text("text")
    code, out, err = run("reorder", *words.split(), "made.npy", "--shape", "2,17,4,5")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


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
