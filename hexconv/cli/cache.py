"""`hexconv cache`: compares the closed form with TVM's allocations, and with the traffic and MACs that are counted."""

from pathlib import Path

from hexconv.cli.options import check_file
from hexconv.cli.progress import starting
from hexconv.spec.choices import Target


def cache(
    *cases: Path, target: Target = "hexagon", csv: Path | None = None, wide: bool = False, json: bool = False
) -> int:
    """Show what caches take, tensors move and convs compute: as formulas predict it, and as TVM has it.

    It exits with 1 if the prediction, TVM or a figure that the case documents differ anywhere, and with 2 if a case
    can't be used; the others are shown all the same.

    Args:
        cases: name case files (TOML), folders of them, or patterns.
        target: choose kernels for Hexagon, or for this machine (llvm).
        csv: also write the table into this file.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    with starting():
        from hexconv.analyze import WorkUsage, conv_forms
        from hexconv.checked import Checked, check
        from hexconv.cli.answers import print_json, show, write_text
        from hexconv.cli.cases import Batch
        from hexconv.report import cache_csv, cache_row, cache_table, form_table, work_table
        from hexconv.spec import Case
        from hexconv.spec.kernel_choice import kernel_words

    def counted(case: Case) -> tuple[Checked, WorkUsage]:
        checked = check(case)
        return checked, checked.work

    check_file("--csv", csv)
    batch = Batch.of(cases, target)
    batch.say_fallbacks()
    done = list(batch.each("counting", counted))
    if csv and done:
        write_text(csv, cache_csv([checked for _, (checked, _) in done]))
    if json and done:
        print_json([cache_row(checked) for _, (checked, _) in done])
    for place, (case, (checked, work)) in enumerate(done if not json else ()):
        print(end="\n" if place else "")
        show(cache_table(checked.usage), wide, ("shape or caches held", "kind"))
        print(f"kernel {kernel_words(case.kernels)}")
        print()
        show(work_table(case.name, work), wide)
        if wide:
            show(form_table(case.name, conv_forms(case)), wide)
    return batch.code(all(checked.agrees for _, (checked, _) in done))
