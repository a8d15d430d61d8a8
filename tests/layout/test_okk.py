"""Tensors in local memory against what simulators left there, the document's examples, and laws."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import InputError, Unsupported
from hexconv.layout import okk

from .laws import check_all, check_reorder
from .okk_cases import build, memory_digest

GOLDEN = json.loads((Path(__file__).parent / "golden" / "okk.json").read_text())

BM1684 = okk.CHIPS["bm1684"]
DOCUMENT = replace(BM1684, name="document", npus=4, local_bytes=1024)
"""The document draws its examples for four NPUs of 1024 bytes."""


@pytest.mark.parametrize("answer", GOLDEN[:60], ids=lambda answer: "-".join(map(str, answer["case"].values())))
def test_memories_are_what_the_simulators_left(answer):
    assert memory_digest(answer["case"]) == answer["memory"]
    assert list(okk.strides_of(build(answer["case"]))) == answer["strides"]


@pytest.mark.parametrize(("address", "npu", "offset"), [(340, 0, 340), (1472, 1, 448), (2300, 2, 252), (3088, 3, 16)])
def test_the_document_s_addresses(address, npu, offset):
    assert DOCUMENT.split(address) == (npu, offset)
    assert DOCUMENT.join(npu, offset) == address


@pytest.mark.parametrize(("channels", "start", "rows"), [(3, 0, 1), (3, 1, 1), (6, 0, 2), (6, 3, 3)])
def test_the_document_s_scatter(channels, start, rows):
    assert okk.channels_per_npu(DOCUMENT, start, channels) == rows
    layout = okk.local(DOCUMENT, "compact", (2, channels, 1, 1), "float32", start_npu=start)
    npus = [layout.address((1, c, 0, 0))["npu"] for c in range(channels)]
    assert npus == [(start + c) % 4 for c in range(channels)]


def test_the_document_s_strided_example():
    layout = okk.local(DOCUMENT, "strided", (2, 5, 3, 4), "float32", strides=(120, 56, 16, 2))
    assert layout.address((1, 4, 2, 3)) == {"npu": 0, "byte": 4 * (120 + 56 + 32 + 6)}
    check_all(layout)


@pytest.mark.parametrize(("start", "n_stride"), [(0, 32), (2, 64)])
def test_the_document_s_aligned_example(start, n_stride):
    layout = okk.local(DOCUMENT, "aligned", (2, 3, 4, 5), "float32", start_npu=start)
    assert layout.outputs[1].extent == 2 * n_stride


@pytest.mark.parametrize(
    ("width", "npu", "byte"),
    [(40, 0, 4 * (64 + 39)), (20, 1, 4 * (32 + 19)), (10, 3, 4 * (32 + 9)), (8, 0, 4 * (64 + 32 + 7)),
     (15, 2, 4 * (32 + 9)), (6, 2, 4 * (64 + 32 + 3))],
)  # fmt: skip
def test_the_document_s_matrix(width, npu, byte):
    layout = okk.matrix(DOCUMENT, 2, 40, width, "float32")
    assert layout.address((1, 39)) == {"npu": npu, "byte": byte}
    check_all(layout)


def test_the_document_s_storage_modes():
    by_four = okk.joined(BM1684, "4n", (6, 5, 4, 5), "int8")
    places = [by_four.address((n, 4, 3, 4))["byte"] for n in range(6)]
    unit = 3 * 5 + 4
    assert places == [
        4 * unit,
        4 * unit + 1,
        4 * unit + 2,
        4 * unit + 3,
        4 * (32 + unit),
        4 * (32 + unit) + 1,
    ]
    by_two = okk.joined(BM1684, "2n", (3, 5, 4, 5), "int16")
    assert [by_two.address((n, 0, 0, 1))["byte"] for n in range(3)] == [4, 6, 4 * 33]
    by_two_in = okk.joined(BM1684, "2ic", (3, 65, 2, 2), "float32")
    assert by_two_in.address((1, 64, 1, 1)) == {"npu": 0, "byte": 8 * (4 + 3) + 4}
    assert by_two_in.address((2, 1, 0, 0)) == {"npu": 1, "byte": 8 * 8}


@st.composite
def tensors(draw):
    chip = okk.CHIPS[draw(st.sampled_from(sorted(okk.CHIPS)))]
    channels = draw(st.sampled_from((1, 3, chip.npus - 1, chip.npus + 1)))
    shape = (draw(st.integers(1, 3)), channels, draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    place = {
        "start_npu": draw(st.sampled_from((0, 1, chip.npus - 1))),
        "offset_bytes": draw(st.integers(0, 3)) * chip.eu_bytes,
    }
    name = draw(st.sampled_from((*okk.NAMED, "matrix", "4n", "2n", "2ic")))
    if name == "matrix":
        return okk.matrix(chip, shape[0], channels, draw(st.integers(1, channels)), "float32", **place)
    if name in okk.MODES:
        dtype = okk.MODES[name].dtypes[0]
        return okk.joined(BM1684, name, shape, dtype, start_npu=place["start_npu"], offset_bytes=128)
    return okk.local(chip, name, shape, draw(st.sampled_from(("float32", "float16", "int8"))), **place)


@given(tensors(), st.integers(-2, 2))
def test_every_law_holds_for_every_tensor(layout, fill):
    check_all(layout, fill)


@given(st.lists(st.integers(1, 4), min_size=4, max_size=4), st.integers(0, 3))
def test_tensors_go_to_system_memory_and_back(shape, start):
    local = okk.local(DOCUMENT, "aligned", shape, "float32", start_npu=start)
    check_reorder(local, okk.system(shape, "float32", offset_bytes=16))
    check_reorder(okk.system(shape, "float32", strides=(300, 70, 16, 3)), local)


def test_strides_that_repeat_elements_are_told():
    layout = okk.local(BM1684, "strided", (2, 3, 2, 2), "float32", strides=(0, 4, 2, 1))
    assert layout.collision() == ((0, 0, 0, 0), (1, 0, 0, 0))
    assert layout.address((0, 1, 1, 1)) == layout.address((1, 1, 1, 1))
    with pytest.raises(Unsupported, match="share an address"):
        layout.owner((0, 0))


def test_interleaved_strides_have_an_inverse_all_the_same():
    layout = okk.system((1, 1, 2, 3), "float32", strides=(12, 12, 3, 2))
    assert not layout.nested
    check_all(layout)


LOCAL = {"chip": BM1684, "name": "aligned", "shape": (1, 1, 1, 1), "dtype": "float32"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"offset_bytes": 64}, "multiples of 128"),
        ({"offset_bytes": 2, "name": "compact"}, "multiples of 4"),
        ({"offset_bytes": 8, "chip": okk.CHIPS["bm1688"]}, "multiples of 16"),
        ({"start_npu": 64}, "0 to 63"),
        ({"start_npu": -1}, "0 to 63"),
        ({"offset_bytes": 524288}, "0 to 524287"),
        ({"shape": (1, 1, 600, 600)}, "past the end"),
        ({"shape": (1, 1, 1, 33), "offset_bytes": 524160}, "4 bytes past the end"),
        ({"shape": (1, 4096, 1, 1)}, "1 to 4095"),
        ({"shape": (65536, 1, 1, 1)}, "1 to 65535"),
        ({"shape": (0, 1, 1, 1)}, "1 to 65535"),
        ({"shape": (1, 1, 1)}, "four sizes"),
        ({"dtype": "float64"}, "float32"),
        ({"name": "strided", "strides": (1, 1, 1)}, "four strides"),
        ({"name": "strided", "strides": (1, 1, -1, 1)}, "four strides"),
    ],
)
def test_what_the_chip_refuses_is_refused(asked, said):
    with pytest.raises(InputError, match=said):
        okk.local(**(LOCAL | asked))


def test_modes_refuse_other_types_and_other_chips():
    with pytest.raises(InputError, match="int8 or uint8"):
        okk.joined(BM1684, "4n", (1, 1, 1, 1), "float32")
    with pytest.raises(Unsupported, match="BM1684's"):
        okk.joined(okk.CHIPS["bm1684x"], "4n", (1, 1, 1, 1), "int8")


@pytest.mark.parametrize("width", [0, 41])
def test_a_matrix_has_between_one_and_all_columns_per_channel(width):
    with pytest.raises(InputError, match="1 to 40"):
        okk.matrix(BM1684, 2, 40, width, "float32")


def test_the_matrix_dma_of_the_bm1684_counts_from_npu_0():
    """Facts of the simulators: rows are 32 elements apart where the layout wants 64."""
    okk.check_matrix_dma(BM1684, 40, 15, "float32", 60)
    with pytest.raises(Unsupported, match="32 elements apart at start NPU 62"):
        okk.check_matrix_dma(BM1684, 40, 15, "float32", 62)
    okk.check_matrix_dma(okk.CHIPS["bm1684x"], 40, 15, "float32", 62)


def test_a_dma_wants_dense_rows():
    okk.check_dma_strides((8, 8, 4, 1))
    with pytest.raises(InputError, match="w stride"):
        okk.check_dma_strides((8, 8, 4, 2))


def test_banks_divide_local_memory():
    assert [chip.local_bytes // chip.banks for chip in okk.CHIPS.values()] == [65536, 16384, 8192]


def test_padding_is_everything_that_isn_t_an_element():
    layout = okk.local(DOCUMENT, "aligned", (1, 3, 1, 5), "float32", start_npu=1)
    store = layout.pack(np.ones((1, 3, 1, 5), np.int32), fill=-1)
    assert (store == -1).sum() == layout.elements - 15
    assert layout.waste_bytes == 4 * (4 * 32 - 15)
