"""Chains that differ in requantisation alone: compiled once, and each computes what its own constants say."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hexconv.build import build, built_chain, shared_code
from hexconv.build.built_chain import ToCompile
from hexconv.build.called_library import simulated_chain
from hexconv.build.shared_code import Marked, without_scales
from hexconv.lower import lower_case
from hexconv.lower.c_functions import callable_module
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.addition import Add

ISA = "v67"
AROUND = Padding(top=1, left=1, bottom=1, right=1)
PLAN = Plan(kernel="hvx", order="h_outer", halo="roll", filters="resident", buffering="double", threads=2)
SCALES = (
    Requantize(multiplier=3 << 29, shift=-10, zero_point=128),
    Requantize(multiplier=(1 << 31) - 1, shift=-11, zero_point=1),
    Requantize(multiplier=0x4D2B6F19, shift=-9, zero_point=255),  # the first mark
    Requantize(multiplier=0x4D308916 + 5, shift=-10, zero_point=77),  # near the second one
)


def _case(name: str, first: Requantize, second: Requantize) -> Case:
    convs = [
        Conv2d(out_channels=40, kernel=(3, 3), filter_zero_point=128, bias=True, bias_limit=1 << 18, requantize=each)
        for each in (first, second)
    ]
    return Case(name, Chain(input=(1, 20, 12, 64), dtype="uint8", zero_point=3, conv=tuple(convs)), PLAN)


FIRST = Requantize(multiplier=1 << 30, shift=-10, zero_point=128)
CASES = [_case(f"chain{i}", replace(FIRST, multiplier=(1 << 30) + i), one) for i, one in enumerate(SCALES)]


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The names of functions that LLVM compiles, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names: list[str] = []

    def counted(*given: Any) -> Any:
        names.append(given[0].name)
        return best_way(*given)

    best_way = shared_code.best_way
    monkeypatch.setattr(shared_code, "best_way", counted)
    monkeypatch.setattr(built_chain, "ToCompile", partial(ToCompile, is_shared=True))
    return names


@pytest.mark.simulator
def test_chains_of_one_shape_are_compiled_once_and_each_scales_by_its_own_constants(
    compilations: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    chains = build([(case, random_tensors(case.chain, 5)) for case in CASES], folder, "hexagon", ISA)
    assert len(compilations) == 1
    wanted = [(folder / f"{chain.name}.output.bin").read_bytes() for chain in chains]
    assert len(set(wanted)) == len(CASES)
    for chain, case, output in zip(chains, CASES, wanted, strict=True):
        run = simulated_chain(folder, chain, random_tensors(case.chain, 5).image, Simulator(slots=False))
        assert run.outputs[0].tobytes() == output


def _of_kind(kind: str, case: Case) -> Case:
    """The same chain of another kind, whose scales are the same."""
    (first, second), chain = case.chain.conv, case.chain
    by = second.requantize
    assert by
    if kind == "signed":
        scales = [replace(each.requantize, zero_point=-7) for each in (first, second) if each.requantize]
        convs = tuple(
            replace(each, filter_zero_point=0, requantize=own)
            for each, own in zip((first, second), scales, strict=True)
        )
        return replace(case, chain=replace(chain, dtype="int8", conv=convs))
    if kind == "clamped":
        return replace(
            case, chain=replace(chain, conv=(first, replace(second, requantize=replace(by, clamp=(3, 200)))))
        )
    if kind == "added":
        added = replace(second, padding=AROUND, add=Add(from_="conv1", scales=(0.0213, 0.0301, 0.0417), zero_point=5))
        return replace(case, chain=replace(chain, conv=(first, added)))
    if kind == "depthwise":
        return replace(case, chain=replace(chain, conv=(first, replace(second, groups=40))))
    assert kind == "engine"
    convs = (replace(first, filter_zero_point=0), replace(second, filter_zero_point=0))
    plan = replace(PLAN, kernel="hmx", threads=1)
    return replace(case, chain=replace(chain, filter_dtype="int8", conv=convs), plan=plan)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("kind", "is_shared"),
    [("signed", True), ("clamped", True), ("added", False), ("depthwise", True), ("engine", True)],
)
def test_alike_chains_of_every_kind_are_numpys(
    kind: str, is_shared: bool, compilations: list[str], tmp_path: Path
) -> None:
    """An Add's form is searched for its scales, so that no mark stands for them."""
    folder, cases = tmp_path / "out", [_of_kind(kind, case) for case in CASES[:2]]
    chains = build([(case, random_tensors(case.chain, 5)) for case in cases], folder, "hexagon", ISA)
    assert (len(compilations) == 1) == is_shared
    for chain, case in zip(chains, cases, strict=True):
        run = simulated_chain(folder, chain, random_tensors(case.chain, 5).image, Simulator(slots=False))
        assert run.outputs[0].tobytes() == (folder / f"{chain.name}.output.bin").read_bytes()


def test_what_requantises_otherwise_in_kind_is_compiled_apart(compilations: list[str], tmp_path: Path) -> None:
    """Multipliers that are one share a register; a zero point of 0 adds nothing."""
    made = [CASES[0], _case("one", FIRST, FIRST), _case("none", FIRST, replace(SCALES[0], zero_point=0))]
    build([(case, random_tensors(case.chain, 5)) for case in made], tmp_path / "out", "hexagon", ISA)
    assert len(compilations) == len(made)


def test_chains_of_which_scales_alone_differ_are_known_by_their_cases() -> None:
    assert len({without_scales(case) for case in CASES}) == 1
    others = (replace(CASES[0], plan=replace(PLAN, threads=1)), _case("clamped", FIRST, replace(FIRST, clamp=(0, 9))))
    assert all(without_scales(other) != without_scales(CASES[0]) for other in others)


@pytest.mark.parametrize("apart", [-shared_code._REACH, -1, 8956, 32767])
@pytest.mark.parametrize("sign", [1, -1])
def test_nothing_is_shared_where_a_number_may_have_been_made_of_a_mark(apart: int, sign: int) -> None:
    """A ring of 1695 rows is walked by a product with 1297358853, 8956 below a mark that once stood there."""
    marked = Marked.of(callable_module(lower_case(CASES[1]).module, "mine"))
    every = "NAME_kernel:\n" + "".join(f"\t\tr1 = ##{mark}\n" for mark in marked.values)
    mark, value = next(iter(marked.values.items()))
    assert marked.own_text(every).startswith(f"mine_kernel:\n\t\tr1 = ##{value}\n")
    assert marked.own_text(f"{every}\t\tr0 = ##{sign * (mark + apart)}\n") == ""
    assert marked.own_text(f"{every}\t\tr0 = add(r1,#{mark})\n") == ""
    assert marked.own_text(every.replace(str(mark), "1")) == "", (
        "a mark that is nowhere may be hidden in another number"
    )


@pytest.mark.parametrize("divisor", [3, 7, 423, 1695, 2999, 8191])
def test_no_mark_is_what_a_division_multiplies_by(divisor: int) -> None:
    for bits in range(30, 64):
        assert not {(1 << bits) // divisor, (1 << bits) // divisor + 1} & {*shared_code._MARKS}
    assert shared_code._divides((1 << 41) // divisor)
