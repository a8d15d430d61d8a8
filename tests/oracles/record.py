"""Ask the oracles and keep their answers: `python -m tests.oracles.record` writes `tests/layout/golden/`.

`make test` checks the layouts against these answers where the libraries themselves are missing.
"""

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from ..layout.okk_cases import WINDOW_BYTES, fingerprint_source, random_case
from ..layout.onednn_cases import ours, tag_case
from ..layout.onednn_cases import random_case as random_descriptor
from . import okk, onednn

GOLDEN = Path(__file__).parents[1] / "layout" / "golden"


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    _write("onednn_tags", _tags())
    _write("onednn_views", _views())
    _write("okk", _okk())


def _tags() -> Iterable[dict]:
    """Every tag once: what the library says of it, and a hash of what its reorder writes."""
    rng = Random(0)
    for tag in onednn.tags():
        case = tag_case(rng, tag)
        target = onednn.built(case)
        memory = np.full(target.size // 4, 123, np.float32)
        values = np.arange(1, np.prod(case["dims"]) + 1, dtype=np.float32).reshape(case["dims"])
        onednn.reorder(onednn.Desc.by_strides(case["dims"], "f32"), values, target, memory)
        yield {"case": case, "says": onednn.theirs(case), "memory": _hash(memory)}


def _views() -> Iterable[dict]:
    """Random descriptors and views, but for those where ours is known to differ (README, oneDNN, reshape)."""
    rng, tags = Random(1), list(onednn.tags())
    kept = 0
    while kept < 700:
        case = random_descriptor(rng, tags)
        says = onednn.theirs(case)
        if says != ours(case):
            continue
        kept += 1
        yield {"case": case, "says": says}


def _okk() -> Iterable[dict]:
    """Tensors as the simulators' own DMA leaves them in local memory."""
    rng = Random(2)
    for _ in range(60):
        case = random_case(rng)
        sim = okk.bm1684() if case["chip"] == "bm1684" else okk.tpu(case["chip"])
        itemsize = {"float32": 4, "int16": 2, "float16": 2, "int8": 1}[case["dtype"]]
        width: Any = itemsize if case["chip"] == "bm1684" else case["dtype"]
        strides = sim.named_strides(case["name"], case["start_npu"], case["shape"], width)
        source = fingerprint_source(case)
        sim.system()[: source.nbytes] = source.reshape(-1).view(np.uint8)
        sim.local()[:] = 0
        sim.to_local(sim.address(case["start_npu"], case["offset_bytes"]), case["shape"], width, dst=strides)
        yield {
            "case": case,
            "strides": list(strides),
            "memory": _hash(np.ascontiguousarray(sim.local()[:, :WINDOW_BYTES])),
        }


def _hash(memory: np.ndarray) -> str:
    return hashlib.sha256(memory.tobytes()).hexdigest()[:16]


def _write(name: str, answers: Iterable[dict]) -> None:
    """One answer a line, so that a difference shows as a line."""
    lines = ",\n".join(json.dumps(answer) for answer in answers)
    (GOLDEN / f"{name}.json").write_text(f"[\n{lines}\n]\n")
    print(f"wrote {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
