"""Figures that the README repeats are those of the committed tables."""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_repeats_the_simulators_figures() -> None:
    with (ROOT / "reports" / "simulator.csv").open() as table:
        rows = {row["case"]: row for row in csv.DictReader(table)}
    said = re.findall(r"^\| `([\w-]+)` \| (\d{7,}) \| ([\d.]+) \| (\d*) ?\|$", (ROOT / "README.md").read_text(), re.M)
    assert said
    for case, packets, macs_per_packet, vtcm_bytes in said:
        row = rows[case]
        assert (packets, macs_per_packet, vtcm_bytes or "0") == (
            row["packets"],
            row["macs_per_packet"],
            row["vtcm_bytes"],
        )
