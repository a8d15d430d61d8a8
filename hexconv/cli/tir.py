"""`hexconv tir`: lowers cases, annotates their TIR, and writes it."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import check_folder
from hexconv.cli.progress import starting
from hexconv.spec.choices import Target


def tir(
    *cases: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    target: Target = "hexagon",
    digest: bool = False,
    json: bool = False,
) -> int:
    """Lower cases and write each one's annotated TIR as NAME.tir.

    It exits with 1 if the prediction, TVM or a figure that the case documents differ anywhere, and with 2 if a case
    can't be lowered; the others are written all the same.

    Args:
        cases: name case files (TOML), folders of them, or patterns.
        target: choose kernels for Hexagon, or for this machine (llvm).
        digest: write NAME.tir.sha256 in place of NAME.tir: its SHA-256 sum and, in comments, caches, loops and copies.
        output: write the files into this folder; the default is beside each case file.
        json: print JSON instead.
    """
    with starting():
        from hexconv.checked import check
        from hexconv.cli.answers import print_json, utf8, write_text
        from hexconv.cli.cases import Batch
        from hexconv.lower import annotated_tir
        from hexconv.report.listing import SUFFIX, digest_of
        from hexconv.spec import Case
        from hexconv.spec.kernel_choice import kernel_words
        from hexconv.written import write_folder

    def listed(case: Case) -> tuple[str, str, bool]:
        checked, name = check(case), f"{case.name}.tir"
        text = annotated_tir(case, checked.lowered, checked.usage.verdict)
        if digest:
            text, name = digest_of(name, text), f"{name}{SUFFIX}"
        return name, text, checked.usage.agrees

    check_folder("--output", output)
    batch, written, contents = Batch.of(cases, target), [], dict[str, bytes]()
    batch.say_fallbacks()
    folders = {case.name: path.parent for path, case in batch.sources}
    for case, (name, text, agrees) in batch.each("lowering", listed):
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
