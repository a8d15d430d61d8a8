"""`python -m reports.quoted`: writes figures of the committed tables into the pages that quote them.

Each quoted row of a page is found by its first cell, and is written anew where it stands.
"""

import csv
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from reports.programs import FASTEST

ROOT = Path(__file__).parents[1]
BACKGROUND = ROOT / "hexconv" / "docs" / "background"
MEASUREMENTS, COMPARISON, README = BACKGROUND / "measurements.md", BACKGROUND / "comparison.md", ROOT / "README.md"
HOME = ROOT / "hexconv" / "docs" / "index.md"
ENGINE = BACKGROUND / "matrix-engine.md"

BESIDE_HALIDE = {
    "1x1 -> 1x1, shifts": "a-shift",
    "1x1 -> 1x1, multiplier": "a-multiplier",
    "1x1 -> 1x1, filter with a zero point": "a-filter-zero",
    "1x1 -> 1x1, int8 filters": "a-int8-filters",
    "3x3 -> 3x3, shifts": "b-shift",
    "3x3 -> 3x3, multiplier": "b-multiplier",
    "3x3 -> 3x3, filter with a zero point": "b-filter-zero",
    "3x3 -> 3x3, int8 filters": "b-int8-filters",
    "depthwise 3x3, stride 1": "depthwise",
    "depthwise 3x3, stride 2": "depthwise-stride-2",
    "7x7, stride 2, 3 channels to 64": "first-layer",
}
ALONE = {"depthwise 3x3, stride 2, input in blocks": "depthwise-blocks"}
BESIDE_HALIDE_IN_THE_README = ("two 3x3 convs, uint8, shifts: MACs per issue slot (two `vrmpy` are 256)", "b-shift")
ADD_IN_THE_README = ("an Add of 56x56x64: packets an element", "1x56x56x64, 1x56x56x64 to 1x56x56x64")
BYTES_IN_THE_README = ("ResNet-18, the whole network, in 2 MiB of VTCM: bytes moved", "resnet18", "2")
INT16 = {
    "1x1 -> 1x1, int16 x int8": ("a-int16", 128),
    "3x3 -> 3x3, int16 x int8": ("b-int16", 128),
    "1x1 -> 1x1, int16 x int16": ("a-int16-filters", 64),
}
WHOLE = {
    "ResNet-18": "resnet18",
    "ResNet-50": "resnet50",
    "VGG-16's convs": "vgg16",
    "MobileNetV2": "mobilenet_v2",
    "MobileNetV3-small": "mobilenet_v3",
    "EfficientNet-B0": "efficientnet_b0",
    "FSRCNN": "fsrcnn",
    "FSRCNN, PReLU": "fsrcnn_prelu",
    "ESPCN": "espcn",
    "EDSR, four blocks": "edsr",
    "U-Net, four levels": "unet",
}
WHOLE_OF_INT16 = ("ResNet-18", "ResNet-50", "VGG-16's convs", "U-Net, four levels", "MobileNetV2", "EfficientNet-B0")
ON_THE_SIMULATOR = ("baseline-1x1", "float16-1x1", "split-1x1", "split-3x3", "uint8-3x3-vtcm")

MACS_OF_TWO_VRMPY = 256
LEFT_BY_ENGINE = ("packets", "hvx_packets", "traffic_bytes", "vtcm_bytes")

Row = dict[str, str]


def quoted() -> dict[Path, list[str]]:
    """Return the rows that each page has to have, as Markdown."""
    hvx, int16, simulator = (_table(name) for name in ("hvx.csv", "hvx_int16.csv", "simulator.csv"))
    beside = [_beside_halide(words, hvx[case]) for words, case in BESIDE_HALIDE.items()]
    alone = [_row(words, "", _both(hvx[case]), "") for words, case in ALONE.items()]
    wide = [_of_limit(words, int16[case], limit) for words, (case, limit) in INT16.items()]
    scalar = [_simulated(case, simulator[case]) for case in ON_THE_SIMULATOR]
    whole = [_whole(words, name) for words, name in WHOLE.items()]
    whole += [_whole_of_int16(words) for words in WHOLE_OF_INT16]
    wild = [_wild(list(rows)) for _, rows in groupby(_read("wild.csv"), key=lambda row: row["network"])]
    on_hexagon = [row for row in _read("programs.csv") if row["target"] == "hexagon"]
    programs = [_program(row) for row in on_hexagon if row["kernel"] == FASTEST]
    words, case = BESIDE_HALIDE_IN_THE_README
    board = [_compared(words, hvx[case]), _beside_qnn(), _beside_plain()]
    engine = [_of_engine(row) for row in _read("hmx.csv")]
    engine += [_program_on_engine(row) for row in on_hexagon if row["kernel"] != FASTEST]
    measured = [
        _all_beside_halide([hvx[case] for case in BESIDE_HALIDE.values()]),
        *beside,
        *alone,
        *wide,
        *scalar,
        *whole,
        *wild,
        *programs,
        *(
            _bytes_of(name, list(rows))
            for name, rows in groupby(_read("networks_bytes.csv"), lambda row: row["network"])
        ),
    ]
    return {MEASUREMENTS: measured, COMPARISON: list(_traffic()), ENGINE: engine, README: board, HOME: board}


def with_rows(text: str, rows: list[str]) -> str:
    r"""Return a page in which each of these rows replaces the row with the same first cell and as many cells.

    >>> with_rows("| a | 1 |\n| b | 2 |\n", ["| a | 3 |"])
    '| a | 3 |\n| b | 2 |\n'
    """
    for row in rows:
        first = row.strip("| ").split(" | ")[0]
        cells = r"[^|\n]*\|" * row.count("|", len(f"| {first} |"))
        text = re.sub(rf"^\| {re.escape(first)} \|{cells}$", row.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text


def _table(name: str) -> dict[str, Row]:
    return {row["case"]: row for row in _read(name)}


def _read(name: str) -> list[Row]:
    with (ROOT / "reports" / name).open() as file:
        return list(csv.DictReader(file))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _traffic() -> Iterator[str]:
    """For each net: its name, the bytes needed, and for each limit the bytes that hexconv, QNN and DeFiNES move."""
    for net, rows in groupby(_read("bytes.csv"), key=lambda row: row["net"]):
        limits = _by_limit(list(rows))
        yield _row(f"`{net}`", _total(limits[0], "needed_bytes"), *map(_moved, limits))


def _by_limit(rows: list[Row]) -> list[list[Row]]:
    """Return the rows of all chains of a net, limit by limit."""
    return [[row for row in rows if row["vtcm_mib"] == limit] for limit in dict.fromkeys(r["vtcm_mib"] for r in rows)]


def _beside_qnn() -> str:
    words, *asked = BYTES_IN_THE_README
    (row,) = (row for row in _read("networks_bytes.csv") if [row["network"], row["vtcm_mib"]] == asked)
    return _row(words, row["moved_bytes"], f"QNN's planner {row['qnn_v73_bytes']}", "`make bytes-networks`")


def _beside_plain() -> str:
    words, tensors = ADD_IN_THE_README
    (row,) = (row for row in _read("operators.csv") if (row["operator"], row["tensors"]) == ("add", tensors))
    of_hvx, of_plain = (f"{float(row[column]):.3f}" for column in ("hvx_packets", "plain_packets"))
    return _row(words, of_hvx, f"plain C {of_plain}", "`python -m reports.operators`")


def _moved(rows: list[Row]) -> str:
    """The bytes that all chains of a net move, by tool; where a tool has no figure for one of them, it has none."""
    qnn, later = _total(rows, "qnn_v73_bytes"), _total(rows, "qnn_v75_bytes")
    told = [
        _total(rows, "traffic_bytes") or "nothing fits",
        qnn and f"QNN {qnn}",
        later and later != qnn and f"on v75 {later}",
        _total(rows, "defines_bytes") and f"DeFiNES {_total(rows, 'defines_bytes')}",
    ]
    return "<br>".join(filter(None, told))


def _total(rows: list[Row], column: str) -> str:
    """Return the sum of a column, empty if a row has no figure."""
    figures = [row[column] for row in rows]
    return str(sum(map(int, figures))) if all(figures) else ""


def _macs(row: Row, unit: str, whose: str = "", digits: int = 2) -> str:
    return f"{float(row[f'{whose}macs_per_{unit}']):.{digits}f}"


def _both(row: Row, whose: str = "") -> str:
    return f"{_macs(row, 'slot', whose)} ({_macs(row, 'packet', whose)})"


def _compared(words: str, row: Row) -> str:
    halide = f"Halide {_macs(row, 'slot', 'halide_', 1)}"
    return _row(words, _macs(row, "slot", digits=1), halide, "`make bench`")


def _beside_halide(words: str, row: Row) -> str:
    """Both tools' MACs by slot and by packet, the greater in bold, and how many times Halide's hexconv's are."""
    ratio = float(row["macs_per_slot"]) / float(row["halide_macs_per_slot"])
    theirs, ours = _best_bold([_both(row, "halide_"), _both(row)], best=int(ratio > 1))
    return _row(words, theirs, ours, f"{ratio:.2f}")


def _of_limit(words: str, row: Row, limit: int) -> str:
    return _row(words, _macs(row, "packet"), str(limit), f"{float(row['macs_per_packet']) / limit:.0%}")


def _all_beside_halide(rows: list[Row]) -> str:
    ratios = [float(row["macs_per_slot"]) / float(row["halide_macs_per_slot"]) for row in rows]
    behind = sum(ratio < 1 for ratio in ratios)
    told = f"{min(ratios):.2f} to {max(ratios):.2f} times the MACs per issue slot; {behind} of {len(ratios)} behind"
    return _row("HVX kernels beside the best schedules of Halide", told, "[below](#hvx-kernels-beside-halide)")


def _best_bold(cells: list[str], best: int) -> list[str]:
    """Return the cells with the best of them in bold.

    >>> _best_bold(["1", "2"], best=1)
    ['1', '**2**']
    """
    return [f"**{cell}**" if at == best else cell for at, cell in enumerate(cells)]


def _simulated(case: str, row: Row) -> str:
    vtcm = row["vtcm_bytes"] if row["vtcm_bytes"] != "0" else ""
    return _row(f"`{case}`", row["packets"], row["macs_per_packet"], vtcm)


def _whole(words: str, network: str) -> str:
    """A network: its convs, those taken, those in chains of two or more, and its packets by channel and by tensor."""
    forms = {row["form"]: row for row in _read("networks.csv") if row["network"] == network}
    channel, tensor = forms["u8s8-channel"], forms["u8s8-tensor"]
    convs = (channel[name] for name in ("convs", "taken", "chained"))
    least = int(int(tensor["packets"]) < int(channel["packets"]))
    of_channel, of_tensor = _best_bold([channel["packets"], tensor["packets"]], best=least)
    macs = _macs(channel, "packet")
    return _row(words, *convs, of_channel, macs, f"{float(macs) / MACS_OF_TWO_VRMPY:.0%}", of_tensor)


def _whole_of_int16(words: str) -> str:
    """A network with activations of int16 and one scale a tensor: its packets, and needed MACs per packet."""
    named = {(row["network"], row["form"]): row for row in _read("networks.csv")}
    row = named[WHOLE[words], "s16s8-tensor"]
    return _row(f"{words}, int16 x int8", row["packets"], _macs(row, "packet"))


def _of_engine(row: Row) -> str:
    """A case of the matrix engine: its packets by kind, how far it is from exact, and the packets of a thread."""
    did = (row["engine_multiplies"], row["engine_taps"], f"{float(row['useful_share']):.1%}", row["engine_stores"])
    exact = row["requantisation"] == "exact"
    apart = "" if exact else f"{float(row['from_exact']):.1%}, {row['most_from_exact']} at most"
    return _row(f"`{row['case']}`{'' if exact else ', fast'}", *did, apart, *(row[name] for name in LEFT_BY_ENGINE))


def _wild(rows: list[Row]) -> str:
    """A network of other people: its convs, where they run, the bytes and packets of a call, and its verdicts."""
    by_target = {row["target"]: row for row in rows}
    row = by_target.get("hexagon", rows[0])
    convs = (row[name] for name in ("convs", "taken", "chains", "operators"))
    saved = 1 - int(row["after_bytes"]) / int(row["before_bytes"])
    moved = (row["before_bytes"], f"{row['after_bytes']} ({saved:.0%} less)", f"{float(row['outside_share']):.0%}")
    packets = (row[name] for name in ("chains_packets", "operators_packets", "critical_packets"))
    answers = (by_target[target]["answer"] if target in by_target else "" for target in ("llvm", "hexagon"))
    differ = str(sum(int(row["differing"]) + int(row["library_differing"]) for row in rows))
    return _row(f"`{row['network']}`", *convs, *moved, *packets, differ, _macs(row, "packet"), *answers)


def _bytes_of(network: str, rows: list[Row]) -> str:
    """A network in codes: the bytes that it needs, and those that it moves by MiB of VTCM, beside QNN's planner."""
    by_limit = []
    for row in rows:
        v73, v75 = row["qnn_v73_bytes"], row["qnn_v75_bytes"]
        stated = (f"<br>QNN {v73}" if v73 else "") + (f"<br>on v75 {v75}" if v75 != v73 else "")
        by_limit.append(row["moved_bytes"] + stated)
    return _row(f"`{network}` in codes", rows[0]["needed_bytes"], *by_limit)


def _program(row: Row) -> str:
    """A network of the bench, on the simulator: its steps, and the packets and memory of a call."""
    name = f"{row['network']}, {row['form']}, {row['threads']} thread{'s' if row['threads'] != '1' else ''}"
    steps = (row[column] for column in ("chains", "operators"))
    packets = [int(row[column]) for column in ("chains_packets", "operators_packets", "critical_packets")]
    error = f"{int(row['predicted_packets']) / int(row['packets']) - 1:+.1%}"
    memory = (row[column] for column in ("after_bytes", "vtcm_bytes", "arena_bytes"))
    differ = int(row["differing"]) + int(row["library_differing"])
    return _row(name, *steps, *map(str, packets), error, *memory, str(differ))


def _program_on_engine(row: Row) -> str:
    """A network of the bench on the matrix engine: what the engine does of it, and what is left to threads of HVX."""
    name = f"{row['network']}, {row['form']}, {row['kernel'].partition('-')[2]}"
    useful = f"{float(row['engine_useful_share']):.1%}" if row["engine_useful_share"] else ""
    counts = (row[column] for column in ("packets", "critical_packets", "after_bytes"))
    differ = int(row["differing"]) + int(row["library_differing"])
    return _row(name, f"{float(row['engine_macs_share']):.1%}", useful, *counts, str(differ))


if __name__ == "__main__":
    for page, rows in quoted().items():
        page.write_text(with_rows(page.read_text(), rows))
