"""Which Adds are operators, against every way to cut a chain with every choice of its Adds."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain as joined
from itertools import combinations, pairwise
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.example import NETWORK
from hexconv.model import import_model
from hexconv.network.call_costs import price_of_add
from hexconv.network.planned_model import members_of, plan, question_of
from hexconv.search import Objective, Question, best_plan, plan_all
from hexconv.search.adds_apart import _best, _takes_hvx_away, adds_apart  # pyright: ignore[reportPrivateUsage]
from hexconv.search.cuts import Pieces, piece_of
from hexconv.search.found import Found
from hexconv.search.question import COSTS, value
from hexconv.spec import Chain, Conv2d, Requantize
from hexconv.spec.addition import Add
from hexconv.spec.chain import Padding
from tests.draws import LOWERED
from tests.strategies import chains, is_supported

SAME = Padding(top=1, left=1, bottom=1, right=1)
SUMMED = tuple(objective for objective in get_args(Objective) if objective != "footprint")


def adds_of(chain: Chain) -> dict[int, tuple[int, int]]:
    return {index: (conv.add.tensor, index + 1) for index, conv in enumerate(chain.conv) if conv.add}


def every_way(chain: Chain, question: Question) -> Iterator[tuple[frozenset[int], float]]:
    """Each choice of Adds that are operators, with the costs of each way to cut the chain then that fits.

    An Add for which a conv would get a slower kernel is always an operator.
    """
    count, adds, first = len(chain.conv), adds_of(chain), COSTS[question.objective][0]
    inner = joined.from_iterable(combinations(range(1, count), size) for size in range(count))
    for ends in [{0, *places, count} for places in inner]:
        over = {index for index, (low, high) in adds.items() if any(low < end < high for end in ends)}
        free = {index for index, span in adds.items() if ends.issuperset(span)}
        if not over <= free:
            continue
        for more in joined.from_iterable(combinations(free - over, size) for size in range(len(free - over) + 1)):
            apart = frozenset(over.union(more))
            pieces = [piece_of(chain, *part, apart) for part in pairwise(sorted(ends))]
            if any(_takes_hvx_away(piece, 0, len(piece.conv), question) for piece in pieces):
                continue
            plans = [best_plan(piece, question).best if is_supported(piece) else None for piece in pieces]
            cost = sum(price_of_add(chain, index, question)[first] for index in apart)
            if all(plans):
                yield apart, cost + sum(value(found, first, question) for found in plans)


@LOWERED
@given(chains(), st.sampled_from(SUMMED), st.integers(12, 20))
def test_no_choice_of_adds_costs_less(chain: Chain, objective: Objective, log_limit: int) -> None:
    adds, question = adds_of(chain), Question(1 << log_limit, objective)
    assume(adds and len(chain.conv) < 6)
    ways = list(every_way(chain, question))
    assume(ways)
    chosen = adds_apart(chain, question, lambda chain, index: price_of_add(chain, index, question))
    least = min(cost for apart, cost in ways if apart == chosen)
    apart = [cost for way, cost in ways if way == frozenset(adds)]
    assert least <= min(apart, default=least) * (1 + 1e-9)
    spans = sorted(adds.values())
    is_nested = all(high <= low or other <= high for (_, high), (low, other) in combinations(spans, 2))
    if is_nested:
        assert least == pytest.approx(min(cost for _, cost in ways), rel=1e-9)


@pytest.mark.parametrize("objective", SUMMED)
@pytest.mark.parametrize("kib", [32, 64, 128, 256, 1024])
def test_a_network_costs_no_more_than_with_all_adds_between_chains(objective: Objective, kib: int) -> None:
    imported, question = import_model(NETWORK), question_of(kib << 10, objective)
    first = COSTS[objective][0]
    chosen = plan(imported, question)
    apart = plan_all([member.case for member in members_of(imported)], question)
    costs = [
        sum(value(answer.cuts.best, first, question) for answer in network.planned if answer.cuts.best)
        for network in (chosen.network, apart)
    ]
    (whole,) = [case.chain for case in imported.joining().cases]
    added = price_of_add(whole, next(iter(adds_of(whole))), question)[first]
    costs = [costs[0] + added * (len(chosen.members) > 1), costs[1] + added]
    assert costs[0] <= costs[1] * (1 + question.slack)


def test_a_piece_that_needs_more_than_a_known_way_moves_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = Conv2d(out_channels=16, kernel=(3, 3), padding=SAME, requantize=Requantize(multiplier=1 << 24))
    wide, added = replace(narrow, out_channels=64), Add(from_="conv4", scales=(0.031, 0.027, 0.043))
    convs = (wide, narrow, wide, narrow, narrow, replace(narrow, add=added))
    chain = Chain(input=(1, 16, 16, 16), dtype="uint8", conv=convs)
    question, searched, promising = question_of(1 << 18, "traffic"), list[tuple[int, int]](), Pieces.promising

    def noted(pieces: Pieces, first: int, end: int) -> Found | None:
        if pieces.count == len(chain.conv):
            searched.append((first, end))
        return promising(pieces, first, end)

    def chosen() -> object:
        searched.clear()
        return _best(chain, question, lambda chain, index: price_of_add(chain, index, question))

    monkeypatch.setattr(Pieces, "promising", noted)
    quickly, few = chosen(), set(searched)
    monkeypatch.setattr("hexconv.search.adds_apart.needed_bytes", lambda *_: 0)
    assert chosen() == quickly
    assert few < set(searched)


def test_few_pieces_of_a_long_chain_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    conv = Conv2d(out_channels=16, kernel=(3, 3), padding=SAME, requantize=Requantize(multiplier=1 << 24))
    sums = [replace(conv, add=Add(from_=f"conv{at}", scales=(0.031, 0.027, 0.043))) for at in range(1, 18, 2)]
    chain = Chain(input=(1, 32, 32, 16), dtype="uint8", conv=(conv, *(each for add in sums for each in (conv, add))))
    searched, found = set[int](), Pieces.found

    def noted(pieces: Pieces, first: int, end: int) -> Found | None:
        searched.add(end - first)
        return found(pieces, first, end)

    def chosen() -> frozenset[int]:
        question = question_of(1 << 20, "latency", threads=4)
        return adds_apart(chain, question, lambda chain, index: price_of_add(chain, index, question))

    monkeypatch.setattr(Pieces, "found", noted)
    quickly, few = chosen(), set(searched)
    monkeypatch.setattr("hexconv.search.adds_apart.AT_LEAST", 0.0)
    assert chosen() == quickly
    assert max(few) < len(chain.conv) // 2 < max(searched) == len(chain.conv)
