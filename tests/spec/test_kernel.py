"""Which kernel a case gets that names none."""

from pathlib import Path

import pytest

from hexconv.spec import Case, Plan, Target

SCHEDULES = Path(__file__).parents[2] / "schedules"


def case(dtype: str, plan: str = "", shift: int = -4, target: Target | None = None) -> Case:
    requantize = f"requantize = {{ multiplier = 1048576, shift = {shift} }}" if "int" in dtype else ""
    requantize += "\nfilter_l1 = 65535" if dtype == "int16" else ""
    text = f'[chain]\ninput = [1, 8, 8, 4]\ndtype = "{dtype}"\n[[chain.conv]]\nout_channels = 4\n{requantize}\n{plan}'
    return Case.parse(text, "case", target=target)


@pytest.mark.parametrize(
    ("dtype", "on_hexagon", "on_this_machine"),
    [
        ("uint8", "hvx", "plain"),
        ("int8", "hvx", "plain"),
        ("int16", "hvx", "plain"),
        ("float32", "plain", "host"),
        ("float16", "plain", "plain"),
    ],
)
def test_a_file_without_a_plan_gets_the_fastest_kernel_of_its_target(
    dtype: str, on_hexagon: str, on_this_machine: str
) -> None:
    assert case(dtype, target="hexagon").plan.kernel == on_hexagon
    assert case(dtype, target="llvm").plan.kernel == on_this_machine
    assert case(dtype).plan == Plan()


def test_what_the_fast_kernel_does_not_serve_is_plain() -> None:
    assert case("uint8", shift=2, target="hexagon").plan == Plan()


@pytest.mark.parametrize("plan", ["[plan]", "[plan]\nh_split = 1", '[plan]\nstorage = "vtcm"'])
def test_any_stated_plan_is_the_documented_strategys(plan: str) -> None:
    for dtype in ("uint8", "float32"):
        for target in ("hexagon", "llvm"):
            assert case(dtype, plan, target=target).plan.kernel == "plain"


@pytest.mark.parametrize("path", sorted(SCHEDULES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_documented_cases_are_plain_wherever_they_run(path: Path) -> None:
    for target in ("hexagon", "llvm"):
        assert Case.load(path, target) == Case.load(path)
        assert Case.load(path).plan.kernel == "plain"
