"""One case, judged in every respect: sizes, sharing, traffic, multiply-accumulates, numbers, fringe."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hexconv.analyze import WorkUsage, work_usage
from hexconv.analyze.predicted import predicted_allocations, predicted_caches
from hexconv.errors import RunFailed, Unsupported
from hexconv.lower import Lowered, lower_case
from hexconv.run.check import Check
from hexconv.run.copies import MOMENTS, Copies
from hexconv.run.count import count
from hexconv.run.host import Host
from hexconv.run.measure import run_case
from hexconv.spec import Case

Outcome = Literal["agrees", "refused", "disagrees"]


@dataclass(frozen=True)
class Verdict:
    """What became of a case.

    Attributes:
        case: what was judged.
        outcome: whether all opinions agree; `refused` is what TVM or the scheme can't do.
        reasons: what differs, or why it was refused; one line each.
    """

    case: Case
    outcome: Outcome
    reasons: tuple[str, ...] = ()


def judge(case: Case, seed: int = 0) -> Verdict:
    """Lower a case, compare it with the closed form, run it on this machine and compare that with numpy.

    Args:
        case: what to judge.
        seed: of its random tensors.
    """
    try:
        lowered = lower_case(case)
        differences = (*_differences(case, lowered), *miscounts(work_usage(case, count(lowered))))
        reasons = (*differences, *(error for host in _hosts(case, seed) for error in _run(case, lowered, host, seed)))
    except Unsupported as refusal:
        return Verdict(case, "refused", (str(refusal),))
    return Verdict(case, "disagrees" if reasons else "agrees", reasons)


def _differences(case: Case, lowered: Lowered) -> Iterator[str]:
    """Where the closed form and TVM say different things of a cache or an allocation."""
    predicted = {(cache.name, cache.shape, cache.dtype) for cache in predicted_caches(case.chain, case.settled)}
    allocated = {(cache.name, cache.shape, cache.dtype) for cache in lowered.caches}
    yield from _only_in("caches", predicted, allocated)
    shared = {(memory.holds, memory.bytes) for memory in predicted_allocations(case.chain, case.settled)}
    merged = {(memory.holds, memory.bytes) for memory in lowered.allocations}
    yield from _only_in("allocations", shared, merged)


def miscounts(work: WorkUsage) -> Iterator[str]:
    """Where the closed form and a count say different things of what is moved and computed."""
    for tensor in work.traffic:
        if tensor.bytes != tensor.predicted_bytes:
            yield f"bytes of {tensor.name}: closed form {tensor.predicted_bytes}, counted {tensor.bytes}"
        if tensor.copies_in_flight != tensor.predicted_copies_in_flight:
            counts = f"closed form {tensor.predicted_copies_in_flight}, counted {tensor.copies_in_flight}"
            yield f"copies of {tensor.name} in flight: {counts}"
    for conv in work.convs:
        if conv.macs != conv.predicted_macs:
            yield f"MACs of {conv.name}: closed form {conv.predicted_macs}, counted {conv.macs}"


def _hosts(case: Case, seed: int) -> tuple[Host, ...]:
    """This machine; where copies are asynchronous, with each moment at which they may happen."""
    return (Host(),) if case.settled.buffering == "single" else tuple(Host(Copies(moment, seed)) for moment in MOMENTS)


def _run(case: Case, lowered: Lowered, host: Host, seed: int) -> Iterator[str]:
    """What is wrong with a run of a case."""
    copies = f", with {host.copies.moment} copies" if case.settled.buffering == "double" else ""
    try:
        yield from (f"{error}{copies}" for error in errors_of(run_case(case, lowered, host, seed).check))
    except RunFailed as failure:
        yield f"the run gave no answer: {failure}{copies}"


def _only_in(what: str, predicted: set, allocated: set) -> Iterator[str]:
    """What only one of the two opinions has."""
    if predicted != allocated:
        yield f"{what}: closed form {sorted(predicted - allocated)}, TVM {sorted(allocated - predicted)}"


def errors_of(check: Check) -> Iterator[str]:
    """What is wrong with a run's output."""
    if not check.fringe_is_zero:
        yield "the fringe of the output is not zero"
    elif not check.passed:
        relative = f"{check.max_rel_error:.3g} of the largest"
        yield f"the output differs from numpy by up to {check.max_abs_error:.6g} ({relative})"
