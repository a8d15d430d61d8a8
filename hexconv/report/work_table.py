"""Traffic and MACs as a table to read."""

from collections.abc import Sequence

from rich.table import Table

from hexconv.analyze import Usage, WorkUsage


def work_table(judged: Sequence[tuple[Usage, WorkUsage]]) -> Table:
    """Needed, predicted and counted bytes of every tensor and MACs of every conv, and how often the needed are done."""
    table = Table(title="traffic, in bytes between memory and caches, and multiply-accumulates")
    for heading in ("case", "what"):
        table.add_column(heading)
    for heading in ("needed", "predicted", "counted", "counted / needed"):
        table.add_column(heading, justify="right")
    table.add_column("agrees")
    for usage, work in judged:
        for tensor in work.traffic:
            what = f"{tensor.name} {tensor.direction}"
            _add(table, usage.case, what, tensor.needed_bytes, tensor.predicted_bytes, tensor.bytes)
        for tensor in work.traffic:
            if tensor.predicted_copies_in_flight or tensor.copies_in_flight:
                in_flight = (tensor.predicted_copies_in_flight, tensor.copies_in_flight)
                _add(table, usage.case, f"{tensor.name} copies in flight", None, *in_flight)
        traffic = sum(tensor.predicted_bytes for tensor in work.traffic)
        _add(table, usage.case, "traffic", work.needed_traffic_bytes, traffic, work.traffic_bytes)
        for conv in work.convs:
            _add(table, usage.case, f"{conv.name} MACs", conv.needed_macs, conv.predicted_macs, conv.macs)
        _add(table, usage.case, "MACs", work.needed_macs, sum(conv.predicted_macs for conv in work.convs), work.macs)
        table.add_section()
    return table


def _add(table: Table, case: str, what: str, needed: int | None, predicted: int, counted: int) -> None:
    """One row."""
    times = f"{counted / needed:.2f}" if needed else ""
    least, same = str(needed) if needed is not None else "", "yes" if predicted == counted else "NO"
    table.add_row(case, what, least, str(predicted), str(counted), times, same)
