"""What the page about data types says of the simulator and of LLVM is what is measured."""

import re
from pathlib import Path

import pytest

import hexconv
from hexconv.spec.kernel_choice import unstated
from reports import isa
from reports.isa import FORMS

PAGE = (Path(hexconv.__file__).parent / "docs" / "reference" / "dtypes.md").read_text()

pytestmark = pytest.mark.simulator


def quoted(row: isa.Row) -> bool:
    return re.search(r"\s+".join(re.escape(str(value)) for value in row.values()), PAGE) is not None


def test_hvx_floats_come_with_v68_and_the_simulator_runs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "isas", lambda: ("v73", "v68", "v67"))
    rows = isa.sets()
    assert [row["isa"] for row in rows] == ["v67", "v68", "v73"]
    assert [row["hvx_float_instructions"] > 0 for row in rows] == [False, True, True]
    assert all(map(quoted, rows)), rows


@pytest.mark.parametrize("instruction", ["vrmpyub.acc", "vdmpyhb.acc", "vdmpyhsat.acc"])
def test_the_page_has_the_density_of_a_form(instruction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "FORMS", [form for form in FORMS if form.instruction == instruction])
    assert all(map(quoted, isa.forms())), isa.forms()


def test_the_page_has_the_figure_of_int16() -> None:
    chain = isa._chain(("int16", "int8"))
    row = isa._of_chain(chain, unstated(chain, "hvx"))
    assert quoted(row), row
