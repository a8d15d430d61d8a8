"""Which kernel a case gets: one rule, stated here a second time, for every wish, plan, chain and target."""

import json
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.cli.app import exit_code
from hexconv.errors import InputError
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize, Target, choose_kernels, settled
from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernels import KERNELS, Kernel
from hexconv.spec.knobs import acts

SCHEDULES = Path(__file__).parents[2] / "schedules"

SCALE = Requantize(multiplier=1 << 20, shift=-4)


def conv(scale: Requantize | None, dtype: Dtype) -> Conv2d:
    return Conv2d(out_channels=64, requantize=scale, filter_l1=65535 if dtype == "int16" else None)


SCALES: dict[Dtype, Requantize | None] = {
    "uint8": SCALE,
    "int8": SCALE,
    "int16": SCALE,
    "float32": None,
    "float16": None,
}
CHAINS = {
    dtype: Chain(input=(1, 16, 16, 64), dtype=dtype, conv=(conv(scale, dtype),)) for dtype, scale in SCALES.items()
}
LEFT = Requantize(multiplier=1 << 12, shift=1)
"""HVX shifts to the right alone."""
FAR = Requantize(multiplier=1 << 16, shift=-7, zero_point=200, rounding="up")
"""Beside its zero point, 22 bits to the left, HVX has no room for sums of 30000 products."""
CHAINS |= {
    "signed filters": replace(CHAINS["uint8"], filter_dtype="int8"),
    "left": replace(CHAINS["uint8"], conv=tuple(conv(scale, "uint8") for scale in (LEFT, SCALE, LEFT))),
    "far": Chain(input=(1, 1, 1, 30000), dtype="uint8", conv=(conv(FAR, "uint8"), conv(SCALE, "uint8"))),
}
ON_ENGINE = [CHAINS[name] for name in ("uint8", "int8", "signed filters")]
"""All of whose convs the matrix engine serves."""
TARGETS: tuple[Target, ...] = ("llvm", "hexagon")
STATED = {
    "k_split": 2,
    "h_split": 2,
    "order": "h_outer",
    "filters": "resident",
    "buffering": "double",
    "padding_rows": "slabs",
    "threads": 2,
    "storage": "vtcm",
    "activations": "splats",
    "arch": "v69",
    "vtcm_bytes": 1 << 20,
}
OBEYED_BY_HVX = set(STATED) - {"padding_rows"}
OBEYED_BY_PLAIN = OBEYED_BY_HVX - {"activations", "threads"}
OBEYED_BY_HMX = {*OBEYED_BY_PLAIN, "padding_rows", "threads"}
OBEYED: dict[Kernel | None, set[str]] = {"hvx": OBEYED_BY_HVX, "hmx": OBEYED_BY_HMX}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any wish with any of the knobs that go with it, or none."""
    kernel = draw(st.sampled_from((None, *KERNELS)))
    obeyed = OBEYED.get(kernel, OBEYED_BY_PLAIN)
    stated = draw(st.sets(st.sampled_from(sorted(obeyed)), max_size=2))
    return Plan(kernel=kernel, **{knob: STATED[knob] for knob in stated})


def expected(chain: Chain, index: int, plan: Plan | None, target: str) -> str:
    """The contract for a conv, in other words than the code has."""
    serves = chain.conv[index].requantize == SCALE and target == "hexagon"
    if plan and plan.kernel == "hmx" and serves and chain in ON_ENGINE:
        return "hmx"
    if plan and plan.kernel == "hvx" and serves:
        return "hvx"
    if not serves or (plan and plan.kernel == "plain"):
        return "plain"
    meant = plan.stated.keys() & OBEYED_BY_PLAIN if plan else set()
    return "hvx" if meant <= OBEYED_BY_HVX else "plain"


@given(st.sampled_from(sorted(CHAINS)), st.none() | plans(), st.sampled_from(TARGETS))
def test_every_conv_gets_what_the_contract_says(dtype: str, plan: Plan | None, target: Target) -> None:
    chain = CHAINS[dtype]
    for index, choice in enumerate(choose_kernels(chain, plan, target)):
        assert choice.used == expected(chain, index, plan, target)
        assert choice.asked == (plan.kernel if plan else None)
        assert choice.why
        assert choice.why.startswith("as asked") == (choice.used == choice.asked)


@given(
    st.sampled_from(sorted(CHAINS)),
    st.none() | plans(),
    st.sampled_from(("llvm", "hexagon", None)),
)
def test_a_settled_plan_is_what_runs(dtype: str, plan: Plan | None, target: Target | None) -> None:
    """Its kernel serves, all of its knobs act, those that act are kept, and to settle it again changes nothing."""
    chain = CHAINS[dtype]
    found = settled(chain, plan, target)
    used = {choice.used for choice in choose_kernels(chain, plan, target)}
    assert found.kernel == (used - {"plain"} or used).pop()
    assert found.kernel
    stated = plan.stated if plan else {}
    kept = {knob: value for knob, value in stated.items() if acts(knob, found.kernel)}
    if plan and plan.kernel != found.kernel:
        kept.pop("threads", None)
    assert found.stated.items() >= kept.items()
    assert all(acts(knob, found.kernel) for knob in found.stated)
    assert settled(chain, found, target) == found
    assert found.threads == kept.get("threads", 1)


@pytest.mark.parametrize(("kernel", "knob"), tuple(product((None, *KERNELS), STATED)))
def test_a_plan_refuses_a_knob_that_would_do_nothing(kernel: Kernel | None, knob: str) -> None:
    obeyed = OBEYED.get(kernel, OBEYED_BY_PLAIN)
    if knob in obeyed:
        assert Plan(kernel=kernel, **{knob: STATED[knob]}).stated == {knob: STATED[knob]}
        return
    does = "would" if kernel else "no kernel might"
    with pytest.raises(
        InputError, match=f"^plan.{knob}: .* {does} do nothing: .* does not obey {knob}: .* obeys? it; leave it out"
    ):
        Plan(kernel=kernel, **{knob: STATED[knob]})


@given(plans(), plans())
def test_names_tell_plans_apart_by_knobs_that_act(one: Plan, other: Plan) -> None:
    """But for whose VTCM it is where no cache lies in it."""
    if one.uses_vtcm and other.uses_vtcm:
        assert (one.slug == other.slug) == (one == other)
    assert ("ks" in one.slug) == acts("k_split", one.kernel or "plain")


def test_an_empty_plan_is_no_plan() -> None:
    chain = "[chain]\ninput = [1, 8, 8, 4]\n[[chain.conv]]\nout_channels = 4\n"
    empty, none = (Case.parse(text, "case") for text in (f"{chain}[plan]\n", chain))
    assert empty == none
    assert "[plan]" not in empty.to_toml()
    assert Case.parse(none.to_toml(), "case") == none
    stated = Case.parse(f"{chain}[plan]\nh_split = 1\n", "case")
    assert Case.parse(stated.to_toml(), "case") == stated != none
    on_this_machine = [settled(case.chain, case.plan if case.states_plan else None, "llvm") for case in (stated, none)]
    assert [plan.kernel for plan in on_this_machine] == ["plain", "plain"]


@pytest.mark.parametrize("path", sorted(SCHEDULES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_documented_cases_are_plain_wherever_they_run(path: Path) -> None:
    for target in ("hexagon", "llvm", None):
        assert {choice.used for choice in Case.load(str(path), target).kernels} == {"plain"}


INTEGER = (
    "[chain]\ninput = [1, 9, 9, 4]\ndtype = 'int8'\n"
    "[[chain.conv]]\nout_channels = 4\nrequantize = {multiplier = 1048576, shift = SHIFT}\n"
)
FLOAT = "[chain]\ninput = [1, 9, 9, 4]\n[[chain.conv]]\nout_channels = 4\n"
FILES = {
    "an integer chain without a plan": INTEGER.replace("SHIFT", "-4"),
    "a float chain without a plan": FLOAT,
    "a float chain with a plan of defaults": FLOAT + "[plan]\nk_split = 1\nh_split = 1\n",
    "a wish for hvx that it can't serve": INTEGER.replace("SHIFT", "2") + "[plan]\nkernel = 'hvx'\n",
    "a wish for hvx": INTEGER.replace("SHIFT", "-4") + "[plan]\nkernel = 'hvx'\n",
    "a wish for hvx that it can't serve for one conv": (
        INTEGER.replace("SHIFT", "-4")
        + INTEGER.replace("SHIFT", "2").partition("'int8'\n")[2]
        + "[plan]\nkernel = 'hvx'\n"
    ),
    "a plan that hvx obeys": INTEGER.replace("SHIFT", "-4") + "[plan]\nh_split = 2\n",
}


@pytest.mark.parametrize("target", ["llvm", "hexagon"])
@pytest.mark.parametrize("name", FILES)
def test_every_command_shows_the_same_kernels(
    name: str, target: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its JSON; and what it falls back to, in one line on standard error. A search makes a plan, and obeys none."""
    path = tmp_path / "asked.toml"
    path.write_text(FILES[name])
    case = Case.load(path, target)
    wish = Plan(kernel=case.plan.kernel, threads=case.plan.threads) if case.plan.kernel else None
    planned = choose_kernels(case.chain, wish, target)
    commands = [["cache"], ["tir", "-o", str(tmp_path)], ["best", "--vtcm", "1MiB"]]
    for command, *options in [*commands, *([["run"]] if target == "llvm" else [])]:
        kernels = [asdict(choice) for choice in (planned if command == "best" else case.kernels)]
        assert exit_code([command, str(path), *options, "--target", target, "--json"]) == 0
        out, err = capsys.readouterr()
        rows = json.loads(out)
        row = rows["chains"][0] if command == "best" else rows[0]
        assert row["kernels"] == kernels, command
        told = any(choice["asked"] not in (None, choice["used"]) or choice["cost"] for choice in kernels)
        assert err.count("\n") == told, (command, err)
        assert all(choice["why"] in err for choice in kernels if told)
        if command == "best":
            used = {choice["used"] for choice in kernels}
            assert Case.parse(row["toml"], "answer", target=target).plan.kernel == (used - {"plain"} or used).pop()


def test_a_fallback_names_the_knobs_that_do_nothing_then() -> None:
    stated = "[plan]\nkernel = 'hvx'\nrows = 2\nk_split = 1\nthreads = 4\nstorage = 'vtcm'\n"
    case = Case.parse(FLOAT + stated, "float")
    assert [choice.why.partition("; ")[2] for choice in case.kernels] == ["without effect then: rows, threads"]
    assert case.settled.stated == {"storage": "vtcm"}
    served = Case.parse(INTEGER.replace("SHIFT", "-4") + stated, "served")
    assert [choice.why for choice in served.kernels] == ["as asked"]
