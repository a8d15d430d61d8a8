"""What is asked of the search for each row of the board."""

from hexconv.search import Answer, Question, plan_chain
from hexconv.spec import Case, Chain, Plan

MIB = 1 << 20
LIMITS_MIB = (1, 2, 4, 8)


def planned(name: str, chain: Chain, limit_mib: int) -> Answer:
    """Return the plans and cuts of a chain that move least, with every cache in that much VTCM."""
    question = Question(limit_mib * MIB, "traffic", Plan(kernel="hvx", storage="vtcm"), target="hexagon")
    return plan_chain(Case(name, chain, Plan(kernel="hvx")), question)
