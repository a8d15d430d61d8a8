"""`python -m reports.built_networks MODEL-FORM.onnx...`: builds networks as C, compiles them apart, and runs them.

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

The platform performs copies at moments that a seed draws, and takes threads in an order that it draws. A call is known
by the code that is called, all that it reads, the simulator and the seed, so that an interrupted bench makes no call
again. Objects for several instruction sets often differ in their labels alone; they are the same code, called once.
"""

import argparse
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from hexconv.apart import Limits
from hexconv.build.built_chain import Parts
from hexconv.build.called_library import called_chain, chain_object
from hexconv.build.library import ARCHIVE
from hexconv.errors import RunFailed
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.lower.hexagon_target import isas
from hexconv.lower.vtcm import capacity_of
from hexconv.network import BuiltNetwork, Wanted
from hexconv.network.answer import stored_by
from hexconv.network.built_network import compiled_network, read_network, tensors_of, write_compiled
from hexconv.network.called_network import network_object, simulated_network
from hexconv.network.compiled import Compiled
from hexconv.network.elements import seen_by
from hexconv.network.program_steps import Program
from hexconv.run.copy_engine import Copies
from hexconv.run.measurement import Measurement
from hexconv.run.simulator.made_files import content_key, provenance
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Array
from hexconv.spec import Plan, Target
from hexconv.sweep.journal import Journal
from hexconv.written import scratch
from reports.kept import keep_all, named

SECONDS = 3600.0
WEIGHTS = "network.weights.bin"
SIMULATOR = ("run", "build")
"""The parts of the code, besides the object that is called, which a call on the simulator depends on."""
LABELS = ".hexagon.attributes"
"""The section that names the instruction set; the header of the file has it, too."""


@dataclass(frozen=True)
class Called:
    """A call on the adversarial platform.

    Attributes:
        differing: how many elements of its outputs are wrong.
        packets: the packets of the call.
        copies: how many asynchronous copies it started.
    """

    differing: int
    packets: int
    copies: int


@dataclass(frozen=True)
class Chain:
    """A chain of a network, with what it reads and what it has to write."""

    parts: Parts
    image: Array
    wanted: tuple[Array, ...]

    @property
    def content(self) -> bytes:
        """The bytes that a call reads, and the name of what is called."""
        return self.parts.built.name.encode() + self.image.tobytes() + self.parts.weights

    def run(self, kernel: HexagonObject, simulator: Simulator) -> Measurement:
        """Call it once."""
        weights = np.frombuffer(self.parts.weights, np.uint8)
        return called_chain(kernel, self.parts.built, self.image, weights, simulator)


@dataclass(frozen=True)
class Whole:
    """A network in its folder, with what it reads and what it has to write."""

    folder: Path
    built: BuiltNetwork
    image: Array
    wanted: tuple[Array, ...]

    @property
    def content(self) -> bytes:
        """The bytes that a call reads, and the name of what is called."""
        return self.built.name.encode() + self.image.tobytes() + (self.folder / WEIGHTS).read_bytes()

    def run(self, kernel: HexagonObject, simulator: Simulator) -> Measurement:
        """Call it once."""
        return simulated_network(self.folder, self.built, kernel, [self.image], simulator)


@dataclass(frozen=True)
class Calls:
    """Calls on the adversarial platform; known ones are looked up in a journal."""

    journal: Journal

    def of(self, kernel: HexagonObject, what: Chain | Whole, seed: int) -> Called:
        """Make a call with a seed, or look it up."""
        key = content_key(code_of(kernel.elf), what.content, str(seed), find_qemu().version, provenance(SIMULATOR))
        if key not in self.journal.rows:
            simulator = Simulator(seconds=SECONDS, copies=Copies("random", seed), slots=False, isa=kernel.isa)
            run = what.run(kernel, simulator)
            assert run.counts
            assert run.copies
            pairs = zip(run.outputs, what.wanted, strict=True)
            wrong = sum(int(np.count_nonzero(one != other)) for one, other in pairs)
            self.journal.add(key, asdict(Called(wrong, run.counts.packets, run.copies.pieces)))
        return Called(**self.journal.rows[key])


def code_of(elf: bytes) -> bytes:
    """Return the sections of an object file, with their names, without the labels of its instruction set."""
    sections = [section for section in ELFFile(io.BytesIO(elf)).iter_sections() if section.name != LABELS]
    return b"".join(section.name.encode() + b"\0" + section.data() for section in sections)


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
    parser = argparse.ArgumentParser(prog="reports.built_networks", description=__doc__)
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
