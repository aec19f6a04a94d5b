"""A pool of threads that goes on with those it has where the system gives no further one.

A ThreadPoolExecutor begins a thread when work comes and none is idle. Where that fails, for want of
memory or because of a limit on processes, `submit` raises although the work is queued, and whoever
has submitted it neither knows whether it will run nor is made to wait for it.
"""

from concurrent.futures import ThreadPoolExecutor

from typing_extensions import override


class ThreadPool(ThreadPoolExecutor):
    """See the module. One thread begins with the pool, the others as they are needed."""

    def __init__(self, threads: int, name: str) -> None:
        """Begin the first thread.

        Args:
            threads: At most.
            name: What their names begin with.

        Raises:
            RuntimeError: The system has no thread for it.
        """
        super().__init__(threads, name)
        self.submit(_nothing).result()

    @override
    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except (RuntimeError, MemoryError):
            if not self._threads:
                raise


def _nothing() -> None:
    """A first thread is there then."""
