"""`python -m reports.programs MODEL-FORM.onnx...`: verify, build and run whole networks, each from one plan.

A network is planned for the least latency for each target and number of threads. The program of that plan is verified
as `hexconv verify` does it, on drawn inputs too; and it is written as `hexconv build` writes it, compiled by `zig cc`
as its README says, and run: its example compares every element with numpy. On Hexagon the whole network is also called
on the adversarial platform, where each seed performs copies at other moments and takes threads in another order.

A row is written as soon as it is measured. It has a digest of the folder that was built: all code, weights and
examples. A network that is built to the same bytes keeps its row, so an interrupted table goes on where it was.
"""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from hexconv.analyze import Planned, needed_macs
from hexconv.analyze.block_grid import engine_packets
from hexconv.analyze.usage import work_usage
from hexconv.errors import RunFailed
from hexconv.lower import lower_case
from hexconv.model import import_model
from hexconv.network import BuiltNetwork, Wanted
from hexconv.network.built_network import tensors_of, write_compiled
from hexconv.network.call_costs import CallCost, call_cost
from hexconv.network.called_network import network_object, simulated_network
from hexconv.network.planned_model import PlannedModel, plan
from hexconv.network.program_steps import Call
from hexconv.run.copy_engine import Copies
from hexconv.run.host import count
from hexconv.run.simulator.made_files import content_key
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Array
from hexconv.spec import Case, Plan, Target, choose_kernels
from hexconv.spec.capacities import capacity_of
from hexconv.spec.choices import Engine
from hexconv.verify import Asked, Comparison, NetworkVerdict, verify_network
from hexconv.verify.network import compiled_as_far
from hexconv.verify.verdict import Answer, together
from hexconv.written import scratch
from reports.kept import keep_all, named

CSV = Path(__file__).with_suffix(".csv")
KEY = ("network", "form", "target", "threads", "kernel")
FASTEST, ENGINE = "fastest", "hmx"
HOST = "host"
THREADS = 4
SEEDS = 3
INPUTS: dict[Target, int] = {"llvm": 8, "hexagon": 1}
SECONDS = 3600.0
MILLION = 10**6


@dataclass(frozen=True)
class Row:
    """A network in a form, as the program of one plan.

    Attributes:
        network: the model.
        form: how it is quantised.
        target: where the program ran: `hexagon`, which is the simulator, or `llvm`, which is this machine.
        threads: the threads that it was planned for.
        kernel: the kernel that was asked for: `fastest`; or `hmx-exact` or `hmx-fast`, the matrix engine where that
            costs no more than HVX, with exact requantisation or its own.
        isa: the instruction set; `host` on this machine.
        answer: what `verify` answers.
        convs: how many convs the network has.
        taken: how many of them are in chains.
        scalar: how many of these have no kernel in HVX.
        chains: how many chains there are.
        chains_equal: how many of them equal numpy in every value.
        operators: how many steps between chains the program computes.
        operators_equal: how many of them equal numpy in every value, and ONNX Runtime but for float32's rounding.
        left: how many steps are left to the caller.
        values: how many values all steps write.
        differing: how many of them differ from numpy's.
        convs_values: how many values of convs were compared with ONNX Runtime, each conv alone on its input there.
        rounded: how many of these differ by float32's rounding.
        rounded_in_a_million: how many of a million do, in the conv with the most.
        largest: the largest difference of one, in steps of its quantisation.
        not_float32: how many differ by more than float32's error of the definition.
        inputs: on how many more inputs the first output was compared with ONNX Runtime's.
        ranked_alike: for how many of them the five largest scores are of the same classes in the same order.
        largest_steps: the largest difference of that output, in steps of its quantisation; such ones have travelled.
        mean_steps: the mean difference, likewise.
        library_elements: how many elements the outputs of the library's example have; 0 where none was built, or where
            it has words of the matrix engine, which the simulator doesn't know: calls of it call the engine's model.
        library_differing: how many of them differ from numpy's, in the example and in all calls.
        seeds: how many calls of the whole network were made on the adversarial platform.
        copies: how many asynchronous copies such a call starts.
        packets: the packets of all threads of a call on the simulator.
        chains_packets: the part of `packets` that chains execute.
        operators_packets: the part of `packets` that operators between chains execute.
        critical_packets: the packets of the slowest thread, step by step.
        predicted_packets: the packets of all threads by the model that plans are chosen by, which is of Hexagon; none
            with `hmx`, of which it tells a time.
        predicted_critical_packets: those of the slowest thread by that model.
        macs_per_packet: the needed MACs of all convs in chains, per packet of chains.
        engine_macs_share: the share of these MACs that the matrix engine does.
        engine_useful_share: the share of the multiply-accumulates of its packets that are needed; none without it.
        before_bytes: the bytes that a call moves with every conv apart, operators included.
        after_bytes: the same as planned.
        chains_before_bytes: the part of `before_bytes` that chains move.
        chains_after_bytes: the part of `after_bytes` that chains move.
        counted_bytes: the bytes of memory that the loops of all chains move, counted in their lowered modules.
        outside_share: the share of all results' elements that operators make.
        arena_bytes: the memory of all tensors between steps.
        least_arena_bytes: a lower bound of any arena: the tensors of the fullest step.
        vtcm_bytes: the VTCM of the chain that takes the most.
        library_bytes: the bytes of the chains' code and of all weights.
        digest: a digest of all that was built.
    """

    network: str
    form: str
    target: str
    threads: int
    kernel: str
    isa: str
    answer: str
    convs: int
    taken: int
    scalar: int
    chains: int
    chains_equal: int
    operators: int
    operators_equal: int
    left: int
    values: int
    differing: int
    convs_values: int
    rounded: int
    rounded_in_a_million: float
    largest: int
    not_float32: int
    inputs: int
    ranked_alike: int | None
    largest_steps: float | None
    mean_steps: float | None
    library_elements: int
    library_differing: int
    seeds: int
    copies: int | None
    packets: int | None
    chains_packets: int | None
    operators_packets: int | None
    critical_packets: int | None
    predicted_packets: int | None
    predicted_critical_packets: int | None
    macs_per_packet: float | None
    engine_macs_share: float
    engine_useful_share: float | None
    before_bytes: int | None
    after_bytes: int | None
    chains_before_bytes: int | None
    chains_after_bytes: int | None
    counted_bytes: int
    outside_share: float
    arena_bytes: int
    least_arena_bytes: int
    vtcm_bytes: int
    library_bytes: int
    digest: str

    @property
    def holds(self) -> bool:
        """Whether no value of any step or output differs, and chains move the bytes that were predicted."""
        wrong = self.differing + self.library_differing + self.not_float32
        equal = (self.chains_equal, self.operators_equal) == (self.chains, self.operators)
        return self.answer == "holds" and not wrong and equal and self.counted_bytes == self.chains_after_bytes


@dataclass(frozen=True)
class Bench:
    """What is measured of each network.

    Attributes:
        targets: where each program is to run, and on how many threads.
        seeds: calls of the whole network on the adversarial platform.
        workers: processes that compile.
        table: the table that has the rows which are known.
        kernels: the kernels that are asked for, on Hexagon; the fastest alone on this machine.
    """

    targets: Sequence[tuple[Target, int]]
    seeds: int = SEEDS
    workers: int | None = None
    table: Path = CSV
    kernels: Sequence[str] = (FASTEST,)

    def rows(self, path: Path, names: tuple[str, str]) -> Iterator[Row]:
        """Measure a model in all ways; `names` are of the network and of the form."""
        for (target, threads), kernel in product(self.targets, self.kernels):
            isa = find_qemu().isa if target == "hexagon" else HOST
            if isa == HOST and kernel != FASTEST:
                continue
            wanted = Wanted(capacity_of(Plan()), target, "v68" if isa == HOST else isa, "latency", threads=threads)
            yield self.row(path, (*names, target, threads, kernel, isa), replace(wanted, **_asked(kernel)))

    def row(self, path: Path, known: tuple[str, str, Target, int, str, str], wanted: Wanted) -> Row:
        """Plan a model once, build it, and verify and run what was built, or take the row that the table has of it.

        Raises:
            InputError: the model can't be read.
            RunFailed: what was built doesn't compile, or a run gives no answer.
        """
        asked = Asked(wanted, SECONDS, self.workers, draws=INPUTS[wanted.target])
        planned, compiled = compiled_as_far(path, plan(import_model(path), wanted.question), asked)
        program = planned.open_program
        with scratch() as folder:
            built = write_compiled(path, compiled, tensors_of(path, program, wanted), folder, wanted)
            digest = digest_of(folder)
            if found := self._found(known, digest):
                return found
            library = Library.called(folder, built, self.seeds) if not program.others else Library()
        verdict = verify_network(path, asked)
        return Row(
            *known,
            **_verified(verdict),
            **_counted(planned, verdict),
            **_predicted(planned, call_cost(planned)),
            library_elements=library.elements,
            library_differing=library.differing,
            seeds=library.seeds,
            copies=library.copies,
            vtcm_bytes=built.vtcm_bytes,
            library_bytes=built.library_bytes,
            digest=digest,
        )

    def _found(self, known: tuple[Any, ...], digest: str) -> Row | None:
        """Return the row of the same program that the table has, where that holds."""
        found = [row for row in read_rows(self.table) if row.digest == digest and row.holds]
        return next((row for row in found if tuple(getattr(row, name) for name in KEY) == known[: len(KEY)]), None)


def _asked(kernel: str) -> dict[str, Any]:
    """The fields of what is wanted that ask for a kernel."""
    name, _, engine = kernel.partition("-")
    return {} if kernel == FASTEST else {"kernel": name, "engine": engine}


def read_rows(table: Path) -> list[Row]:
    """Return the rows of a table; none of one that isn't there, or that has other columns."""
    if not table.exists():
        return []
    read = pd.read_csv(table).convert_dtypes()
    if list(read.columns) != [field.name for field in fields(Row)]:
        return []
    records = read.astype(object).where(read.notna(), None).to_dict("records")
    return [Row(**{str(name): value for name, value in record.items()}) for record in records]


def digest_of(folder: Path) -> str:
    """Return a digest of the files of a folder, with their names."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return content_key(*(part for path in files for part in (path.relative_to(folder).as_posix(), path.read_bytes())))


@dataclass(frozen=True)
class Library:
    """What the library of a network gave when it was called.

    Attributes:
        elements: how many elements the outputs of its example have.
        differing: how many elements of the example, and of all calls, differ from numpy's.
        seeds: how many calls were made on the adversarial platform.
        copies: how many asynchronous copies such a call starts; None where none was made.
    """

    elements: int = 0
    differing: int = 0
    seeds: int = 0
    copies: int | None = None

    @classmethod
    def called(cls, folder: Path, built: BuiltNetwork, seeds: int) -> "Library":
        """Compile the folder as its README says, run its example, and call it on the adversarial platform.

        Raises:
            RunFailed: it doesn't compile or link, or a run gives no answer.
        """
        has_words = any(choice.used == ENGINE for choices in built.kernels.values() for choice in choices)
        differing, elements = (0, 0) if has_words else _example(folder, built)
        if built.target == "llvm" or not seeds:
            return cls(elements, differing)
        kernel, copies = network_object(folder, built), 0
        images, wanted = (list(_tensors(folder, built, way)) for way in ("input", "output"))
        for seed in range(seeds):
            simulator = Simulator(seconds=SECONDS, copies=Copies("random", seed), slots=False, isa=built.isa)
            run = simulated_network(folder, built, kernel, images, simulator)
            assert run.copies
            copies = run.copies.pieces
            pairs = zip(run.outputs, wanted, strict=True)
            differing += sum(int(np.count_nonzero(one.reshape(-1) != other.reshape(-1))) for one, other in pairs)
        return cls(elements, differing, seeds, copies)


def _tensors(folder: Path, built: BuiltNetwork, way: str) -> Iterator[Array]:
    """Yield the inputs or the outputs of the example."""
    for port in (port for port in built.ports if port.way == way):
        yield np.fromfile(folder / f"network.{port.name}.bin", port.dtype).reshape(port.shape)


def _example(folder: Path, built: BuiltNetwork) -> tuple[int, int]:
    """Compile the folder as its README says, and run it; returns how many elements differ, and of how many."""
    compiler = f"{sys.executable} -m ziglang cc"
    command = ["make", "-C", str(folder), "-s", "run"]
    if built.target == "hexagon":
        compiler += f" -target hexagon-linux-musl -mcpu=hexagon{built.isa} -static"
        command.append(f"RUN={find_qemu().path}")
    done = subprocess.run(
        [*command, f"CC={compiler}"], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    said = [line.split() for line in done.stdout.splitlines() if " elements of " in line]
    if done.returncode not in (0, 2) or not said:
        raise RunFailed(f"{built.model} for {built.isa}: {done.stderr.strip()[-600:]}")
    return sum(int(words[1]) for words in said), sum(int(words[3]) for words in said)


def _verified(verdict: NetworkVerdict) -> dict[str, Any]:
    """The columns that a verdict gives."""
    runs = together("run", [step.run for step in verdict.steps if step.run])
    beside = [one for chain in verdict.chains for conv in chain.convs for one in conv.comparisons]
    beside = [one for one in beside if one.rule == "ONNX Runtime" and one.values]
    convs, many = verdict.total("ONNX Runtime"), verdict.many
    equal: list[Answer] = [step.answer for step in verdict.operators if step.operator != "other"]
    packets = verdict.packets
    of_chains = sum(step.packets or 0 for step in verdict.steps if step.operator == "chain") if packets else None
    return {
        "answer": verdict.answer,
        "convs": sum(len(chain.convs) for chain in verdict.chains) + len(verdict.not_taken),
        "taken": sum(len(chain.convs) for chain in verdict.chains),
        "chains": len(verdict.chains),
        "chains_equal": sum(bool(chain.run and chain.run.holds) for chain in verdict.chains),
        "operators": len(equal),
        "operators_equal": equal.count("holds"),
        "left": len(verdict.operators) - len(equal),
        "values": runs.values,
        "differing": runs.differing,
        "convs_values": convs.values,
        "rounded": convs.rounded,
        "rounded_in_a_million": max(map(in_a_million, beside), default=0.0),
        "largest": int(convs.largest),
        "not_float32": convs.differing,
        "inputs": many.inputs if many else 0,
        "ranked_alike": many.ranked_alike if many else None,
        "largest_steps": round(many.largest_steps, 2) if many else None,
        "mean_steps": round(many.mean / many.step, 4) if many and many.step else None,
        "packets": packets,
        "chains_packets": of_chains,
        "operators_packets": packets - of_chains if packets and of_chains is not None else None,
        "critical_packets": verdict.critical_packets,
    }


def in_a_million(of: Comparison) -> float:
    """Return how many elements of a million differ, by rounding or otherwise."""
    return round(MILLION * (of.rounded + of.by_table + of.differing) / of.values, 3)


def _counted(planned: PlannedModel, verdict: NetworkVerdict) -> dict[str, Any]:
    """The columns that are counted in chains: bytes in their lowered modules, MACs, kernels, elements."""
    chains = [member.case.chain for member in planned.members]
    calls, resident = planned.open_program.calls, {each.tensor for each in planned.handed.residents}
    moved = sum(_moved_bytes(call, resident) for call in calls)
    packets = sum(step.packets or 0 for step in verdict.steps if step.operator == "chain")
    made = sum(math.prod(step.result.extents) for step in planned.open_program.steps if step not in calls)
    inside = sum(math.prod(shape) for chain in chains for shape in chain.shapes[1:])
    return {
        "scalar": sum(each.used == "plain" for chain in chains for each in choose_kernels(chain, None, "hexagon")),
        "counted_bytes": moved,
        "macs_per_packet": round(sum(map(needed_macs, chains)) / packets, 2) if packets else None,
        **_of_engine([call.case for call in calls]),
        "outside_share": round(made / (made + inside), 3),
    }


def _of_engine(pieces: Sequence[Case]) -> dict[str, float | None]:
    """The columns of the matrix engine: it computes whole pieces."""
    on_engine = [case for case in pieces if case.plan.kernel == ENGINE]
    useful, whole = (sum(needed_macs(case.chain) for case in cases) for cases in (on_engine, pieces))
    done = sum(engine_packets(Planned.of(case).blocks).of_one.macs for case in on_engine)
    return {
        "engine_macs_share": round(useful / whole, 4) if whole else 0.0,
        "engine_useful_share": round(useful / done, 4) if done else None,
    }


def _moved_bytes(call: Call, resident: Container[str]) -> int:
    """Count the bytes of memory that a chain moves: none of an input or an output that stays in VTCM."""
    ends = {"input": call.sources[0].buffer, "output": call.result.buffer}
    usage = work_usage(call.case, count(lower_case(call.case)))
    return sum(each.bytes for each in usage.traffic if ends.get(each.name, "") not in resident)


def _predicted(planned: PlannedModel, cost: CallCost) -> dict[str, Any]:
    """The columns that `hexconv best` tells of a call."""
    total, question = planned.account.total, planned.question
    is_told = question.target == "hexagon" and ENGINE not in question.weighs
    return {
        "predicted_packets": cost.after_packets if is_told else None,
        "predicted_critical_packets": cost.critical_packets if is_told else None,
        "before_bytes": total.before_bytes,
        "after_bytes": total.after_bytes,
        "chains_before_bytes": total.chains_before_bytes,
        "chains_after_bytes": total.chains_after_bytes,
        "arena_bytes": cost.arena_bytes,
        "least_arena_bytes": cost.least_arena_bytes,
    }


def targets_of(names: Sequence[Target], threads: Sequence[int]) -> list[tuple[Target, int]]:
    """Pair targets with numbers of threads; this machine has one."""
    return [(target, count) for target in names for count in (threads if target == "hexagon" else [1])]


def parser_of(table: Path, about: str | None, threads: Sequence[int]) -> argparse.ArgumentParser:
    """Return a parser of the options that all benches of programs have."""
    parser = argparse.ArgumentParser(description=about)
    choices = get_args(Target)
    parser.add_argument("--targets", nargs="+", choices=choices, default=choices, help="where programs run")
    parser.add_argument("--threads", nargs="+", type=int, default=threads, help="threads of Hexagon")
    kernels = (FASTEST, *(f"{ENGINE}-{each}" for each in get_args(Engine)))
    parser.add_argument("--kernels", nargs="+", choices=kernels, default=(FASTEST,), help="kernels to ask for")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="calls on the adversarial platform")
    parser.add_argument("--workers", type=int, help="processes that compile")
    parser.add_argument("--csv", type=Path, default=table, help="the table")
    return parser


def bench_of(asked: argparse.Namespace) -> Bench:
    """Return what the options ask for."""
    return Bench(targets_of(asked.targets, asked.threads), asked.seeds, asked.workers, asked.csv, asked.kernels)


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if a row does not hold, or a network can't be measured."""
    parser = parser_of(CSV, __doc__, (1, THREADS))
    parser.add_argument("models", nargs="+", type=Path, help="NAME-FORM.onnx files")
    asked = parser.parse_args(arguments)
    bench = bench_of(asked)
    return keep_all(asked.models, lambda path: bench.rows(path, named(path)), asked.csv, KEY)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
