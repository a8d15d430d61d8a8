"""Tables on the terminal, at their natural width: a cell that is cut off says nothing."""

from rich.console import Console
from rich.table import Table

WIDER_THAN_ANY_TABLE = 1000


def show(table: Table) -> None:
    """Print a table; a terminal that is too narrow wraps its lines."""
    Console(width=WIDER_THAN_ANY_TABLE).print(table)
