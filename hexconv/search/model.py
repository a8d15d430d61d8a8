"""One part of a plan space as a CP-SAT model: which h_split, which k_split, and tables over both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hexconv.errors import Unsupported
from hexconv.search.grid import Figures
from hexconv.search.question import Question
from hexconv.search.tables import Product, Tables

SOLVER_LARGEST = 2**58


@dataclass
class PartModel:
    """A model that is asked again and again, each time with less left.

    Attributes:
        tables: what it knows.
        question: limit and objective.
        model: of OR-tools.
        h: index of h_split, a variable.
        k: index of k_split, a variable.
        least: what is made least.
        closed: whether it is certain that nothing better is left.
    """

    tables: Tables
    question: Question
    model: Any
    h: Any
    k: Any
    least: Any
    closed: bool = False

    @classmethod
    def of(cls, tables: Tables, question: Question) -> "PartModel":
        """The whole part, nothing proposed yet.

        Raises:
            Unsupported: its figures don't fit the solver's 64 bits.
        """
        from ortools.sat.python import cp_model  # half a second that only spaces this large have to wait for

        most = _checked([product for one in (*tables.objective, *tables.together) for product in one])
        model = cp_model.CpModel()
        h, k = model.new_int_var(0, tables.h_count - 1, "h"), model.new_int_var(0, tables.k_count - 1, "k")
        bounds = [_sum(model, h, k, caches) for caches in tables.together]
        for bound in bounds:
            model.add(bound <= min(question.vtcm_bytes, most))
        least = model.new_int_var(0, most, "least")
        is_footprint = question.objective == "footprint"
        for value in bounds if is_footprint else [_sum(model, h, k, products) for products in tables.objective]:
            model.add(least >= value)
        model.minimize(least)
        return cls(tables, question, model, h, k, least)

    def propose(self, known: Figures | None, seconds: float) -> tuple[int, int] | None:
        """Indices of the splits of a plan that may be better than `known`; None where there is none, or no time."""
        from ortools.sat.python import cp_model

        if seconds <= 0:
            return None
        if known:
            self.model.add(self.least <= self.tables.value(known, self.question.objective) - 1)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 1  # the same answer every time
        status = solver.solve(self.model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return solver.value(self.h), solver.value(self.k)
        self.closed = status == cp_model.INFEASIBLE
        return None

    def without(self, h: int | None, k: int | None) -> None:
        """Leave out the plans of one h_split, or of one k_split."""
        if h is not None:
            self.model.add(self.h != h)
        if k is not None:
            self.model.add(self.k != k)


def _sum(model: Any, h: Any, k: Any, products: Sequence[Product]) -> Any:
    """The sum of products as an expression of a model."""
    return sum(_product(model, h, k, product) for product in products)


def _product(model: Any, h: Any, k: Any, product: Product) -> Any:
    """A table over h times a table over k."""
    by_h, by_k = _looked_up(model, h, product.over_h), _looked_up(model, k, product.over_k)
    if isinstance(by_h, int) or isinstance(by_k, int):
        return by_h * by_k
    value = model.new_int_var(0, int(product.over_h.max()) * int(product.over_k.max()), "")
    model.add_multiplication_equality(value, [by_h, by_k])
    return value


def _looked_up(model: Any, index: Any, table: np.ndarray) -> Any:
    """An entry of a table; a number where all are the same."""
    low, high = int(table.min()), int(table.max())
    if low == high:
        return low
    value = model.new_int_var(low, high, "")
    model.add_element(index, table.tolist(), value)
    return value


def _checked(products: Sequence[Product]) -> int:
    """A number that no sum is above; it fits 64 bits with room for the solver's own arithmetic."""
    most = sum(int(product.over_h.max()) * int(product.over_k.max()) for product in products)
    if most >= SOLVER_LARGEST:
        raise Unsupported(f"a plan space with figures up to {most} is too large for CP-SAT; make the chain smaller")
    return most
