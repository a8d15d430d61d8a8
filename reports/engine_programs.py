"""Random networks for the matrix engine, built and called: `reports/engine_programs.csv` gets a row a seed.

python -m reports.engine_programs --seeds 6001 6002

Each network is planned for a drawn VTCM, objective and number of threads, with requantisation that is exact or the
engine's. It is built as `hexconv build` does it, and its library is called on the adversarial platform: what no one
wrote is poison, and copies are performed at random moments in one call, as early or as late as they may in the other.
Outputs are held against numpy's, to the element; bytes, MACs and packets of the engine are those of the closed form.
A network that can't be built has a reason. A seed goes on where it stopped: a journal of its draws lies beside it.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd

from hexconv.analyze import Planned
from hexconv.analyze.block_grid import engine_packets
from hexconv.analyze.usage import miscounts, work_usage
from hexconv.apart import Limits
from hexconv.errors import HexconvError, InputError, RunFailed, Unsupported
from hexconv.kernel.engine import EnginePackets
from hexconv.lower import lower_case
from hexconv.model import import_model
from hexconv.network import built_network
from hexconv.network.built_network import compiled_network, tensors_of, write_compiled
from hexconv.network.called_network import network_object, simulated_network
from hexconv.network.compiled import operators_object
from hexconv.network.planned_model import PlannedModel, plan
from hexconv.run.host import count
from hexconv.run.simulator.made_files import content_key, provenance
from hexconv.run.simulator.runner import Simulator
from hexconv.sweep.journal import Journal
from hexconv.written import scratch
from tests.network.drawn_for_engine import ISA, Way, draw_for_engine, draw_way

SEEDS, DRAWS = tuple(range(6001, 6011)), 100
FOLDER = Path("build/sweeps")
LIMITS = Limits(seconds=600, memory_bytes=4 << 30)


@dataclass(frozen=True)
class Row:
    """The random networks of a seed.

    Attributes:
        seed: the seed of the draw.
        programs: how many networks were drawn.
        apart: how many have no chain on the engine: they are not built.
        fast_programs: how many of those that hold requantise by the engine's own convert, where it has one.
        shared_programs: how many of those that hold are planned for several threads.
        chains: how many pieces of chains are called in those that hold.
        engine_chains: how many of these are on the engine.
        operators: how many steps are between them.
        elements: how many elements the outputs of all calls have.
        holding: the networks whose outputs are numpy's, and whose bytes, MACs and packets are the closed form's.
        refused: the networks that can't be built, with a reason.
        wrong: the networks of which an element or a count differs, or that failed.
    """

    seed: int
    programs: int
    apart: int
    fast_programs: int
    shared_programs: int
    chains: int
    engine_chains: int
    operators: int
    elements: int
    holding: int
    refused: int
    wrong: int

    @classmethod
    def of(cls, seed: int, draws: Sequence["DrawnCall"]) -> "Row":
        """Count the draws of a seed."""
        status = Counter(each.status for each in draws)
        held = [each for each in draws if each.status == "holds"]
        known = "chains", "engine_chains", "operators", "elements"
        chains, on_engine, operators, elements = (sum(getattr(each, name) for each in held) for name in known)
        return cls(
            seed,
            len(draws),
            status["apart"],
            sum(each.engine == "fast" for each in held),
            sum(each.threads > 1 for each in held),
            chains,
            on_engine,
            operators,
            elements,
            status["holds"],
            status["refused"],
            len(draws) - status["holds"] - status["refused"] - status["apart"],
        )


@dataclass(frozen=True)
class DrawnCall:
    """What the calls of a drawn network gave.

    Attributes:
        index: which one it is.
        status: `holds`, `refused`, `apart`, `wrong` or `failed`.
        chains: how many pieces of chains a call runs.
        engine_chains: how many of them are on the engine.
        operators: how many steps are between them.
        threads: how many threads it is planned for.
        engine: how the engine requantises.
        elements: how many elements the outputs of all calls have.
        said: what is wrong, or why it is refused; empty where it holds.
    """

    index: int
    status: str
    chains: int = 0
    engine_chains: int = 0
    operators: int = 0
    threads: int = 1
    engine: str = "exact"
    elements: int = 0
    said: str = ""


def drawn_call(seed: int, index: int) -> DrawnCall:
    """Draw a network, build it and call it."""
    way = draw_way(seed, index)
    told: dict[str, Any] = {"threads": way.wanted.threads, "engine": way.wanted.engine}
    with scratch() as folder:
        path = folder / "program.onnx"
        try:
            onnx.save(draw_for_engine(seed, index).model, path)
            planned = plan(import_model(path), way.question)
            calls, program = planned.open_program.calls, planned.program
            told |= {"chains": len(calls), "operators": len(program.computed) - len(calls)}
            told["engine_chains"] = sum(call.case.settled.kernel == "hmx" for call in calls)
            if not told["engine_chains"]:
                return DrawnCall(index, "apart", **told)
            elements, faults = _called(path, planned, way, folder / "built")
        except (InputError, Unsupported) as refusal:
            return DrawnCall(index, "refused", **told, said=str(refusal))
        except Exception as failure:  # whatever it is, the next draw follows
            kind = "" if isinstance(failure, HexconvError) else f"{type(failure).__name__}: "
            return DrawnCall(index, "failed", **told, said=f"{kind}{failure}"[-600:])
    return DrawnCall(index, "wrong" if faults else "holds", **told, elements=elements, said="; ".join(faults))


def _called(path: Path, planned: PlannedModel, way: Way, folder: Path) -> tuple[int, list[str]]:
    """Build a network, and call it once for each way of copies; return the elements of its outputs, and faults."""
    program = planned.program
    tensors = tensors_of(path, program, way.wanted)
    built = write_compiled(path, compiled_network(path, program, way.wanted, 1), tensors, folder, way.wanted)
    kernel, images = network_object(folder, built), [tensors[port.name] for port in program.inputs]
    elements, faults = 0, list(_miscounts(planned))
    for copies in way.copies:
        try:
            run = simulated_network(folder, built, kernel, images, Simulator(copies=copies, slots=False, isa=ISA))
        except RunFailed as failure:
            faults.append(f"{copies.moment} copies: {failure}")
            continue
        for port, made in zip(program.outputs, run.outputs, strict=True):
            wanted = tensors[port.name]
            elements += wanted.size
            differing = int(np.count_nonzero(~((made == wanted) | ((made != made) & (wanted != wanted)))))
            if differing:
                faults.append(f"{copies.moment} copies: {differing} of {wanted.size} elements of {port.name} differ")
        predicted, found = _predicted(planned), run.engine.packets if run.engine else EnginePackets()
        if found != predicted:
            faults.append(f"{copies.moment} copies: {found}, closed form {predicted}")
    return elements, faults


def _predicted(planned: PlannedModel) -> EnginePackets:
    """The packets of the engine in a call."""
    on_engine = [call.case for call in planned.program.calls if call.case.settled.kernel == "hmx"]
    return sum((engine_packets(Planned.of(case).blocks).of_one for case in on_engine), EnginePackets())


def _miscounts(planned: PlannedModel) -> Iterator[str]:
    """Where chains move other bytes than the closed form and the account of the whole call say."""
    resident, moved = {each.tensor for each in planned.handed.residents}, 0
    for call in planned.program.calls:
        usage = work_usage(call.case, count(lower_case(call.case)))
        yield from (f"{call.case.name}: {fault}" for fault in miscounts(usage))
        ends = {"input": call.sources[0].buffer, "output": call.result.buffer}
        moved += sum(each.bytes for each in usage.traffic if ends.get(each.name, "") not in resident)
    account = planned.account.total.chains_after_bytes
    if moved != account:
        yield f"bytes of all chains: closed form {account}, counted {moved}"


def swept(seed: int, indices: Sequence[int], folder: Path) -> list[DrawnCall]:
    """Call the networks of a seed that the journal doesn't have; print each that does not hold."""
    found = []
    with Journal.opened(folder / f"engine-programs-{seed}.jsonl", LIMITS) as journal:
        for index in indices:
            key = content_key(str(seed), str(index), provenance())
            if key not in journal.rows:
                journal.add(key, asdict(drawn_call(seed, index)))
            found.append(DrawnCall(**journal.rows[key]))
            if found[-1].status not in ("holds", "apart"):
                print(f"{seed}: {found[-1]}", flush=True)
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the rows of some seeds beside those of others; exit 1 if a network is wrong."""
    parser = argparse.ArgumentParser(prog="reports.engine_programs", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--draws", type=int, default=DRAWS, help="networks of each seed")
    parser.add_argument("--first", type=int, help="draw this one and those behind it, and write no row")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where journals lie")
    parser.add_argument("--csv", type=Path, default=Path("reports/engine_programs.csv"), help="the table")
    options = parser.parse_args(arguments)
    wrong = 0
    # The operators of all networks are compiled once, not those of each, which takes longer than all else.
    built_network.operators_object = lambda isa, _: operators_object(isa)
    for seed in options.seeds:
        first = options.first or 0
        row = Row.of(seed, swept(seed, range(first, first + options.draws), options.folder))
        print(row, flush=True)
        wrong += row.wrong
        if options.first is None:
            known = pd.read_csv(options.csv).to_dict("records") if options.csv.exists() else []
            rows = {each["seed"]: each for each in [*known, asdict(row)]}
            pd.DataFrame([rows[each] for each in sorted(rows)]).to_csv(options.csv, index=False)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
