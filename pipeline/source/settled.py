"""A worker's imports, put out of reach of the garbage collector.

PySpark's worker collects all generations after every task (`pyspark/daemon.py`, `worker`). With
what Spark, Arrow and a store's client import that is 30 ms and more each time, and finds nothing:
a tenth of what reading a piece of 128 MiB costs, and most of a micro-batch of a few rows.
"""

import gc
import sys

_known = 0
"""Modules that were there when it was done last; a store's client is imported when it is opened."""


def settle() -> None:
    """Have the collector pass over all that is there now; nothing if no module has come since.

    For processes that Spark has started for itself. What is garbage is collected first; what
    becomes garbage later and is part of a cycle stays, so this is not for every task.
    """
    global _known
    if len(sys.modules) != _known:
        _known = len(sys.modules)
        gc.collect()
        gc.freeze()
