"""Calls of chains and networks that are built as C, on the simulator's adversarial platform, kept in a journal.

The platform performs copies at moments that a seed draws, and takes threads in an order that it draws. A call is known
by the code that is called, all that it reads, the simulator and the seed, so that an interrupted bench makes no call
again. Objects for several instruction sets often differ in their labels alone; they are the same code, called once.
"""

import io
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from hexconv.build.chain import Parts
from hexconv.build.simulated import called_chain
from hexconv.lower.hexagon import HexagonObject
from hexconv.network import BuiltNetwork
from hexconv.network.simulated import simulated_network
from hexconv.run.copies import Copies
from hexconv.run.runner import Measurement
from hexconv.run.simulator.cache import content_key
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Array
from hexconv.sweep.journal import Journal
from hexconv.sweep.provenance import provenance

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
        return simulated_network(self.folder, self.built, kernel, self.image, simulator)


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
