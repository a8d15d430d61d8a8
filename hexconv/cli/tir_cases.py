"""What `hexconv tir` does: it lowers every case, annotates the TIR, and writes it."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hexconv.analyze import cache_usage
from hexconv.cli.cases import Batch, print_json, write_text
from hexconv.lower import annotated_tir, lower_case
from hexconv.report.digest import SUFFIX, digest_of
from hexconv.spec import Case, Target
from hexconv.spec.kernel import kernel_words


def tir_cases(paths: Sequence[Path], target: Target, output: Path | None, digest: bool, json: bool) -> int:
    """Write the TIR of cases; returns 0 if all are as the closed form predicts, 1 if not, 2 if one was refused."""
    batch, written = Batch.of(paths, target), []
    batch.say_fallbacks()
    folders = {case.name: output or path.parent for path, case in batch.sources}
    for case, entry in batch.each("lowering", lambda case: _written(case, folders[case.name], digest)):
        written.append(entry)
        if not json:
            print(f"{entry['file']} (kernel {kernel_words(case.kernels)})")
    if json and written:
        print_json(written)
    return batch.code(all(entry["agrees"] for entry in written))


def _written(case: Case, folder: Path, digest: bool) -> dict[str, Any]:
    """Lower one case, and write its TIR whole or as a digest."""
    lowered = lower_case(case)
    usage, listing = cache_usage(case, lowered), folder / f"{case.name}.tir"
    text = annotated_tir(case, lowered, usage.verdict)
    if digest:
        text, listing = digest_of(listing.name, text), folder / f"{listing.name}{SUFFIX}"
    write_text(listing, text)
    kernels = [asdict(choice) for choice in case.kernels]
    return {"case": case.name, "file": str(listing), "kernels": kernels, "agrees": usage.agrees}
