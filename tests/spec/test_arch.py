"""Architectures: checked once, where a case is read; and how much VTCM one has, where TVM doesn't say or is wrong."""

from pathlib import Path
from typing import get_args

import pytest

from hexconv.analyze import vtcm_fit
from hexconv.cli.app import exit_code
from hexconv.errors import InputError
from hexconv.lower.hexagon_target import isas
from hexconv.search import Question, best_plan, placed
from hexconv.search.machine import known_machines
from hexconv.spec import Case, Chain, Conv2d, Plan
from hexconv.spec.capacities import CAPACITIES_BYTES, capacity_of
from hexconv.spec.knobs import Arch
from hexconv.spec.plan import WITHOUT_TAG

TEXT = "[chain]\ninput = [1, 8, 8, 4]\n[[chain.conv]]\nout_channels = 4\n[plan]\n"


@pytest.mark.parametrize("arch", ["v99999", "v68 ", "V68", "v٦٨", "68", "v64", ""])
def test_an_architecture_that_is_none_is_refused_where_a_case_is_read(arch: str) -> None:
    with pytest.raises(InputError, match=r"plan\.arch: got .*'v68'"):
        Case.parse(f'{TEXT}arch = "{arch}"\n', "case")


def test_the_known_ones_are_those_that_the_compiler_and_tvms_tags_and_the_rates_have() -> None:
    assert set(get_args(Arch)) - set(WITHOUT_TAG) == set(CAPACITIES_BYTES)
    assert set(get_args(Arch)) == set(known_machines())
    assert set(get_args(Arch)) <= set(isas())


@pytest.mark.parametrize("arch", WITHOUT_TAG)
def test_where_tvm_says_nothing_the_plan_has_to(arch: Arch) -> None:
    with pytest.raises(InputError, match=r"plan\.vtcm_bytes is missing"):
        Plan(storage="vtcm", arch=arch)
    with pytest.raises(InputError, match=r"plan\.vtcm_bytes is missing"):
        capacity_of(Plan(arch=arch))
    assert capacity_of(Plan(storage="vtcm", arch=arch, vtcm_bytes=8 << 20)) == 8 << 20


def test_what_a_plan_says_of_its_vtcm_holds() -> None:
    chain = Chain(input=(1, 64, 64, 64), conv=(Conv2d(out_channels=64),))
    assert capacity_of(Plan(arch="v73")) == 8 << 20
    demand = vtcm_fit(chain, Plan()).demand_bytes
    for size in (demand - 1, demand):
        plan = Plan(storage="vtcm", arch="v73", vtcm_bytes=size)
        assert vtcm_fit(chain, plan).fits == (size >= demand)
        assert placed(plan, demand) == (plan if size >= demand else placed(Plan(arch="v65"), demand))


def test_best_plans_for_an_architecture_of_which_nobody_knows_the_vtcm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chain.toml"
    path.write_text(f'{TEXT}arch = "v79"\n')
    assert exit_code(["best", str(path)]) == 2
    assert "plan.vtcm_bytes" in capsys.readouterr().err
    assert exit_code(["best", str(path), "--vtcm", "1MiB", "-o", str(tmp_path / "out")]) == 0
    answer = Case.load(tmp_path / "out" / "chain.toml").plan
    assert (answer.arch, answer.storage, answer.vtcm_bytes) == ("v79", "vtcm", 1 << 20)


def test_an_answer_keeps_the_vtcm_that_was_stated() -> None:
    chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=4),))
    best = best_plan(chain, Question(1 << 20, plan=Plan(storage="vtcm", arch="v73", vtcm_bytes=4 << 20))).best
    assert best is not None
    assert best.plan.vtcm_bytes == 4 << 20
