"""What `hexconv tir` does: it lowers every case, annotates the TIR, and writes it."""

from collections.abc import Sequence
from pathlib import Path

from hexconv.analyze import cache_usage
from hexconv.cli.answers import print_json, utf8, write_text
from hexconv.cli.cases import Batch
from hexconv.lower import annotated_tir, lower_case
from hexconv.report.listing import SUFFIX, digest_of
from hexconv.spec import Case, Target
from hexconv.spec.kernel_choice import kernel_words
from hexconv.written import write_folder


def tir_cases(paths: Sequence[Path], target: Target, output: Path | None, digest: bool, json: bool) -> int:
    """Write the TIR of cases; returns 0 if all are as the closed form predicts, 1 if not, 2 if one was refused."""
    batch, written = Batch.of(paths, target), []
    batch.say_fallbacks()
    folders, contents = {case.name: path.parent for path, case in batch.sources}, dict[str, bytes]()
    for case, (name, text, agrees) in batch.each("lowering", lambda case: _listing(case, digest)):
        path = (output or folders[case.name]) / name
        if output:
            contents[name] = utf8(text)
        else:
            write_text(path, text)
        written.append({"case": case.name, "file": str(path), "kernels": case.kernels, "agrees": agrees})
    if output:
        write_folder(output, contents)
    if json and written:
        print_json(written)
    for entry in written if not json else ():
        print(f"{entry['file']} (kernel {kernel_words(entry['kernels'])})")
    return batch.code(all(entry["agrees"] for entry in written))


def _listing(case: Case, digest: bool) -> tuple[str, str, bool]:
    """Lower one case; return the name of its file, its TIR whole or as a digest, and whether sizes are as predicted."""
    lowered = lower_case(case)
    usage, name = cache_usage(case, lowered), f"{case.name}.tir"
    text = annotated_tir(case, lowered, usage.verdict)
    if digest:
        text, name = digest_of(name, text), f"{name}{SUFFIX}"
    return name, text, usage.agrees
