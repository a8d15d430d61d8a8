"""One case, run and judged."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hexconv.compute import magnitude, reference
from hexconv.errors import Overran, Unsupported
from hexconv.kernel import forms_of
from hexconv.kernel.forms import ACTIVATION_TAG
from hexconv.layout import packed
from hexconv.lower import Lowered
from hexconv.run.check import Check, check
from hexconv.run.copies import ANY_MOMENT, Copies
from hexconv.run.host import Host
from hexconv.run.runner import Counts, Runner
from hexconv.run.simulator.needs import DEFAULT_SECONDS, available_memory_bytes
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Tensors, output_shape, packed_arguments, random_tensors, run_bytes
from hexconv.spec import Case, Chain, Target, kernel_of

HOMES = {"hvx": "hexagon", "host": "llvm"}
"""Where a kernel runs that doesn't run everywhere."""


@dataclass(frozen=True)
class Run:
    """What a run of one case showed.

    Attributes:
        case: its name.
        target: `llvm` or `hexagon`.
        check: the verdict on its output.
        seconds: wall time of the kernel.
        counts: of the simulator.
        vtcm_bytes: the most VTCM that was in use, of the simulator.
    """

    case: str
    target: str
    check: Check
    seconds: float
    counts: Counts | None
    vtcm_bytes: int | None


def runner_of(case: Case, target: Target, seconds: float = DEFAULT_SECONDS, copies: Copies = ANY_MOMENT) -> Runner:
    """Where a case runs: this machine, or the simulator with the VTCM of the case's architecture.

    Args:
        case: the case.
        target: `llvm` or `hexagon`.
        seconds: the time that a run on the simulator has.
        copies: when asynchronous copies are performed.
    """
    return Host(copies) if target == "llvm" else Simulator(arch=case.plan.arch, seconds=seconds, copies=copies)


def measure(case: Case, lowered: Lowered, target: Target = "llvm", seed: int = 0) -> Run:
    """Run a lowered case on seeded random tensors where `target` says, and compare it with the reference.

    Raises:
        Unsupported: HVX kernels were asked to run on this machine.
        RunFailed: the run gave no answer.
        ToolMissing: the simulator isn't there.
    """
    return run_case(case, lowered, runner_of(case, target), seed)


def run_case(case: Case, lowered: Lowered, runner: Runner, seed: int = 0, save: Path | None = None) -> Run:
    """Run a lowered case on seeded random tensors and compare it with the reference.

    Args:
        case: what was lowered.
        lowered: its module.
        runner: where to run it.
        seed: of the tensors.
        save: a `.npz` file for what went in and came out, all logical: `input`, `filter1`.., `bias1`.., `output`.

    Raises:
        Unsupported: a kernel was asked to run on a machine that it isn't for.
        RunFailed: the run gave no answer.
        Overran: there is not enough memory for it.
        ToolMissing: what the runner needs isn't there.
    """
    _check_target(case, runner.target)
    chain = case.chain
    _check_memory(chain)
    tensors = random_tensors(chain, seed)
    dtype = chain.output_dtype(len(chain.conv) - 1)
    arguments = packed_arguments(chain, tensors, forms_of(chain, case.plan))
    measurement = runner.run(lowered.module, arguments, [(output_shape(chain), dtype)])
    logical = (chain, tensors.image, tensors.filters, tensors.biases)
    expected = reference(*logical)
    verdict = check(measurement.outputs[0], expected, dtype, magnitude(*logical))
    if save:
        np.savez(save, allow_pickle=False, **_logical(tensors, measurement.outputs[0], expected.shape))
    counted = (measurement.counts, measurement.vtcm_bytes)
    return Run(case.name, runner.target, verdict, measurement.seconds, *counted)


def _check_target(case: Case, target: str) -> None:
    """The plain kernel runs anywhere; the others use what one machine has."""
    kernel = kernel_of(case.chain, case.plan)
    if (home := HOMES.get(kernel, target)) != target:
        raise Unsupported(
            f"its plan has kernel = {kernel}, which is for --target {home}, not for {target}; run it there, or with "
            'kernel = "plain"'
        )


def _check_memory(chain: Chain) -> None:
    """Refuse what this machine has no memory for, before anything is allocated."""
    available, needed = available_memory_bytes(), run_bytes(chain)
    if available is not None and needed > available:
        raise Overran(
            f"the tensors and the reference take {needed} bytes of memory at least, {available} are available here, "
            f"{needed - available} less; use a smaller case"
        )


def _logical(tensors: Tensors, output: np.ndarray, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """All tensors of a run by the names of the contract."""
    filters = {f"filter{number}": filter for number, filter in enumerate(tensors.filters, 1)}
    biases = {f"bias{number}": bias for number, bias in enumerate(tensors.biases, 1) if bias is not None}
    result = packed(ACTIVATION_TAG, shape).unpack(output)
    return {"input": tensors.image, **filters, **biases, "output": result}
