"""The best plan of one chain."""

import time
from dataclasses import replace
from functools import lru_cache

from hexconv.analyze.needed import needed_work
from hexconv.compute.limits import check_supported
from hexconv.errors import InputError
from hexconv.search import large
from hexconv.search.found import Found, choose
from hexconv.search.grid import evaluate
from hexconv.search.machine import Rates, rates
from hexconv.search.question import Question
from hexconv.search.space import Space
from hexconv.spec import Chain, kernel_of

REMEMBERED = 4096
"""Chains whose results are kept: networks repeat their blocks."""


@lru_cache(REMEMBERED)
def best_plan(chain: Chain, question: Question) -> Found:
    """Search every plan of a chain.

    Raises:
        InputError: the kernel has no figures for the objective, or this is no question.
        Unsupported: no plan can serve the chain.
    """
    if not isinstance(question, Question):
        raise InputError("best_plan: question", repr(question), f"a Question, such as Question(vtcm_bytes={1 << 20})")
    question = question.settled(chain)
    question.check(chain)
    check_supported(chain)
    machine = rates(question.plan.arch)
    started = time.perf_counter()
    found = _search(chain, question, machine)
    return replace(found, proof=replace(found.proof, seconds=time.perf_counter() - started))


def _search(chain: Chain, question: Question, machine: Rates) -> Found:
    """Every plan by the closed forms, or as many as CP-SAT needs to see."""
    space, bound = Space.of(chain, question.plan), lower_bound(chain, question)
    if space.size > large.LARGEST_GRID and kernel_of(chain, question.plan) == "plain":
        return large.search_large(chain, question, machine, bound)
    return choose(evaluate(chain, space, machine), question, bound)


def lower_bound(chain: Chain, question: Question) -> float | None:
    """What no plan goes below: the needed traffic, or its latency with the needed MACs; None for footprints."""
    needed, machine = needed_work(chain), rates(question.plan.arch)
    traffic, macs = sum(needed.traffic_bytes.values()), sum(needed.macs.values())
    if question.objective == "footprint":
        return None
    if question.objective == "traffic":
        return traffic
    if kernel_of(chain, question.plan) == "hvx":
        return macs / machine.hvx_macs_per_packet
    return machine.plain(chain.dtype).packets(macs, traffic, overlaps=True)
