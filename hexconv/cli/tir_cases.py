"""What `hexconv tir` does: it lowers every case, annotates the TIR, and writes it."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hexconv.analyze import cache_usage
from hexconv.cli.cases import Batch, print_json, write_text
from hexconv.lower import annotated_tir, lower_case
from hexconv.report.digest import SUFFIX, digest_of
from hexconv.spec import Case, Target
from hexconv.spec.kernel import kernel_words
from hexconv.written import whole_folder


def tir_cases(paths: Sequence[Path], target: Target, output: Path | None, digest: bool, json: bool) -> int:
    """Write the TIR of cases; returns 0 if all are as the closed form predicts, 1 if not, 2 if one was refused."""
    batch, written = Batch.of(paths, target), []
    batch.say_fallbacks()
    with whole_folder(output) if output else nullcontext() as made:
        folders = {case.name: (made or path.parent, output or path.parent) for path, case in batch.sources}
        for _, entry in batch.each("lowering", lambda case: _written(case, *folders[case.name], digest)):
            written.append(entry)
    if json and written:
        print_json(written)
    for entry in written if not json else ():
        print(f"{entry['file']} (kernel {kernel_words(entry['kernels'])})")
    return batch.code(all(entry["agrees"] for entry in written))


def _written(case: Case, place: Path, folder: Path, digest: bool) -> dict[str, Any]:
    """Lower one case, and write its TIR into `place`, which becomes `folder`, whole or as a digest."""
    lowered = lower_case(case)
    usage, name = cache_usage(case, lowered), f"{case.name}.tir"
    text = annotated_tir(case, lowered, usage.verdict)
    if digest:
        text, name = digest_of(name, text), f"{name}{SUFFIX}"
    write_text(place / name, text)
    return {"case": case.name, "file": str(folder / name), "kernels": case.kernels, "agrees": usage.agrees}
