"""Which rows a grid file asks for, and what it may not say."""

import json
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.errors import InputError
from hexconv.spec import Case
from hexconv.sweep.grid_file import MOST_ROWS, Grid
from hexconv.sweep.journal import requests
from tests.strategies import cases

CHAIN = "[chain]\ninput = [1, 16, 16, 32]\n"
CONV = "[[chain.conv]]\nout_channels = 64\n"


def rows(text: str) -> list[Case]:
    """The cases of a grid without refusals."""
    return [Case.parse(request.toml, "case") for request in requests(Grid.parse(text), 0)]


def test_lists_of_the_plan_are_all_combined_the_last_fastest() -> None:
    found = rows(CHAIN + CONV + "[plan]\nk_split = [1, 2]\nh_split = [2, 1]\nstorage = 'vtcm'\n")
    assert [(case.plan.k_split, case.plan.h_split) for case in found] == [(1, 2), (1, 1), (2, 2), (2, 1)]
    assert {case.plan.storage for case in found} == {"vtcm"}


def test_fields_of_the_chain_and_of_all_convs_at_once() -> None:
    text = "[chain]\n" + CONV + "[[chain.conv]]\n[grid]\nkernel = [1, [3, 1]]\ninput = [[1, 8, 8, 4], [2, 9, 9, 5]]\n"
    found = rows(text + "out_channels = [7]\ndtype = ['float16']\n")
    assert [(case.chain.input, [conv.kernel for conv in case.chain.conv]) for case in found] == [
        ((1, 8, 8, 4), [(1, 1)] * 2),
        ((2, 9, 9, 5), [(1, 1)] * 2),
        ((1, 8, 8, 4), [(3, 1)] * 2),
        ((2, 9, 9, 5), [(3, 1)] * 2),
    ]
    assert {(case.chain.dtype, *(conv.out_channels for conv in case.chain.conv)) for case in found} == {
        ("float16", 7, 7)
    }


def test_single_convs_vary_apart() -> None:
    found = rows(CHAIN + CONV * 2 + "[[grid.conv]]\n[[grid.conv]]\nstride = [1, 2]\npadding = [[0, 0, 1, 1], 0]\n")
    assert all(case.chain.conv[0].stride == (1, 1) for case in found)
    assert [(case.chain.conv[1].stride[0], case.chain.conv[1].padding.right) for case in found] == [
        *[(1, 1), (1, 0)],
        *[(2, 1), (2, 0)],
    ]


@given(cases(), st.lists(st.integers(1, 9), unique=True, min_size=1), st.lists(st.integers(1, 9), min_size=1))
def test_a_grid_is_the_product_of_its_lists(case: Case, k_splits: list[int], h_splits: list[int]) -> None:
    """Each combination once, whether it makes a case or not, and as a row everything that the case is."""
    head, _, _ = case.to_toml().partition("[plan]")
    text = f"targets = ['cache', 'llvm']\n{head}[plan]\nk_split = {k_splits}\nh_split = {h_splits}\n"
    found = requests(Grid.parse(text), 0)
    asked = {(k, h, target) for k, h, target in product(k_splits, h_splits, ("cache", "llvm"))}
    assert Counter((r.known["k_split"], r.known["h_split"], r.target) for r in found) == Counter(asked)
    assert len({request.key for request in found}) == len({(r.case, r.target) for r in found}) == len(asked)
    for request in found:
        assert bool(request.toml) != bool(request.refusal)
        dtypes = {name: request.known[name] for name in ("dtype", "filter_dtype")}
        table = {"conv": json.loads(request.known["convs"]), **dtypes}
        size = [int(part) for part in request.known["input"].split("x")]
        ends = {name: request.known[name] for name in ("zero_point", "input_layout", "output_layout")}
        chain = {**table, "input": size, **ends}
        assert Case.of({"chain": chain}, "row").chain == case.chain


def test_cases_that_share_a_slug_get_names_of_their_own() -> None:
    found = requests(Grid.parse(CHAIN + CONV + "[grid]\nbias = [false, true]\n"), 0)
    assert len({request.case for request in found}) == 2
    assert all(request.case.startswith("n1h16w16c32-k64r1x1-float32-ks1-hs1-") for request in found)


def test_the_same_case_said_twice_is_one_row() -> None:
    assert len(requests(Grid.parse(CHAIN + CONV + "[grid]\nkernel = [1, [1, 1]]\n"), 0)) == 1


def test_the_seed_and_the_code_are_part_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid.parse(CHAIN + CONV)
    (first,), (other,) = requests(grid, 0), requests(grid, 1)
    monkeypatch.setattr("hexconv.sweep.journal.provenance", lambda: "other code")
    (later,) = requests(grid, 0)
    assert len({first.key, other.key, later.key}) == 3
    assert first.case == other.case == later.case


REFUSED = {
    "unknown-table": (CHAIN + CONV + "[gird]\n", "gird", "did you mean grid?"),
    "unknown-field": (CHAIN + CONV + "[grid]\nkernle = [1]\n", "grid.kernle", "did you mean kernel?"),
    "unknown-conv-field": (CHAIN + CONV + "[[grid.conv]]\nkernle = [1]\n", "grid.conv[0].kernle", "mean kernel?"),
    "unknown-plan-field": (CHAIN + CONV + "[plan]\nksplit = [1]\n", "plan.ksplit", "did you mean k_split?"),
    "no-list": (CHAIN + CONV + "[grid]\nkernel = 1\n", "grid.kernel", "a list of alternatives"),
    "no-alternative": (CHAIN + CONV + "[plan]\nk_split = []\n", "plan.k_split", "an empty list"),
    "varied-twice": (
        CHAIN + CONV + "[grid]\nkernel = [1]\n[[grid.conv]]\nkernel = [1]\n",
        "conv[0].kernel",
        "what grid.kernel varies",
    ),
    "too-many-convs": (CHAIN + CONV + "[[grid.conv]]\n[[grid.conv]]\n", "grid.conv", "at most the chain's 1"),
    "bad-alternative": (CHAIN + CONV + "[grid]\nkernel = [1, 0]\n", "grid.kernel[1]", "got 0"),
    "bad-plan": (CHAIN + CONV + "[plan]\norder = ['k_outer', 'w_outer']\n", "plan.order[1]", "'w_outer'"),
    "missing": ("[chain]\n" + CONV, "chain.input", "required"),
    "bad-target": ("targets = ['gpu']\n" + CHAIN + CONV, "targets", "cache, llvm, hexagon"),
    "no-target": ("targets = []\n" + CHAIN + CONV, "targets", "cache, llvm, hexagon"),
    "too-many-rows": (
        CHAIN + CONV + f"[plan]\nk_split = {list(range(1, 400))}\nh_split = {list(range(1, 400))}\n",
        "399 x 399",
        str(MOST_ROWS),
    ),
    "no-table": ("grid = 1\n" + CHAIN + CONV, "grid", "a table [grid]"),
    "not-toml": ("[grid", "not TOML", "grid.toml"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_grid_is_one_line(name: str) -> None:
    text, *parts = REFUSED[name]
    with pytest.raises(InputError) as refusal:
        Grid.parse(text, "grid.toml")
    message = str(refusal.value)
    assert message.startswith("grid.toml: ")
    assert "\n" not in message
    for part in parts:
        assert part in message
