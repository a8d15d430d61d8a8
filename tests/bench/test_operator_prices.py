"""The prices of operators are those that the committed table gives, and tell an error that is theirs."""

import numpy as np

from hexconv.network.call_costs import operator_prices
from reports.operator_prices import PRICES, apart, measured, written


def test_the_prices_are_fitted_to_the_committed_table() -> None:
    assert PRICES.read_text(encoding="utf-8") == written(measured()), "python -m reports.operator_prices"


def test_most_rows_lie_within_the_error_that_is_told() -> None:
    """Of kinds that have several rows, each by prices that are fitted to the others."""
    prices, errors = operator_prices(), []
    for kind, runs in measured().items():
        if " " in kind and len(runs) > 1:
            errors += apart(runs, tuple(prices.kinds[kind]))
    assert np.quantile(errors, 0.9) <= prices.error + 0.05
