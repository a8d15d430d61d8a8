"""Jobs in processes apart, on the cores of this machine or on a cluster. Knows nothing of cases, and no TVM."""

from hexconv.apart.parallel import Executor, cores, do_all
from hexconv.apart.process import Ending, Limits, Task

__all__ = ["Ending", "Executor", "Limits", "Task", "cores", "do_all"]
