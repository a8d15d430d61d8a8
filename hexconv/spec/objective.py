"""What the best plan has least of."""

from typing import Literal

Objective = Literal["traffic", "latency", "footprint"]
