"""What `hexconv tir` does: every case lowered, annotated and written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hexconv.analyze import cache_usage
from hexconv.cli.cases import Batch, print_json, write_text
from hexconv.lower import annotated_tir, lower_case
from hexconv.spec import Case


def tir_cases(paths: Sequence[Path], output: Path | None, json: bool) -> int:
    """Write the TIR of cases; returns 0 if all are as the closed form predicts, 1 if not, 2 if one was refused."""
    batch, written = Batch.of(paths, "hexagon"), []
    folders = {case.name: output or path.parent for path, case in batch.sources}
    for _, entry in batch.each("lowering", lambda case: _written(case, folders[case.name])):
        written.append(entry)
        if not json:
            print(entry["file"])
    if json and written:
        print_json(written)
    return batch.code(all(entry["agrees"] for entry in written))


def _written(case: Case, folder: Path) -> dict[str, Any]:
    """One case, lowered and written."""
    lowered = lower_case(case)
    agrees = cache_usage(case, lowered).agrees
    agreement = "as the closed form predicts" if agrees else "NOT as the closed form predicts"
    target = folder / f"{case.name}.tir"
    write_text(target, annotated_tir(case, lowered, agreement))
    return {"case": case.name, "file": str(target), "agrees": agrees}
