"""Cases that several tests lower, lowered once: a test that changes hexconv while it lowers has to lower anew."""

from functools import lru_cache

from hexconv import lower

lower_case = lru_cache(maxsize=64)(lower.lower_case)
"""The same as `hexconv.lower.lower_case`, which gives the same modules for the same case."""
