"""How drawn cases of HVX kernels are judged."""

from hexconv.spec import Case
from hexconv.sweep.judging import judge


def check_on_hvx(case: Case) -> None:
    """All convs run on hvx, and all opinions on the case agree."""
    assert [choice.used for choice in case.kernels] == ["hvx"] * len(case.chain.conv)
    verdict = judge(case)
    assert verdict.outcome == "agrees", verdict.reasons
