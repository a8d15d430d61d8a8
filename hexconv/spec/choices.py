"""The names that plans and commands choose from, apart from all rules, so that `--help` imports no models."""

from typing import Literal

Kernel = Literal["plain", "hvx", "hmx"]
Target = Literal["llvm", "hexagon"]
Project = Literal["fastrpc"]
Engine = Literal["exact", "fast"]
"""What `build` writes around a library: a host program and the DSP's side of it."""
RunTarget = Literal["llvm", "hexagon", "mlir"]
"""Where a case runs: `mlir` is this machine, through the chain's linalg."""
PaddingRows = Literal["read", "slabs"]
"""How many rows of padding are stored above an intermediate: those that are read, or whole slabs of 8."""
Nest = Literal["blocks", "rows"]
"""The loops of a chain: over slabs of 8 rows, as in the documents, or over rows."""


Objective = Literal["time", "traffic", "latency", "footprint"]
DEFAULT_OBJECTIVE: Objective = "time"
"""What commands that plan make least, where nothing else is asked for."""
