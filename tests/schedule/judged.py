"""How drawn cases of HVX kernels are judged: a few in each run, many in a deep one."""

from hypothesis import settings

from hexconv.spec import Case
from hexconv.sweep.verdict import judge
from tests.schedule.test_nest import SLOW, WITHOUT_SHRINKING


def drawn(examples: int) -> settings:
    """Draw the same examples in every run."""
    return settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=SLOW, phases=WITHOUT_SHRINKING
    )


def check_on_hvx(case: Case) -> None:
    """All convs run on hvx, and all opinions on the case agree."""
    assert [choice.used for choice in case.kernels] == ["hvx"] * len(case.chain.conv)
    verdict = judge(case)
    assert verdict.outcome == "agrees", verdict.reasons
