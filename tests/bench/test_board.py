"""The board of bytes: it is what the search finds, no figure beats what is needed, and QNN's model is the chain."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest

from hexconv.compute import reference
from hexconv.run.tensors import filled_tensors
from reports.board import LIMITS_MIB, NETS, write_rows
from reports.bytes import DEFINES_BYTES, accounts_of, rows
from reports.bytes_picture import points
from reports.fits import keeping, taps_of
from reports.qnn import ARCHITECTURES, qdq_model
from tests.deep import one_in

REPORTS = Path(__file__).parents[2] / "reports"
TABLE = pd.read_csv(REPORTS / "bytes.csv")
ASKED = [(net, chain) for net, chains in NETS.items() for chain in chains]


def test_every_chain_stands_there_under_every_limit() -> None:
    assert len(NETS) >= 20
    assert {net for net, _ in DEFINES_BYTES} <= set(NETS)
    rows_of_table = list(zip(TABLE.net, TABLE.chain, TABLE.vtcm_mib, strict=True))
    assert rows_of_table == [(net, chain, limit) for net, chain in ASKED for limit in LIMITS_MIB]


def test_qnn_was_asked_about_every_chain_on_every_hexagon() -> None:
    asked = pd.read_csv(REPORTS / "qnn.csv")
    wanted = [(net, chain, isa, limit) for net, chain in ASKED for isa in ARCHITECTURES for limit in LIMITS_MIB]
    assert list(zip(asked.net, asked.chain, asked.isa, asked.vtcm_mib, strict=True)) == wanted
    assert (asked.read_bytes.notna() | asked.said.notna()).all()


def test_nothing_moves_less_than_is_needed_and_more_memory_never_moves_more() -> None:
    moved = TABLE.dropna(subset="traffic_bytes")
    assert (moved.traffic_bytes >= moved.needed_bytes).all()
    assert all(group.traffic_bytes.is_monotonic_decreasing for _, group in moved.groupby(["net", "chain"]))


@pytest.mark.parametrize("isa", ARCHITECTURES)
def test_no_chain_moves_more_than_qnn_states(isa: str) -> None:
    """The README says so."""
    stated = TABLE.dropna(subset=f"qnn_{isa}_bytes")
    assert len(stated) > 300
    assert (stated.traffic_bytes <= stated[f"qnn_{isa}_bytes"]).all()


@pytest.mark.parametrize("net", ["windows", "yolo", "mobilenetv2", "fsrcnn"])
def test_results_of_the_nets_tell_what_they_were_computed_from(net: str) -> None:
    whole = list(NETS[net].values())[-1]
    chain = keeping(replace(whole, input=(1, *(min(side, 40) for side in whole.input[1:3]), whole.input[3])))
    tensors = filled_tensors(chain, taps_of(chain))
    assert len(np.unique(reference(chain, tensors.image, tensors.filters, tensors.biases, tensors.vectors))) > 200


@pytest.mark.parametrize("net", one_in(3, ["pointwise", "all-1x1", "srcnn"]))
def test_the_table_is_what_the_search_finds(net: str) -> None:
    found = pd.DataFrame([vars(row) for row in rows([net], accounts_of(REPORTS / "qnn.csv"))])
    stated = TABLE.query("net == @net").reset_index(drop=True)
    assert found.astype("string").to_dict() == stated.convert_dtypes().astype("string").to_dict()


@pytest.mark.parametrize(
    ("net", "chain"), [pair for pair in ASKED if pair[0] in ("srcnn", "mobilenetv2", "inceptionv3")]
)
def test_the_model_that_qnn_reads_has_the_shapes_of_the_chain(net: str, chain: str) -> None:
    model, stated = qdq_model(NETS[net][chain]), NETS[net][chain]
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    shapes = {
        value.name: tuple(d.dim_value for d in value.type.tensor_type.shape.dim) for value in inferred.graph.value_info
    }
    made = [(n, h, w, c) for n, c, h, w in (shapes[f"map{number}"] for number in range(len(stated.conv) + 1))]
    assert made == list(stated.shapes)


def test_the_model_that_qnn_reads_computes_something() -> None:
    model = qdq_model(NETS["srcnn"]["all"])
    image = np.random.default_rng(1).integers(0, 256, (1, 256, 256, 1), dtype=np.uint8)
    session = onnxruntime.InferenceSession(  # pyright: ignore[reportCallIssue]
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (made,) = session.run(["y"], {"x": image})
    assert made.shape == (1, 256, 256, 1)
    assert len(np.unique(made)) > 10


def test_rows_of_other_nets_stay(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_rows(path, ["windows", "vgg16"], [{"net": "windows", "read_bytes": 1}, {"net": "vgg16", "read_bytes": None}])
    write_rows(
        path, ["pointwise", "windows"], [{"net": "pointwise", "read_bytes": 3}, {"net": "windows", "read_bytes": 4}]
    )
    assert path.read_text().split() == ["net,read_bytes", "pointwise,3", "windows,4", "vgg16,"]


def test_a_net_has_no_point_where_a_chain_of_it_has_no_figure() -> None:
    table = pd.DataFrame(
        {
            "net": ["a", "a", "b"],
            "vtcm_mib": [1, 1, 1],
            "needed_bytes": [10, 10, 5],
            "traffic_bytes": [10, 30, 5],
            "qnn_v73_bytes": [20, None, 10],
            "qnn_v75_bytes": [20, 60, 10],
            "defines_bytes": [None, None, None],
        }
    )
    found = {(row["net"], row["tool"]): row["times"] for row in points(table).to_dict("records")}
    assert found == {
        ("a", "hexconv"): 2,
        ("b", "hexconv"): 1,
        ("b", "QNN v73"): 2,
        ("a", "QNN v75"): 4,
        ("b", "QNN v75"): 2,
    }
