"""Cases judged in parallel, each process apart: what one case does to its process is a verdict on that case alone."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as TookTooLong

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from hexconv.spec import Case
from hexconv.sweep.verdict import Verdict, judge

LONGEST_SECONDS = 300
"""A case that takes longer hangs."""
CASES_PER_PROCESS = 200
"""Then a fresh one takes over: every compiled case leaves its code in its process."""

Judge = Callable[[Case], Verdict]


def judge_all(
    cases: Sequence[Case], workers: int, judge: Judge = judge, longest_seconds: float = LONGEST_SECONDS
) -> Iterator[Verdict]:
    """Verdicts in the order of the cases, each as soon as it and all before it are there.

    Args:
        cases: what to judge.
        workers: processes at a time.
        judge: what each process does with a case.
        longest_seconds: how long it may take; its process is ended then.
    """
    # Fresh processes: a fork would share the threads that TVM and BLAS have started here.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPool(workers, CASES_PER_PROCESS, context=context)
    try:
        futures = [pool.schedule(judge, args=[case], timeout=longest_seconds) for case in cases]
        for case, future in zip(cases, futures, strict=True):
            yield _verdict(case, future)
        pool.close()
    finally:
        pool.stop()
        pool.join()


def _verdict(case: Case, future: ProcessFuture[Verdict]) -> Verdict:
    """A case's verdict; none is one too."""
    try:
        return future.result()
    except ProcessExpired as error:
        return Verdict(case, "disagrees", (f"its process ended with exit code {error.exitcode}",))
    except TookTooLong:
        return Verdict(case, "disagrees", ("it did not come to an end in time",))
    except Exception as error:  # whatever TVM throws at this case, the others go on
        first_line = next(iter(str(error).splitlines()), "")
        return Verdict(case, "disagrees", (f"{type(error).__name__}: {first_line}",))
