"""Libraries whose chains run on several Hexagon threads: byte for byte what one thread gives, in every order."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hexconv.build import Built, build
from hexconv.build.called_library import simulated_chain
from hexconv.errors import Unsupported
from hexconv.lower import c_functions, lower_case
from hexconv.lower.c_functions import callable_module
from hexconv.run.copy_engine import Copies
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import random_tensors
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.capacities import MOST_QUEUES

ISA = "v67"
AS_MADE = ("-O2", "-fno-sanitize=all")
"""Optimised, as the library's Makefile has it, and without sanitisers, whose run time zig would compile."""
BY = Requantize(multiplier=1 << 30, shift=-10, zero_point=128)
CONV = Conv2d(
    out_channels=40,
    kernel=(3, 3),
    padding=1,  # pyright: ignore[reportArgumentType]
    filter_zero_point=128,
    bias=True,
    bias_limit=1 << 18,  # small enough for results of all codes
    requantize=BY,
)
CHAIN = Chain(input=(1, 37, 17, 64), dtype="uint8", zero_point=3, conv=(CONV, CONV))
ROLLING = Plan(kernel="hvx", order="h_outer", halo="roll", filters="resident", buffering="double", threads=4)
PLANS = {
    "resident": replace(ROLLING, storage="vtcm"),
    "per_tile": replace(ROLLING, filters="per_tile", threads=3),
    "single": replace(ROLLING, buffering="single", storage="vtcm"),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Built]]:
    """All plans, built."""
    folder = tmp_path_factory.mktemp("threads")
    cases = [(Case(name, CHAIN, plan), random_tensors(CHAIN, 5)) for name, plan in PLANS.items()]
    return folder, {chain.name: chain for chain in build(cases, folder, "hexagon", ISA)}


@pytest.mark.simulator
@pytest.mark.parametrize("name", PLANS)
def test_a_chain_on_threads_gives_what_run_gives_and_costs_no_more_than_a_hundredth(
    library: tuple[Path, dict[str, Built]], name: str
) -> None:
    folder, chains = library
    case, image = Case(name, CHAIN, PLANS[name]), random_tensors(CHAIN, 5).image
    # Counts issue slots, too, which wants a trace of as many packets.
    simulator = Simulator(copies=Copies("random", 1), vtcm_loads=False)
    through_c = simulated_chain(folder, chains[name], image, simulator)
    run = run_case(case, lower_case(case), simulator, 5)
    assert through_c.outputs[0].tobytes() == (folder / f"{name}.output.bin").read_bytes()
    assert run.check.passed
    assert len(np.unique(through_c.outputs[0])) > 200, "most results are at an end of the codes"
    assert chains[name].threads == PLANS[name].threads
    assert through_c.threads is not None
    assert run.threads is not None
    assert min(through_c.threads.packets[: chains[name].threads]) > 0
    assert through_c.counts is not None
    assert run.counts is not None
    assert through_c.counts.packets <= 1.01 * run.counts.packets


@pytest.mark.simulator
@pytest.mark.parametrize("name", ["resident", "per_tile"])
def test_it_depends_neither_on_the_order_of_threads_nor_on_the_moments_of_copies(
    library: tuple[Path, dict[str, Built]], name: str
) -> None:
    folder, chains = library
    image, wanted = random_tensors(CHAIN, 5).image, (folder / f"{name}.output.bin").read_bytes()
    switches = set()
    for copies in (Copies("early", 0), Copies("late", 0), *(Copies("random", seed) for seed in range(2, 8))):
        run = simulated_chain(folder, chains[name], image, Simulator(copies=copies, slots=False))
        assert run.outputs[0].tobytes() == wanted
        assert run.copies is not None
        assert run.copies.pieces > 0
        assert run.threads is not None
        switches.add(run.threads.switches)
    assert len(switches) > 1, "the seeds draw one order only"


@pytest.mark.simulator
def test_threads_of_posix_run_it_in_qemu(library: tuple[Path, dict[str, Built]]) -> None:
    folder, _ = library
    compiler = f"{sys.executable} -m ziglang cc -target hexagon-linux-musl -mcpu=hexagon{ISA} -static"
    command = ["make", "-C", str(folder), "-s", "run", f"CC={compiler}"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CC": compiler}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(" of ")[0] for line in done.stdout.splitlines()] == [f"{name}: 0" for name in PLANS]


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("in_parallel", "said"), [("fails", "error 8 of enum hexconv_error"), ("NULL", "0 of 61440 elements differ")]
)
def test_threads_that_a_platform_can_not_start_are_told(
    library: tuple[Path, dict[str, Built]], in_parallel: str, said: str
) -> None:
    """Without the callback the tasks run one after the other."""
    folder, _ = library
    example = (folder / "resident_example.c").read_text()
    fails = "static int fails(void *u, void (*t)(void *, int), void *a, int n) { return !u + !t + !a + n; }\n"
    stated = f"struct hexconv_platform platform = hexconv_posix();\n    platform.in_parallel = {in_parallel};"
    changed = example.replace("const struct hexconv_platform platform = hexconv_posix();", stated)
    assert changed != example
    program, source = folder / f"with_{in_parallel}", folder / f"with_{in_parallel}.c"
    source.write_text(changed.replace("int main", fails + "int main"))
    files = [source, folder / "hexconv_posix.c", *folder.glob("resident*.o"), *folder.glob("*copies*.c")]
    target = ["-target", "hexagon-linux-musl", f"-mcpu=hexagon{ISA}", "-static", "-lpthread", "-w", *AS_MADE]
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *target, *map(str, files), "-o", str(program)], check=True)
    done = subprocess.run(["qemu-hexagon", str(program)], cwd=folder, capture_output=True, text=True, check=False)
    assert said in done.stdout + done.stderr


def test_more_queues_than_a_platform_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(CONV, out_channels=8, kernel=(1, 1), padding=0)
    long = Chain(input=(1, 8, 8, 8), dtype="uint8", conv=(small,) * (MOST_QUEUES - 1))
    case = Case("long", long, Plan(kernel="hvx", buffering="double", order="h_outer", halo="roll"))
    module = lower_case(case).module
    with pytest.raises(Unsupported, match=f"take {MOST_QUEUES + 1} queues, and platforms have {MOST_QUEUES}"):
        callable_module(module, "long")
    monkeypatch.setattr(c_functions, "MOST_QUEUES", MOST_QUEUES + 1)
    callable_module(module, "long")


def test_a_plan_of_one_thread_has_no_tasks(tmp_path: Path) -> None:
    alone = Case("alone", CHAIN, replace(ROLLING, threads=1))
    [chain] = build([(alone, random_tensors(CHAIN, 5))], tmp_path, "hexagon", ISA)
    assert chain.threads == 1
    assert np.prod(chain.output.shape) == chain.output.bytes
