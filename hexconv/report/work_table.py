"""Show traffic and MACs as a table."""

from rich.table import Table

from hexconv.analyze import WorkUsage
from hexconv.report.headed import cell, headed


def work_table(case: str, work: WorkUsage) -> Table:
    """Return the table: needed, predicted and counted bytes of tensors and MACs of convs, and counted over needed."""
    verdict = "agrees" if work.agrees else "does NOT agree"
    title = f"{case}: {verdict}; bytes between memory and caches, and multiply-accumulates"
    table = headed(title, ("agrees", "what"), ("needed", "predicted", "counted", "times needed"))
    for tensor in work.traffic:
        _add(table, f"{tensor.name} {tensor.direction}", tensor.needed_bytes, tensor.predicted_bytes, tensor.bytes)
    for tensor in work.traffic:
        if tensor.predicted_copies_in_flight or tensor.copies_in_flight:
            in_flight = (tensor.predicted_copies_in_flight, tensor.copies_in_flight)
            _add(table, f"{tensor.name} copies in flight", None, *in_flight)
    traffic = sum(tensor.predicted_bytes for tensor in work.traffic)
    _add(table, "traffic", work.needed_traffic_bytes, traffic, work.traffic_bytes)
    for conv in work.convs:
        _add(table, f"{conv.name} MACs", conv.needed_macs, conv.predicted_macs, conv.macs)
    _add(table, "MACs", work.needed_macs, sum(conv.predicted_macs for conv in work.convs), work.macs)
    return table


def _add(table: Table, what: str, needed: int | None, predicted: int, counted: int) -> None:
    """Add one row."""
    times = f"{counted / needed:.2f}" if needed else ""
    same = "yes" if predicted == counted else "NO"
    table.add_row(same, what, cell(needed), str(predicted), str(counted), times)
