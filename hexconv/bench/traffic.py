"""`python -m hexconv.bench.traffic`: the bytes that the best plans of published chains move, beside Qualcomm's planner.

Every chain is planned in 1, 2, 4 and 8 MiB of VTCM, in its best cut. The bytes are those of the closed form, which
`hexconv best` prints. Nothing runs.

The other figures are quoted, and no package of Qualcomm's is installed. `QNN_BYTES` is the sum of `read_total_bytes`
and `write_total_bytes`: DDR traffic that the planner in onnxruntime-qnn 2.7.0 (with onnxruntime 1.31.1 on x86-64)
states in its verbose log for an 8-bit QDQ model of the same shapes, with htp_arch 73, vtcm_mb as given,
htp_graph_finalization_optimization_mode 3, and NHWC input and output. It plans for the least time, not for the fewest
bytes, and pads channels as it stores them.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from hexconv.analyze import needed_work
from hexconv.search import Question, plan_chain
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize

MIB = 1 << 20
LIMITS_MIB = (1, 2, 4, 8)

QNN_BYTES: dict[str, dict[int, int]] = {
    "pointwise": {1: 1085440, 2: 1085440, 4: 1085440, 8: 1085440},
    "windows": {1: 1462272, 2: 1462272, 4: 1462272, 8: 1462272},
    "vgg16-block3": {1: 7647232, 2: 2816000, 4: 2816000},
    "edsr-body": {1: 86171648, 2: 36024320, 4: 35678208, 8: 18966528},
    "four-of-32": {1: 9029632, 2: 4835328, 4: 4835328, 8: 4835328},
    "mc-cnn": {1: 122810368, 2: 30791680, 4: 30791680, 8: 30791680},
    "fsrcnn": {1: 289503232, 2: 85796864, 4: 17614848, 8: 17614848},
}
"""The bytes of QNN's planner, by MiB of VTCM; it was not asked for what is missing here."""

DEFINES_BYTES = {"mc-cnn": 30_480_000, "fsrcnn": 8_850_000}
"""What the model of DeFiNES states for its best plan, in 1 MiB + 64 KiB for maps and 1 MiB + 32 KiB for filters."""
DEFINES_MIB = 2


def _chain(size: tuple[int, int, int], *convs: tuple[int, int], padding: int = 0) -> Chain:
    """A chain of uint8 over an image of (rows, columns, channels); a conv is (output channels, kernel size)."""
    scale = Requantize(multiplier=0x5A7B3C1D, shift=-8)
    made = tuple(
        Conv2d(out_channels=channels, kernel=(side, side), padding=padding, requantize=scale)  # pyright: ignore[reportArgumentType]
        for channels, side in convs
    )
    return Chain(input=(1, *size), dtype="uint8", output_layout="NHWC", conv=made)


CHAINS = {
    "pointwise": _chain((64, 64, 128), (128, 1), (128, 1)),
    "windows": _chain((64, 64, 128), (128, 3), (128, 3)),
    "vgg16-block3": _chain((56, 56, 128), *[(256, 3)] * 3, padding=1),
    "edsr-body": _chain((270, 480, 64), *[(64, 3)] * 4, padding=1),
    "four-of-32": _chain((256, 256, 32), *[(32, 3)] * 4, padding=1),
    "mc-cnn": _chain((1250, 384, 1), *[(64, 3)] * 4),
    "fsrcnn": _chain((554, 974, 1), (56, 5), (12, 1), *[(12, 3)] * 4, (56, 1), (16, 3)),
}
"""MC-CNN and FSRCNN as DeFiNES has them, without padding; FSRCNN's last conv has 16 channels, which make 4x4 pixels."""


@dataclass(frozen=True)
class Row:
    """One chain under one limit.

    Attributes:
        chain: the name of the chain.
        vtcm_mib: the MiB of VTCM that the caches may take.
        needed_bytes: the lower bound of the bytes that any plan moves; input and output are NHWC.
        traffic_bytes: the bytes that the best cut moves; None if nothing fits.
        pieces: how many pieces the best cut has.
        qnn_bytes: the bytes that QNN's planner states; None if it was not asked.
        defines_bytes: the bytes that the model of DeFiNES states; its memories hold 2.09 MiB together.
    """

    chain: str
    vtcm_mib: int
    needed_bytes: int
    traffic_bytes: int | None
    pieces: int | None
    qnn_bytes: int | None
    defines_bytes: int | None


def rows(names: Sequence[str]) -> Iterator[Row]:
    """Every chain under every limit."""
    for name in names:
        chain = CHAINS[name]
        needed = sum(needed_work(chain).traffic_bytes.values())
        for limit in LIMITS_MIB:
            question = Question(limit * MIB, "traffic", Plan(kernel="hvx", storage="vtcm"), target="hexagon")
            best = plan_chain(Case(name, chain, Plan(kernel="hvx")), question).cuts.best
            traffic, pieces = (best.traffic_bytes, len(best.pieces)) if best else (None, None)
            defines = DEFINES_BYTES.get(name) if limit == DEFINES_MIB else None
            yield Row(name, limit, needed, traffic, pieces, QNN_BYTES[name].get(limit), defines)


def main(arguments: Sequence[str]) -> int:
    """Write the table, a row as soon as it is there."""
    parser = argparse.ArgumentParser(prog="hexconv.bench.traffic", description=__doc__)
    parser.add_argument("--chains", nargs="+", choices=tuple(CHAINS), default=list(CHAINS))
    parser.add_argument("--csv", type=Path, default=Path("reports/bytes.csv"), help="the table")
    options = parser.parse_args(arguments)
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    found: list[Row] = []
    for row in rows(options.chains):
        found.append(row)
        print(f"{row.chain} in {row.vtcm_mib} MiB: {row.traffic_bytes}, needed {row.needed_bytes}, QNN {row.qnn_bytes}")
        pd.DataFrame([asdict(each) for each in found]).astype("Int64", errors="ignore").to_csv(options.csv, index=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
