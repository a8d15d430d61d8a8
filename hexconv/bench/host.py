"""Milliseconds on this machine: our fused float32 kernels and oneDNN's convs one after the other, in turns.

    python -m hexconv.bench.host schedules/host/a.toml --threads 2 --simd avx512

prints the times of one process as JSON. `measured` gathers those of several: both tools take their threads, and oneDNN
its instruction set, from the environment, once.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.target import Target

from hexconv.analyze import needed_macs
from hexconv.bench import onednn
from hexconv.bench.turns import Run, Turns, in_turns, least, median, ratio_by_round, together
from hexconv.compute import magnitude, reference
from hexconv.errors import RunFailed
from hexconv.host.loops import chain_function
from hexconv.kernel.forms import ACTIVATION_TAG
from hexconv.layout import packed
from hexconv.lower import lower_case
from hexconv.lower.function import lower_function
from hexconv.lower.host import compile_for_host
from hexconv.run.check import check
from hexconv.run.host import TARGET
from hexconv.run.tensors import Tensors, output_shape, packed_arguments, random_tensors
from hexconv.spec import Case, Chain
from hexconv.spec.knobs import Simd

Row = dict[str, Any]

ISAS = {"avx512": "AVX512_CORE", "avx2": "AVX2"}
"""oneDNN's names of instruction sets."""

OURS, STAGED = "hexconv", "hexconv in the nest"
"""The names of our kernel's times, as it is and with the copies of the planned nest."""

PINNED = {"OMP_PROC_BIND": "true"}
"""TVM pins its threads. Unless oneDNN's are pinned too, they may share a core for a time slice: 16 ms instead of 1."""

SPINS = {"TVM_THREAD_POOL_SPIN_COUNT": "10000", "GOMP_SPINCOUNT": "300000"}
"""How often an idle thread looks for work before it sleeps: some milliseconds for either tool.

Long enough that threads are awake throughout a turn, short enough that they sleep before the next tool's turn. TVM's
own 300,000 last for 0.1 s and more, since each look gives way to other threads first: on the other tool's cores.
"""

PROCESSES = 5
"""Each process gets other pages of memory, which makes one tool or the other a percent faster as long as it lives."""

WARMING_ROUNDS = 2
"""Rounds of a process that aren't counted: compiling leaves other cores asleep, and the first tool would wake them."""


def measured(path: Path, threads: int, simd: Simd) -> Row:
    """Measure both tools on one case: medians over all runs of all processes, in milliseconds.

    Raises:
        RunFailed: a result is wrong, or a process failed.
    """
    case = Case.load(path)
    parts = [in_process(path, threads, simd) for _ in range(PROCESSES)]
    named = {
        "case": case.name,
        "threads": threads,
        "simd": simd,
        **_figures(case, [part["milliseconds"] for part in parts]),
    }
    return {**named, "onednn": parts[0]["onednn"], "passed": all(part["passed"] for part in parts)}


def in_process(path: Path, threads: int, simd: Simd, *options: str) -> Row:
    """Return the milliseconds that one process prints.

    Raises:
        RunFailed: the process failed.
    """
    number = str(threads)
    environment = {**os.environ, **PINNED, **SPINS, "OMP_NUM_THREADS": number, "TVM_NUM_THREADS": number}
    environment["ONEDNN_MAX_CPU_ISA"] = ISAS[simd]
    command = [sys.executable, "-m", "hexconv.bench.host", str(path), "--threads", number, "--simd", simd, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunFailed(f"the host's bench of {path.stem} failed: {(done.stderr.strip() or 'no message')[-400:]}")
    return json.loads(done.stdout)


def milliseconds_of(case: Case, threads: int, simd: Simd, staged: bool = False) -> Row:
    """Return the milliseconds of all runs in this process; its environment has to state the same `threads` and `simd`.

    Args:
        case: what is run.
        threads: the threads of each tool.
        simd: the instruction set of each tool.
        staged: whether the kernel is timed with the planned nest's copies, too, as `STAGED`.
    """
    case = replace(case, plan=replace(case.plan, threads=threads, simd=simd))
    tensors = random_tensors(case.chain)
    theirs = {
        "onednn nhwc": onednn.convs(case.chain, tensors.image, tensors.filters, dense=True),
        "onednn own layout": onednn.convs(case.chain, tensors.image, tensors.filters, dense=False),
    }
    kernels = {OURS: ready(case.chain, lower_case(case).module, simd, tensors)}
    if staged:
        function = chain_function(case.chain, case.settled, staged=True)
        kernels[STAGED] = ready(case.chain, lower_function(function).module, simd, tensors)
    runs: dict[str, Run] = {name: run for name, (run, _) in kernels.items()}
    runs |= {name: convs.run for name, convs in theirs.items()}
    with on_first_core():
        in_turns(runs, WARMING_ROUNDS)
        milliseconds = in_turns(runs)
    logical = (case.chain, tensors.image, tensors.filters, tensors.biases)
    expected, order = reference(*logical), magnitude(*logical)
    layout = packed(ACTIVATION_TAG, expected.shape)
    outputs = [output.numpy() for _, output in kernels.values()]
    outputs += [layout.pack(convs.output()) for convs in theirs.values()]
    longest = case.chain.longest_sum
    passed = all(check(result, layout, expected, "float32", order, longest).passed for result in outputs)
    return {"milliseconds": milliseconds, "onednn": next(iter(theirs.values())).version, "passed": passed}


def ready(chain: Chain, module: tvm.IRModule, simd: Simd, tensors: Tensors) -> tuple[Run, tvm.runtime.Tensor]:
    """Build a kernel and run it once; returns what runs it again, and where its output goes."""
    kernel = compile_for_host(module, _target(simd))["main"]
    output = tvm.runtime.tensor(np.zeros(output_shape(chain), np.float32))
    inputs = [tvm.runtime.tensor(np.ascontiguousarray(array)) for array in packed_arguments(chain, tensors)]
    kernel(*inputs, output)
    return lambda: kernel(*inputs, output), output


@contextmanager
def on_first_core() -> Iterator[None]:
    """Pin the main thread to the core where oneDNN's OpenMP had it: the other threads are pinned to the other cores.

    TVM's first run lets the main thread go anywhere, at times to the core of another thread, and all runs then take
    twice as long.
    """
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _figures(case: Case, parts: Sequence[Turns]) -> Row:
    """Medians, and ratios to the faster of oneDNN's two ways: by all runs, by rounds, and by the quickest runs."""
    turns = together(parts)
    ours, (way, peer_ms) = median(turns[OURS]), _best_way(turns)
    return {
        "hexconv_ms": round(ours, 3),
        "onednn_ms": round(peer_ms, 3),
        "onednn_way": way,
        "ratio": round(ours / peer_ms, 3),
        "ratio_by_round": round(ratio_by_round(turns[OURS], turns[way]), 3),
        "ratio_of_least": round(least(turns[OURS]) / min(least(turns[name]) for name in peers(turns)), 3),
        "hexconv_gflops": round(2 * needed_macs(case.chain) / ours / 1e6, 1),
    }


def peers(turns: Turns) -> list[str]:
    """Return the times of all tools but ours."""
    return [name for name in turns if name not in (OURS, STAGED)]


def _best_way(turns: Turns) -> tuple[str, float]:
    """Return the faster of oneDNN's two ways, and its median."""
    return min(((name, median(turns[name])) for name in peers(turns)), key=lambda way: way[1])


def _target(simd: Simd) -> Target:
    """TVM's target: this machine or, for AVX2, the instructions that the first machines with AVX2 had."""
    return TARGET if simd == "avx512" else Target({"kind": "llvm", "mcpu": "haswell"})


def main(arguments: Sequence[str]) -> int:
    """Print the milliseconds of all runs as JSON."""
    parser = argparse.ArgumentParser(prog="hexconv.bench.host", description="Our host kernel beside oneDNN's.")
    parser.add_argument("case", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--simd", choices=sorted(ISAS), default="avx2")
    parser.add_argument("--staged", action="store_true", help="time it with the planned nest's copies, too")
    options = parser.parse_args(arguments)
    print(json.dumps(milliseconds_of(Case.load(options.case), options.threads, options.simd, options.staged)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
