"""What CP-SAT is told of one part of a plan space: sums of a table over h_split times a table over k_split."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import gcd

import numpy as np

from hexconv.search.exact import Integers
from hexconv.search.grid import Figures
from hexconv.search.machine import Rates
from hexconv.search.objective import Objective
from hexconv.search.question import Question
from hexconv.search.sizes import cache_grids
from hexconv.search.space import Space
from hexconv.search.steps import tensors_made
from hexconv.search.stripes import stripes
from hexconv.search.work import step_times, work_terms
from hexconv.spec import Chain


@dataclass(frozen=True)
class Product:
    """`over_h[h] * over_k[k]`, whole numbers of any size."""

    over_h: Integers
    over_k: Integers


@dataclass(frozen=True)
class Tables:
    """All that the solver knows of one part.

    Attributes:
        h_count: values of h_split.
        k_count: values of k_split.
        weights: of a byte of traffic and of a MAC in the objective: whole numbers in the ratio of their packets.
        objective: traffic, or latency in these units: sums, of which the largest counts.
        together: of each conv, the bytes of caches that its sums touch. They are live together, so that none of these
            sums is above the footprint.
    """

    h_count: int
    k_count: int
    weights: tuple[int, int]
    objective: tuple[tuple[Product, ...], ...]
    together: tuple[tuple[Product, ...], ...]

    def value(self, figures: Figures, objective: Objective) -> int:
        """What is made least, of a plan that is known."""
        if objective == "footprint":
            return figures.footprint_bytes
        copy, compute = self.weights[0] * figures.traffic_bytes, self.weights[1] * figures.macs
        return max(copy, compute) if figures.plan.buffering == "double" else copy + compute


def part_tables(chain: Chain, part: Space, question: Question, machine: Rates) -> Tables:
    """The tables of plans of the same words, and of the same convs with more than one row step."""
    weights = _weights(chain, question, machine)
    return Tables(
        h_count=len(part.h_splits),
        k_count=len(part.k_splits),
        weights=weights,
        objective=tuple(tuple(_sum(chain, part, weighted)) for weighted in _summed(part, weights)),
        together=tuple(_together(chain, part)),
    )


def _weights(chain: Chain, question: Question, machine: Rates) -> tuple[int, int]:
    """Of bytes and MACs: 1 and 0 for the traffic; for the latency the inverses of both rates, times both numerators."""
    if question.objective != "latency":
        return 1, 0
    rate = machine.plain(chain.dtype)
    macs, copied = Fraction(str(rate.macs_per_packet)), Fraction(str(rate.copied_bytes_per_packet))
    return macs.numerator * copied.denominator, copied.numerator * macs.denominator


def _summed(part: Space, weights: tuple[int, int]) -> list[tuple[int, int]]:
    """Copies and MACs one after the other are one sum; side by side they are two, of which the larger counts."""
    copy, compute = weights
    return [(copy, 0), (0, compute)] if part.words[0].buffering == "double" else [weights]


def _sum(chain: Chain, part: Space, weights: tuple[int, int]) -> list[Product]:
    """The weighted sum of traffic and MACs; within a part steps repeat alike, whatever h_split is."""
    rows, first = stripes(chain, part), Space(part.words, part.h_splits[:1], part.k_splits)
    traffic, macs = work_terms(chain, part, rows, tensors_made(chain, rows), object)
    times = [one[0, 0] for one in step_times(first, stripes(chain, first), object)]
    once = [weights[0] * a[0, :, 0] + weights[1] * b[0, :, 0] for a, b in zip(traffic.once, macs.once, strict=True)]
    pairs = [(tuple(np.broadcast_to(by_k, len(part.k_splits))), by_h) for by_k, by_h in zip(times, once, strict=True)]
    constant = weights[0] * int(traffic.constant[0, 0, 0])
    products = [Product(np.array([constant], object), np.array([1], object))]
    # Tensors whose steps repeat as often are one table.
    for by_k, group in groupby(pairs, key=lambda pair: pair[0]):
        products.append(Product(sum(by_h for _, by_h in group) + np.zeros(1, object), np.array(by_k, object)))
    return products


def _together(chain: Chain, part: Space) -> list[tuple[Product, ...]]:
    """Source, filters and target of every conv.

    A target that starts only behind the sums is one block, no larger than the accumulator that is live in its stead.
    """
    caches, several = _caches(chain, part), [bool(steps[0] > 1) for steps in stripes(chain, part).row_steps]
    filters = [cache for name, cache in caches.items() if name.startswith("filter")]
    together = []
    for index in range(len(chain.conv)):
        source = caches[f"intermediate{index}" if index else "input_cache"]
        target = caches["output_cache" if index == len(chain.conv) - 1 else f"intermediate{index + 1}"]
        # Resident filters of the convs before are live still where a loop comes back to those convs.
        resident = filters if any(several[index:]) else filters[index:]
        staged = resident if part.words[0].filters == "resident" else [filters[index]]
        together.append((source, *staged, target))
    return together


def _caches(chain: Chain, part: Space) -> dict[str, Product]:
    """Every cache as a product: its rows by h_split, its channels by k_split."""
    one_h, one_k = part.h_splits[:1], part.k_splits[:1]
    by_h_space, by_k_space = Space(part.words, part.h_splits, one_k), Space(part.words, one_h, part.k_splits)
    by_h = cache_grids(chain, by_h_space, stripes(chain, by_h_space))
    by_k = cache_grids(chain, by_k_space, stripes(chain, by_k_space))
    return {
        cache.name: _product(cache.bytes[0, :, 0], other.bytes[0, 0]) for cache, other in zip(by_h, by_k, strict=True)
    }


def _product(by_h: Integers, by_k: Integers) -> Product:
    """The product that has these values along its first column and its first row."""
    shared = gcd(*map(int, by_h))
    over_k = [int(value) * shared // int(by_h[0]) for value in by_k]
    return Product(np.array([int(value) // shared for value in by_h], object), np.array(over_k, object))
