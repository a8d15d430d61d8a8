"""Documented figures are a third opinion: a true one agrees, a false one exits 1, whoever shares the memory."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hexconv.analyze import cache_usage
from hexconv.cli.app import exit_code
from hexconv.spec import Case
from hexconv.spec.case import to_toml
from tests.lowered import lower_case

SCHEDULES = Path(__file__).parents[2] / "schedules"
PATHS = sorted(SCHEDULES.glob("*.toml"))
CACHES = ("input_cache", "filter1_cache", "intermediate1", "filter2_cache", "output_cache")

# `test_conv2d_blocked.md` of Apache TVM, in its history until 2025: the three schedules of one conv.
ONE_CONV = {
    "baseline-1x1": (1, "", (32768, 2048, 16384)),
    "split-1x1": (1, "k_split = 2\nh_split = 2", (65536, 4096, 65536)),
    "split-3x3": (3, "k_split = 2\nh_split = 2", (98304, 36864, 65536)),
}


@pytest.mark.parametrize("name", ONE_CONV)
def test_the_figures_of_the_document_on_one_conv_agree(name: str) -> None:
    size, splits, figures = ONE_CONV[name]
    chain = f"[chain]\ninput = [1, 64, 64, 64]\n[[chain.conv]]\nout_channels = 128\nkernel = {size}\n"
    documented = dict(zip(("input_cache", "filter1_cache", "output_cache"), figures, strict=True))
    stated = "\n".join(f"{cache} = {elements}" for cache, elements in documented.items())
    case = Case.parse(f'{chain}[plan]\nkernel = "plain"\n{splits}\n[documented]\n{stated}\n', name)
    usage = cache_usage(case, lower_case(case))
    assert usage.agrees
    assert {memory.name: memory.documented_elements for memory in usage.allocations} == documented


@pytest.fixture
def stating(tmp_path: Path) -> Callable[..., Path]:
    """A quick case that states figures: both convs of 8x8 pixels, 32 channels; each allocation has 2048 or 1024."""

    def write(**documented: int) -> Path:
        quick = Case.parse(
            "[chain]\ninput = [1, 8, 8, 32]\n[[chain.conv]]\nout_channels = 32\n[[chain.conv]]\nout_channels = 32\n"
            '[plan]\nkernel = "plain"\n',
            "quick",
        )
        path = tmp_path / "quick.toml"
        path.write_text(to_toml(quick.chain, quick.plan, documented.items()))
        return path

    return write


@pytest.mark.parametrize("command", ["cache", "tir"])
@pytest.mark.parametrize("cache", CACHES)
def test_one_false_figure_exits_1_and_the_true_one_0(
    cache: str, command: str, stating: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    true = 1024 if cache.startswith("filter") else 2048
    for elements, code in ((true, 0), (true + 1, 1)):
        assert exit_code([command, str(stating(**{cache: elements})), "--json"]) == code
        (row,) = json.loads(capsys.readouterr().out)
        assert row["agrees"] == (code == 0)
        if command == "cache":
            shown = [memory["documented_elements"] for memory in row["allocations"] if cache in memory["holds"]]
            assert shown == [elements]
            assert exit_code([command, str(stating(**{cache: elements}))]) == code
            assert ("NO" in capsys.readouterr().out) == bool(code)


def test_every_figure_of_a_shared_allocation_is_judged(
    stating: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Input and output cache share one allocation: each of them may be false."""
    assert exit_code(["cache", str(stating(input_cache=2048, output_cache=2048))]) == 0
    assert exit_code(["cache", str(stating(input_cache=2048, output_cache=2047))]) == 1
    assert exit_code(["cache", str(stating(input_cache=2047, output_cache=2048))]) == 1
    assert "2047" in capsys.readouterr().out


def test_a_figure_of_a_cache_that_is_not_there_is_bad_input(
    stating: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["cache", str(stating(intermediate=2048))]) == 2
    assert "did you mean intermediate1?" in capsys.readouterr().err


def test_the_three_schedules_of_the_document_state_its_figures() -> None:
    stated = {path.stem: dict(case.documented) for path in PATHS if (case := Case.load(path)).documented}
    assert stated == {
        "baseline-1x1": {"input_cache": 65536, "intermediate1": 65536, "filter1_cache": 4096},
        "split-1x1": {"input_cache": 131072, "intermediate1": 131072, "filter1_cache": 8192},
        "split-3x3": {"input_cache": 196608, "intermediate1": 196608, "filter1_cache": 73728},
    }
