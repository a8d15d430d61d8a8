"""The names that plans and commands choose from, apart from all rules: `--help` needs no more than these."""

from typing import Literal

Kernel = Literal["plain", "hvx", "host"]
Target = Literal["llvm", "hexagon"]
Nest = Literal["blocks", "rows", "bands"]
"""Of slabs of 8 rows, as the documents have it; of rows; of bands of rows, one a thread."""
