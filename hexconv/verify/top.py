"""Whether two outputs rank the same classes first."""

import numpy as np

from hexconv.verify.runtime import Array

TOP, CLASSES_AT_LEAST = 5, 10


def top_same(one: Array, other: Array) -> bool | None:
    """Whether the largest values of each row belong to the same classes; None where there are no rows of classes."""
    if one.ndim != 2 or one.shape[1] < CLASSES_AT_LEAST:
        return None
    ranks = [np.argsort(-scores, axis=1, kind="stable")[:, :TOP] for scores in (one, other)]
    return bool(np.array_equal(ranks[0], ranks[1]))
