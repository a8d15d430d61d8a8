"""Does jobs in separate processes, on the cores of this machine or on a cluster. It knows neither cases nor TVM."""

from hexconv.apart.parallel import Executor, cores, do_all
from hexconv.apart.process import Ending, Limits, Task

__all__ = ["Ending", "Executor", "Limits", "Task", "cores", "do_all"]
