"""Many cases: drawn at random over the whole scope, each judged in a process of its own, counted."""

from hexconv.sweep.judging import judge_all
from hexconv.sweep.random_case import random_case
from hexconv.sweep.sweep import Sweep, case_file
from hexconv.sweep.verdict import Verdict, judge

__all__ = ["Sweep", "Verdict", "case_file", "judge", "judge_all", "random_case"]
