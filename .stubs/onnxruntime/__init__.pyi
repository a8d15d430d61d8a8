from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

__version__: str

class GraphOptimizationLevel(Enum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_ALL = 99

class SessionOptions:
    graph_optimization_level: GraphOptimizationLevel
    optimized_model_filepath: str
    log_severity_level: int
    intra_op_num_threads: int

class InferenceSession:
    def __init__(self, path_or_bytes: str | bytes, sess_options: SessionOptions, providers: Sequence[str]) -> None: ...
    def run(
        self, output_names: Sequence[str], input_feed: Mapping[str, np.ndarray[Any, np.dtype[Any]]]
    ) -> list[np.ndarray[Any, np.dtype[Any]]]: ...
