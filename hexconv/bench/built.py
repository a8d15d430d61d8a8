"""`python -m hexconv.bench.built MODEL-FORM.onnx...`: builds networks as C, compiles them in a clean folder, runs them.

A network is planned for the least latency, and built for this machine, and for Hexagon on one thread and on several.
The folder is compiled by `zig cc` as its README says, and its example compares every element with numpy, as `run` and
`verify` do, for each instruction set. If the installed simulator runs the instruction set, the library runs there with
`make run`, and on the adversarial platform, where each seed performs copies at other moments and takes threads in
another order: each chain alone, called by its own C functions on what the network has before it, and, for fewer seeds,
the whole network. Operators between chains start no copy. Objects for two instruction sets are often the same code
under two labels; calls of such code are made once, and count for both. If the simulator doesn't run it, the library is
only compiled and linked, and the row says so.

Each row is written as soon as it is measured, and each call is kept in a journal, so that an interrupted table goes on
where it was.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hexconv.apart import Limits
from hexconv.bench.adversarial import SECONDS, Called, Calls, Chain, Whole
from hexconv.bench.kept import keep_all, named
from hexconv.build.library import ARCHIVE
from hexconv.build.simulated import chain_object
from hexconv.errors import RunFailed
from hexconv.lower.hexagon_target import isas
from hexconv.lower.vtcm import capacity_of
from hexconv.network import BuiltNetwork, Wanted
from hexconv.network.answer import seen_by, stored_by
from hexconv.network.compiled import Compiled
from hexconv.network.library import compiled_network, read_network, tensors_of, write_compiled
from hexconv.network.simulated import network_object
from hexconv.network.step import Program
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.tensors import Array
from hexconv.spec import Plan, Target
from hexconv.sweep.journal import Journal
from hexconv.written import scratch

HOST = "host"
ISAS = ("v66", "v67", "v68", "v73", "v75", "v79")
SEEDS = 100
NETWORK_SEEDS = 5
THREADS = 4
JOURNAL = Path("build/built.journal")


@dataclass(frozen=True)
class Row:
    """A network as a library.

    Attributes:
        network: the model.
        form: how it is quantised.
        target: `llvm` or `hexagon`.
        isa: the instruction set; `host` on this machine.
        threads: the most threads that a chain uses.
        chains: how many calls of chains a call of the network makes.
        operators: how many calls of operators between chains it makes.
        library_bytes: the bytes of the chains' code and of all weights.
        vtcm_bytes: the most bytes of VTCM that a chain takes.
        scratch_bytes: the bytes of the tensors between steps, and of the other memory that chains take besides VTCM.
        elements: how many elements the outputs have; 0 if the library was linked and not run.
        differing: how many elements differ from numpy's, in the example and in all calls of chains and of the network.
        chain_seeds: how many calls of each chain's code were made on the adversarial platform, each with another seed.
        network_seeds: how many calls of the whole network were made there.
        copies: how many asynchronous copies one call of each chain starts, together.
        packets: the packets of a call of the network on that platform, operators between chains included.
    """

    network: str
    form: str
    target: str
    isa: str
    threads: int
    chains: int
    operators: int
    library_bytes: int
    vtcm_bytes: int
    scratch_bytes: int
    elements: int
    differing: int
    chain_seeds: int
    network_seeds: int
    copies: int
    packets: int | None

    @property
    def holds(self) -> bool:
        """Whether no element differs."""
        return self.differing == 0


@dataclass(frozen=True)
class Seeds:
    """How many seeds the adversarial platform gets, for each chain and for the whole network."""

    chains: int
    network: int


@dataclass(frozen=True)
class Network:
    """A model, planned once for a target and a number of threads."""

    path: Path
    target: Target
    threads: int

    @cached_property
    def program(self) -> Program:
        """The steps of the network, in order."""
        return read_network(self.path, self._wanted())

    @cached_property
    def tensors(self) -> dict[str, Array]:
        """The tensors of the network's example."""
        return tensors_of(self.path, self.program, self._wanted())

    def row(self, isa: str, seeds: Seeds, calls: Calls) -> Row:
        """Build the network in a clean folder, compile it there, and run it if the simulator can.

        Raises:
            RunFailed: it doesn't compile or link, or a run gives no answer.
        """
        compiled = compiled_network(self.path, self.program, self._wanted(isa))
        with scratch() as place:
            folder = Path(place)
            built = write_compiled(self.path, compiled, self.tensors, folder, self._wanted(isa))
            runs = self.target == "llvm" or _is_run(isa)
            differing, elements = _made(folder, built, runs)
            if not (runs and self.target == "hexagon"):
                seeds = Seeds(0, 0)
            found = list(self._called(compiled, folder, seeds.chains, calls))
            whole = list(_called_whole(Whole(folder, built, *self._ports(built)), seeds.network, calls))
        between = len(built.steps) - len(built.chains)
        sizes = (built.library_bytes, built.vtcm_bytes, built.scratch_bytes)
        known = (*named(self.path), self.target, isa if self.target == "hexagon" else HOST, built.threads)
        differing += sum(call.differing for call in (*found, *whole))
        copies = sum(call.copies for call in found) // max(seeds.chains, 1)
        ran = (seeds.chains, seeds.network, copies, whole[0].packets if whole else None)
        return Row(*known, len(built.chains), between, *sizes, elements, differing, *ran)

    def _called(self, compiled: Compiled, folder: Path, seeds: int, calls: Calls) -> Iterator[Called]:
        """Call every chain alone, once for each seed."""
        inputs = {port.name: self.tensors[port.name] for port in self.program.inputs}
        stored = stored_by(self.program, inputs) if seeds else {}
        for call, parts in zip(self.program.calls, compiled.chains, strict=True) if seeds else ():
            [image] = seen_by(call, stored)
            wanted = parts.built.output.layout_for(parts.built.shape).pack(stored[call.result.buffer], fill=0)
            kernel, chain = chain_object(folder, parts.built, folder / ARCHIVE), Chain(parts, image, (wanted,))
            yield from (calls.of(kernel, chain, seed) for seed in range(seeds))

    def _ports(self, built: BuiltNetwork) -> tuple[Array, tuple[Array, ...]]:
        """Return the input of the example, and its outputs."""
        [image] = [self.tensors[port.tensor] for port in built.ports if port.way == "input"]
        return image, tuple(self.tensors[port.tensor] for port in built.ports if port.way == "output")

    def _wanted(self, isa: str = ISAS[0]) -> Wanted:
        """Plans of least latency have copies of the engine's in flight; those of least traffic copy by themselves."""
        return Wanted(capacity_of(Plan()), self.target, isa, "latency", threads=self.threads)


def _called_whole(whole: Whole, seeds: int, calls: Calls) -> Iterator[Called]:
    """Call the whole network, once for each seed."""
    kernel = network_object(whole.folder, whole.built) if seeds else None
    return (calls.of(kernel, whole, seed) for seed in range(seeds)) if kernel else iter(())


def _is_run(isa: str) -> bool:
    """Tell whether the installed simulator runs code for an instruction set."""
    newest_first = isas()
    return newest_first.index(isa) >= newest_first.index(find_qemu().isa)


def _made(folder: Path, built: BuiltNetwork, runs: bool) -> tuple[int, int]:
    """Compile the folder as its README says, and run it; returns how many elements differ, and of how many."""
    compiler = f"{sys.executable} -m ziglang cc"
    if built.target == "hexagon":
        compiler += f" -target hexagon-linux-musl -mcpu=hexagon{built.isa} -static"
    command = ["make", "-C", str(folder), "-s", "run" if runs else "network_example", f"CC={compiler}"]
    if runs and built.target == "hexagon":
        command.append(f"RUN={find_qemu().path}")
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    said = [line.split() for line in done.stdout.splitlines() if " elements of " in line]
    if done.returncode not in ((0, 2) if said else (0,)):
        raise RunFailed(f"{built.model} for {built.isa}: {done.stderr.strip()[-600:]}")
    return sum(int(words[1]) for words in said), sum(int(words[3]) for words in said)


def _rows(path: Path, isas: Sequence[str], threads: Sequence[int], seeds: Seeds, calls: Calls) -> Iterator[Row]:
    """The rows of all libraries of a model: for this machine, and for each instruction set and number of threads."""
    yield Network(path, "llvm", 1).row(HOST, seeds, calls)
    for count in threads:
        network = Network(path, "hexagon", count)
        for isa in isas:
            yield network.row(isa, seeds, calls)


def main(arguments: Sequence[str]) -> int:
    """Write the table; exit 1 if an element differs, or a library could not be made."""
    parser = argparse.ArgumentParser(prog="hexconv.bench.built", description=__doc__)
    parser.add_argument("models", nargs="+", type=Path, help="NAME-FORM.onnx files")
    parser.add_argument("--isas", nargs="+", default=ISAS, help="instruction sets")
    parser.add_argument("--threads", nargs="+", type=int, default=(1, THREADS), help="threads of Hexagon")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="calls of each chain on the adversarial platform")
    parser.add_argument("--network-seeds", type=int, default=NETWORK_SEEDS, help="calls of the whole network there")
    parser.add_argument("--csv", type=Path, default=Path("reports/built_networks.csv"), help="the table")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="the calls that were made")
    options = parser.parse_args(arguments)
    with Journal.opened(options.journal, Limits(SECONDS, sys.maxsize)) as journal:
        calls, seeds = Calls(journal), Seeds(options.seeds, options.network_seeds)
        return keep_all(
            options.models,
            lambda path: _rows(path, options.isas, options.threads, seeds, calls),
            options.csv,
            ("network", "form", "target", "isa", "threads"),
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
