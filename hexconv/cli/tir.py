"""`hexconv tir`: lowers cases, annotates their TIR, and writes it; or writes them as linalg."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from hexconv.cli.options import check_folder
from hexconv.cli.progress import starting
from hexconv.errors import InputError
from hexconv.spec.choices import Target

if TYPE_CHECKING:
    from hexconv.spec import Case


def tir(
    *cases: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    target: Target = "hexagon",
    form: Annotated[Literal["tir", "mlir"], Parameter(name="--format")] = "tir",
    digest: bool = False,
    json: bool = False,
) -> int:
    """Lower cases and write each one's annotated TIR as NAME.tir, or its linalg as NAME.mlir.

    It exits with 1 if the prediction, TVM or a figure that the case documents differ anywhere, and with 2 if a case
    can't be lowered; the others are written all the same.

    Args:
        cases: name case files (TOML), folders of them, or patterns.
        target: choose kernels for Hexagon, or for this machine (llvm).
        form: write TIR, or the chain as linalg on packed tensors, for other compilers (mlir): kernels are then theirs,
            and nothing is lowered.
        digest: write NAME.tir.sha256 in place of NAME.tir: its SHA-256 sum and, in comments, caches, loops and copies.
        output: write the files into this folder; the default is beside each case file.
        json: print JSON instead.
    """
    with starting():
        from hexconv.cli.answers import print_json, utf8, write_text
        from hexconv.cli.cases import Batch
        from hexconv.written import write_folder

    check_folder("--output", output)
    if form == "mlir" and digest:
        raise InputError.because("--digest is of a listing of TIR", "leave it out with --format mlir")
    batch, written, contents = Batch.of(cases, target), list[dict[str, Any]](), dict[str, bytes]()
    if form == "tir":
        batch.say_fallbacks()
    folders = {case.name: path.parent for path, case in batch.sources}
    for case, (name, text, agrees) in batch.each("lowering", partial(_listed, digest) if form == "tir" else _said):
        path = (output or folders[case.name]) / name
        if output:
            contents[name] = utf8(text)
        else:
            write_text(path, text)
        found = {} if agrees is None else {"agrees": agrees}
        written.append({"case": case.name, "file": str(path), "kernels": case.kernels, **found})
    if output:
        write_folder(output, contents)
    if json and written:
        print_json(written)
    elif not json:
        print(*(entry["file"] + _kernels_said(entry) for entry in written), sep="\n", end="\n" if written else "")
    return batch.code(all(entry.get("agrees", True) for entry in written))


def _listed(digest: bool, case: Case) -> tuple[str, str, bool]:
    """Return the name and the text of a case's listing, or of its digest, and whether all sizes in it agree."""
    from hexconv.checked import check
    from hexconv.lower import annotated_tir
    from hexconv.report.listing import SUFFIX, digest_of

    checked, name = check(case), f"{case.name}.tir"
    text = annotated_tir(case, checked.lowered, checked.usage.verdict)
    if digest:
        text, name = digest_of(name, text), f"{name}{SUFFIX}"
    return name, text, checked.usage.agrees


def _said(case: Case) -> tuple[str, str, None]:
    """Return the name and the text of a case as linalg; there are no sizes that agree."""
    from hexconv.mlir.linalg_chain import linalg_text

    return f"{case.name}.mlir", linalg_text(case), None


def _kernels_said(entry: dict[str, Any]) -> str:
    """Say which kernels a listing has; linalg has none."""
    from hexconv.spec.kernel_choice import kernel_words

    return f" (kernel {kernel_words(entry['kernels'])})" if "agrees" in entry else ""
