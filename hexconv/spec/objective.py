"""The objectives of a search: what the best plan has least of."""

from typing import Literal

Objective = Literal["traffic", "latency", "footprint"]
