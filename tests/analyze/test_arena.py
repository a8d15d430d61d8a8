"""Caches in one arena: nothing that is live overlaps, by the plan and by what the kernel computes there."""

from dataclasses import replace
from itertools import combinations

from hypothesis import HealthCheck, given, settings

from hexconv.analyze import plan_arena, shared_allocations
from hexconv.analyze.arena import ALIGNMENT_BYTES
from hexconv.lower import lower_case
from hexconv.lower.arena import place_in_arena
from hexconv.spec import Case, Chain, Conv2d, Plan
from tests.any_chain.running import output_of
from tests.strategies import cases


@settings(max_examples=100, deadline=None)
@given(cases())
def test_what_is_live_together_lies_apart(case: Case) -> None:
    """By single bytes of every statement: no second cache in any, but for a pair that TVM computes in place."""
    placements = plan_arena(case.chain, case.plan).placements
    together = [set(memory.holds) for memory in shared_allocations(case.chain, case.plan)]
    for one, other in combinations(placements, 2):
        at_once = set(range(one.lifetime.first, one.lifetime.last + 1)) & set(
            range(other.lifetime.first, other.lifetime.last + 1)
        )
        apart = one.end_bytes <= other.offset_bytes or other.end_bytes <= one.offset_bytes
        in_place = (one.offset_bytes, one.bytes) == (other.offset_bytes, other.bytes) and len(at_once) == 1
        assert apart or not at_once or (in_place and any({one.name, other.name} <= held for held in together))


@settings(max_examples=100, deadline=None)
@given(cases())
def test_the_arena_is_no_larger_than_tvms_allocations(case: Case) -> None:
    arena = plan_arena(case.chain, case.plan)
    vectors = sum(-(-m.bytes // ALIGNMENT_BYTES) for m in shared_allocations(case.chain, case.plan))
    assert arena.live_bytes <= arena.bytes <= vectors * ALIGNMENT_BYTES
    assert all(placement.offset_bytes % ALIGNMENT_BYTES == 0 for placement in arena.placements)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(storage=("global",)))
def test_the_kernel_computes_the_same_in_the_arena(case: Case) -> None:
    """Bit for bit: a cache written over while it is live would show."""
    lowered, arena = lower_case(case), plan_arena(case.chain, case.plan)
    offsets = {placement.name: placement.offset_bytes for placement in arena.placements}
    placed = place_in_arena(lowered, offsets, arena.bytes)
    assert output_of(case, placed).tobytes() == output_of(case, lowered.unmerged).tobytes()


def test_an_arena_can_be_smaller_than_tvms_allocations() -> None:
    """A large dead cache leaves room for several small ones."""
    convs = tuple(Conv2d(out_channels=channels, kernel=(3, 3)) for channels in (128, 256, 32))
    case = Case("narrow", Chain(input=(1, 16, 16, 64), conv=convs), Plan(kernel="plain"))
    arena = plan_arena(case.chain, case.plan)
    merged_bytes = sum(memory.bytes for memory in shared_allocations(case.chain, case.plan))
    assert (arena.live_bytes, arena.bytes, merged_bytes) == (573440, 573440, 753664)


def test_two_caches_in_one_place_give_another_result() -> None:
    """The check by running would see it."""
    conv = Conv2d(out_channels=8)
    case = Case("clash", Chain(input=(1, 8, 8, 8), conv=(conv, replace(conv, kernel=(3, 3)))), Plan(kernel="plain"))
    lowered, arena = lower_case(case), plan_arena(case.chain, case.plan)
    offsets = {placement.name: placement.offset_bytes for placement in arena.placements}
    clash = offsets | {"intermediate1": offsets["input_cache"]}
    placed = place_in_arena(lowered, clash, arena.bytes)
    assert output_of(case, placed).tobytes() != output_of(case, lowered.unmerged).tobytes()
