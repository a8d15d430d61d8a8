"""The harness's model of the matrix engine, compiled for this machine, and vectors: packets by their words."""

import ctypes
import hashlib
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.run.simulator.toolchain import zig
from hexconv.written import scratch
from tests.hmx.definition import CHANNELS, POSITIONS, Array

VECTORS = Path(os.environ.get("HEXCONV_HMX_VECTORS", Path(__file__).parent / "vectors"))

PACKET_BYTES = 64
"""At least the bytes of `struct hmx_packet`."""


class State(ctypes.Structure):
    """`struct hmx`."""

    _fields_ = (
        ("sums", ctypes.c_int32 * (2 * POSITIONS * CHANNELS)),
        ("converted", ctypes.c_uint16 * (3 * POSITIONS * CHANNELS)),
        ("bias", ctypes.c_uint64 * (4 * CHANNELS)),
        ("current", ctypes.c_int),
        ("groups", ctypes.c_int),
        ("memory", ctypes.c_void_p),
        ("address_mask", ctypes.c_uint32),
    )


@lru_cache(1)
def library() -> ctypes.CDLL:
    """Compile the model."""
    folder = resources.files("hexconv.run.simulator") / "harness"
    with resources.as_file(folder) as place, scratch() as made:
        target = made / "libhmx.so"
        flags = ("-O2", "-std=c11", "-shared", "-fPIC", "-fno-sanitize=all")
        zig("cc", *flags, str(place / "hmx.c"), "-o", str(target))
        found = ctypes.CDLL(str(target))
    found.hmx_bias_word.restype = ctypes.c_uint64
    found.hmx_bias_word.argtypes = (ctypes.c_int32, ctypes.c_int, ctypes.c_uint, ctypes.c_uint, ctypes.c_int)
    found.hmx_converted.argtypes = (ctypes.c_int64, ctypes.c_uint64, ctypes.c_int, ctypes.c_int)
    return found


class Modelled:
    """An engine with memory of its own, whose size is a power of two."""

    def __init__(self, memory: Array, arch: int = 75) -> None:
        self.memory, self.state = memory, State()
        self._self = ctypes.byref(self.state)
        library().hmx_reset(self._self, ctypes.c_void_p(memory.ctypes.data), ctypes.c_uint32(len(memory) - 1), arch)

    @property
    def sums(self) -> Array:
        """Both sets of sums, [2, 64, 32]."""
        return np.ctypeslib.as_array(self.state.sums).reshape(2, POSITIONS, CHANNELS)

    def perform(self, words: list[int], registers: dict[int, int]) -> None:
        """Perform a packet, given by its words."""
        given = (ctypes.c_uint32 * 32)(*[registers.get(number, 0) for number in range(32)])
        packet = ctypes.create_string_buffer(PACKET_BYTES)
        taken = library().hmx_read(packet, (ctypes.c_uint32 * 2)(*words, *[0] * (2 - len(words))), given)
        assert taken == len(words), [hex(word) for word in words]
        library().hmx_perform(self._self, packet)


def vectors() -> Iterator[Any]:
    """Yield every vector of the folder."""
    for path in sorted(VECTORS.glob("*.json")):
        yield json.loads(path.read_text())


def memory_of(vector: Any) -> Array:
    """Return the memory that a vector begins with: bytes of a generator, then patches."""
    known = vector["memory"]
    memory, state = np.zeros(known["size"], np.uint8), known["seed"]
    for place in range(known["random"]):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        memory[place] = state >> 24
    for patch in known.get("patch", []):
        data = bytes.fromhex(patch["hex"]) if "hex" in patch else bytes([patch["fill"]]) * patch["size"]
        memory[patch["at"] : patch["at"] + len(data)] = np.frombuffer(data, np.uint8)
    return memory


SAMPLED = ((0, 0), (1, 1), (9, 5), (37, 17), (63, 31))


def shown_by(vector: Any) -> Any:
    """Perform a vector's packets, and return what it expects: sums, the current set, and regions of memory."""
    engine = Modelled(memory_of(vector), vector["arch"])
    for step in vector["steps"]:
        registers = {number: int(step[f"r{number}"], 16) for number in range(32) if f"r{number}" in step}
        engine.perform([int(word, 16) for word in step["words"]], registers)
    sums = [
        {"sha256": _digest(each.astype("<i4")), "samples": [[*at, int(each[at])] for at in SAMPLED]}
        for each in engine.sums
    ]
    memory = [_region(engine.memory, each) for each in vector["expect"]["memory"]]
    return {"current": engine.state.current, "acc": sums, "memory": memory}


def _region(memory: Array, region: Any) -> Any:
    at, size = region["at"], region["size"]
    known = {"at": at, "size": size, "sha256": _digest(memory[at : at + size])}
    return {**known, "first": bytes(memory[at : at + 32]).hex()}


def _digest(array: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
