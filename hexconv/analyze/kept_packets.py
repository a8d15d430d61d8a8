"""How many parts (`hexconv.analyze.nest_packets`) it takes to keep columns of a tensor for the next strip."""

from hexconv.analyze.packet_parts import UNROLLED, Parts
from hexconv.analyze.rows import PlannedRows
from hexconv.kernel.hvx.tiles import VECTOR_BYTES
from hexconv.kernel.kept import kept_runs_of


def on_kept(planned: PlannedRows, tensor: int) -> Parts:
    """Count the parts of a row of a tensor: all strips but the first restore its runs, all but the last save them."""
    strips, parts = planned.strips, Parts()
    if not strips or not (runs := kept_runs_of(strips, planned.forms, tensor)):
        return parts
    element_bytes = planned.source_bytes if tensor == 0 else 1  # bytes of an intermediate lie apart
    lanes = runs.lanes(element_bytes)
    copies = runs.run_elements // lanes
    how = "filter" if lanes * element_bytes == VECTOR_BYTES else "unit" if copies <= UNROLLED else "rolled"
    parts.add({"line": 1, how: copies}, 2 * runs.count * (strips.count - 1) / strips.count)
    return parts
