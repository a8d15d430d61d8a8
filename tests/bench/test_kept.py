"""Tables of networks that grow, a network and a form at a time."""

from dataclasses import dataclass
from pathlib import Path

from reports.kept import keep


@dataclass(frozen=True)
class Row:
    network: str
    form: str
    packets: int | None


def test_rows_take_the_place_of_those_before(tmp_path: Path) -> None:
    table = tmp_path / "made" / "table.csv"
    keep(table, [Row("b", "tensor", 1), Row("b", "tensor", 2)])
    keep(table, [Row("b", "channel", None)])
    keep(table, [Row("a", "tensor", 3)])
    keep(table, [Row("b", "tensor", 4)])
    assert table.read_text().splitlines() == ["network,form,packets", "a,tensor,3", "b,channel,", "b,tensor,4"]
