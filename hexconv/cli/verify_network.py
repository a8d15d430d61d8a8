"""What `hexconv verify` does: it verifies a network, shows a bar meanwhile, and prints the verdict."""

from pathlib import Path

from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

from hexconv.cli.answers import print_json
from hexconv.cli.progress import bar
from hexconv.cli.show import show
from hexconv.report import network_verdict_lines, network_verdict_row, network_verdict_table
from hexconv.verify import EXIT_CODES, Asked, verify_network

SPARE = ("kernel", "pieces", "elements", "convs")


def verify_and_show(model: Path, asked: Asked, is_wide: bool, json: bool) -> int:
    """Verify a network; returns 0 if nothing differs, 1 if anything does, 2 if nothing could be compared."""
    columns = (SpinnerColumn(), BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}"))
    with bar(*columns) as progress:
        task = progress.add_task(escape(f"reading {model.name}"), total=None)

        def done(name: str, so_far: int, of: int) -> None:
            progress.update(task, description=escape(name), completed=so_far, total=of)

        verdict = verify_network(model, asked, done)
    if json:
        print_json(network_verdict_row(verdict))
    else:
        if verdict.chains:
            show(network_verdict_table(verdict), is_wide, SPARE)
        for line in network_verdict_lines(verdict):
            print(line)
    return EXIT_CODES[verdict.answer]
