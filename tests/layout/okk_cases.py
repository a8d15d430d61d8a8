"""Tensors in local memory, as plain data, and our answers; `tests/oracles/record.py` asks simulators."""

import hashlib
from random import Random

import numpy as np

from hexconv.layout import Layout, okk

NUMPY = {"float32": np.uint32, "int16": np.uint16, "float16": np.uint16, "int8": np.uint8}
WINDOW_BYTES = 65536
"""What a case can reach of each local memory."""

DTYPES = {"bm1684": ("float32", "int16", "int8"), "bm1684x": ("float32", "float16", "int8")}


def random_case(rng: Random) -> dict:
    chip = okk.CHIPS[rng.choice(list(okk.CHIPS))]
    channels = rng.choice((1, 3, chip.npus - 1, chip.npus, chip.npus + 1, 2 * chip.npus + 2))
    names = ("aligned", "compact") if chip.name == "bm1684" else okk.NAMED
    return {
        "chip": chip.name,
        "name": rng.choice(names),
        "shape": [rng.randint(1, 3), channels, rng.randint(1, 7), rng.randint(1, 13)],
        "dtype": rng.choice(DTYPES.get(chip.name, DTYPES["bm1684x"])),
        "start_npu": rng.choice((0, 1, chip.npus // 2, chip.npus - 1)),
        "offset_bytes": rng.randrange(100) * chip.eu_bytes,
    }


def build(case: dict) -> Layout:
    given = {name: value for name, value in case.items() if name != "chip"}
    return okk.local(okk.CHIPS[case["chip"]], **given)


def fingerprint_source(case: dict) -> np.ndarray:
    """Data that makes a misplaced element show."""
    rng = np.random.default_rng(np.prod(case["shape"]))
    return rng.integers(1, 250, case["shape"]).astype(NUMPY[case["dtype"]])


def memory_digest(case: dict) -> str:
    """Hash of the start of all local memories, zero but for the tensor."""
    layout, chip = build(case), okk.CHIPS[case["chip"]]
    memory = np.zeros((chip.npus, WINDOW_BYTES), np.uint8)
    store = layout.pack(fingerprint_source(case)).view(np.uint8)
    base = layout.outputs[1].base
    memory[:, base : base + store.shape[1]] = store
    return hashlib.sha256(memory.tobytes()).hexdigest()[:16]
