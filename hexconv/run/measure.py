"""Run one case and judge its output."""

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from hexconv.compute import magnitude, reference
from hexconv.errors import Overran, Unsupported
from hexconv.kernel import output_layout
from hexconv.lower import Lowered
from hexconv.run.check import Check, Distance, check, distance
from hexconv.run.copy_engine import ANY_MOMENT, Copies, CopyCounts
from hexconv.run.fills import Fills, fills_of_run
from hexconv.run.given import DRAWN, Given
from hexconv.run.host import Host
from hexconv.run.matrix_engine import EngineCounts
from hexconv.run.measurement import Counts, Runner
from hexconv.run.mlir_host import MlirHost
from hexconv.run.simulator.needs import DEFAULT_SECONDS, available_memory_bytes
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.slots import Event, Slots, Threads
from hexconv.run.tensors import Tensors, filled_tensors, output_shape, packed_arguments, run_bytes
from hexconv.spec import Case, Chain, KernelChoice, Target
from hexconv.spec.chain import with_exact
from hexconv.spec.choices import RunTarget
from hexconv.spec.kernels import KERNELS
from hexconv.spec.names import bias_name, filter_name
from hexconv.written import whole_file

MOST_MACS = 10**12
"""MACs that numpy computes in a quarter of an hour. All of VGG-16 takes 1.5 * 10^10."""


@dataclass(frozen=True)
class Run:
    """What a run of one case showed.

    Attributes:
        case: the name of the case.
        target: `llvm`, `hexagon` or `mlir`.
        fill: what its tensors were filled with (`hexconv.run.fills`).
        check: the verdict on its output.
        seconds: the wall time of one call of the kernel; on the simulator, of the whole process.
        counts: what the kernel executed, from the simulator.
        vtcm_bytes: the most VTCM that was in use at a time, from the simulator.
        weights: the file that filters and biases came from, or `random`.
        input: the file that the input came from, or `random`.
        kernels: for every conv, the kernel that was asked for and the one that was used.
        slots: the issue slots of the kernel, from the simulator, where they were asked for.
        copies: what the copy engine did, on the simulator.
        events: the events that the kernel reported to the harness, where the simulator was asked for them.
        threads: what each thread did on the simulator, where the kernel has threads.
        engine: what the matrix engine did on the simulator, where the kernel has it.
        from_exact: how far the answer lies from exact requantisation, where a conv asks for the engine's convert.
    """

    case: str
    target: str
    fill: str
    check: Check
    seconds: float
    counts: Counts | None
    vtcm_bytes: int | None
    weights: str = DRAWN
    input: str = DRAWN
    kernels: tuple[KernelChoice, ...] = ()
    slots: Slots | None = None
    copies: CopyCounts | None = None
    events: tuple[Event, ...] = ()
    threads: Threads | None = None
    engine: EngineCounts | None = None
    from_exact: Distance | None = None


def runner_of(
    case: Case,
    target: RunTarget,
    seconds: float = DEFAULT_SECONDS,
    copies: Copies = ANY_MOMENT,
    slots: bool = True,
    isa: str | None = None,
    engine_words: bool = False,
) -> Runner:
    """Return where a case runs: on this machine, itself or as linalg, or on the simulator with the VTCM of its arch.

    Args:
        case: the case.
        target: `llvm`, `hexagon`, or `mlir` for a case that was loaded for `llvm`.
        seconds: the time limit of a run on the simulator.
        copies: when asynchronous copies are performed.
        slots: whether the simulator counts issue slots.
        isa: the instruction set of the code on the simulator, by default the newest that it runs.
        engine_words: whether packets of the matrix engine are its own words there, which trap.
    """
    if target == "llvm":
        return Host(copies)
    if target == "mlir":
        return MlirHost(case)
    plan = case.settled
    return Simulator(
        plan.arch, plan.vtcm_bytes, seconds, copies=copies, slots=slots, isa=isa, engine_words=engine_words
    )


def measure(case: Case, lowered: Lowered, target: Target = "llvm", seed: int = 0) -> Run:
    """Run a lowered case on `target` with seeded random tensors, and compare its output with the reference.

    Raises:
        Unsupported: HVX kernels were asked to run on this machine.
        RunFailed: the run gave no answer.
        ToolMissing: the simulator is not installed.
    """
    return run_case(case, lowered, runner_of(case, target), seed)


def run_case(
    case: Case,
    lowered: Lowered,
    runner: Runner,
    seed: int = 0,
    save: Path | None = None,
    fills: Fills | None = None,
    given: Given | None = None,
) -> Run:
    """Run a lowered case with seeded tensors, and compare its output with the reference.

    Args:
        case: the case that was lowered.
        lowered: its lowered module.
        runner: where to run it.
        seed: the seed of the tensors.
        save: a `.npz` file for the tensors that went in and the output, all logical: `input`, `filter1`..,
            `bias1`.., `multiplier1`.., `shift1`.., `output`.
        fills: what the tensors are filled with; random values where this is left out.
        given: tensors to use instead of filled ones.

    Raises:
        Unsupported: a kernel was asked to run on a machine that it isn't for.
        RunFailed: the run gave no answer.
        Overran: there is not enough memory for the run.
        ToolMissing: a tool that the runner needs is not installed.
        NotWritten: `save` can't be written.
    """
    chain = case.chain
    _check_target(case, runner.target)
    _check_macs(chain)
    _check_memory(chain)
    fills = fills or fills_of_run(chain, 0, seed)
    given = given or Given()
    tensors = given.over(filled_tensors(chain, fills, seed))
    dtype = chain.output_dtype(len(chain.conv) - 1)
    arguments = packed_arguments(chain, tensors, case.settled)
    measurement = runner.run(lowered.module, arguments, [(output_shape(chain), dtype)])
    expected = reference(chain, *tensors.logical)
    verdict = _compared(chain, tensors, measurement.outputs[0], expected)
    if save:
        _keep(save, _logical(tensors, output_layout(chain).unpack(measurement.outputs[0])))
    counted = (measurement.counts, measurement.vtcm_bytes)
    sources = (given.weights_from, given.image_from)
    told = (case.name, runner.target, given.fill(fills))
    of_simulator = (measurement.slots, measurement.copies, measurement.events, measurement.threads, measurement.engine)
    distance = _from_exact(chain, tensors, expected)
    return Run(*told, verdict, measurement.seconds, *counted, *sources, case.kernels, *of_simulator, distance)


def _from_exact(chain: Chain, tensors: Tensors, expected: np.ndarray) -> Distance | None:
    """Compare the reference with that of the same convs requantised exactly; None where they are."""
    exact = with_exact(chain)
    return None if exact == chain else distance(expected, reference(exact, *tensors.logical))


def _compared(chain: Chain, tensors: Tensors, output: np.ndarray, expected: np.ndarray) -> Check:
    """Compare the output of a run with the reference."""
    dtype = chain.output_dtype(len(chain.conv) - 1)
    order = magnitude(chain, *tensors.logical)
    return check(output, output_layout(chain), expected, dtype, order, chain.longest_sum)


def _keep(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write tensors to a file of exactly this name; numpy alone would add `.npz`."""
    with whole_file(path) as made, made.open("wb") as file:
        np.savez(file, allow_pickle=False, **tensors)


def _check_target(case: Case, target: str) -> None:
    """Refuse a kernel on a target that it isn't for. The plain kernel runs anywhere, the others on one target."""
    for rules in [KERNELS[choice.used] for choice in case.kernels]:
        if rules.home not in (None, target):
            raise Unsupported(
                f"it was lowered with the kernel {rules.name}, which is for --target {rules.home}, not for {target}; "
                f'load it with target="{target}", or with kernel = "plain"'
            )


def _check_macs(chain: Chain) -> None:
    """Refuse a case that would run too long: numpy alone makes about 10^9 multiply-accumulates a second."""
    outputs = [prod(shape) for shape in chain.shapes[1:]]
    macs = sum(count * chain.elements_per_output(index) for index, count in enumerate(outputs))
    if macs > MOST_MACS:
        raise Unsupported(
            f"its convs take {macs} multiply-accumulates, {macs - MOST_MACS} more than the {MOST_MACS} that a run may "
            "have; use a smaller image or smaller kernels"
        )


def _check_memory(chain: Chain) -> None:
    """Refuse a case that this machine has too little memory for, before anything is allocated."""
    available, needed = available_memory_bytes(), run_bytes(chain)
    if available is not None and needed > available:
        raise Overran(
            f"the tensors and the reference take {needed} bytes of memory at least, {available} are available here, "
            f"{needed - available} less; use a smaller case"
        )


def _logical(tensors: Tensors, output: np.ndarray) -> dict[str, np.ndarray]:
    """All tensors of a run by the names of the contract."""
    filters = {filter_name(number): filter for number, filter in enumerate(tensors.filters, 1) if filter.size}
    biases = {bias_name(number): bias for number, bias in enumerate(tensors.biases, 1) if bias is not None}
    return {"input": tensors.image, **filters, **biases, **tensors.vectors, "output": output}
