"""The result of a sweep of random cases, from the verdicts on its cases."""

from collections.abc import Iterable
from dataclasses import dataclass

from hexconv.sweep.verdict import Verdict


@dataclass(frozen=True)
class Sweep:
    """The sum of many verdicts.

    Attributes:
        checked: how many cases were lowered and run.
        refused: how many cases TVM or a kernel can't do; they are not among the checked ones.
        disagree: in how many of the checked cases two opinions differ.
        failures: a case file of each case that disagrees, which says in comments what differs.
    """

    checked: int
    refused: int
    disagree: int
    failures: tuple[str, ...]

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> "Sweep":
        """Count verdicts."""
        verdicts = list(verdicts)
        refused = sum(verdict.outcome == "refused" for verdict in verdicts)
        failures = tuple(case_file(verdict) for verdict in verdicts if verdict.outcome == "disagrees")
        return cls(len(verdicts) - refused, refused, len(failures), failures)


def case_file(verdict: Verdict) -> str:
    """The case as TOML, ready to save and rerun, under comments on what became of it."""
    comments = [f"# {verdict.case.name}: {' '.join(reason.split())}" for reason in verdict.reasons]
    return "\n".join([*comments, verdict.case.to_toml()])
