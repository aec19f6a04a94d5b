"""A thread with an event loop of its own for a metadata store that other processes serve.

    data loop ── call ──> store loop ── request ──> etcd, or the supervisor of this machine
              <─ future ──           <── answer ───

A data loop that stands still for a second (a disk, a large request) then costs no lease, and a
store that stalls costs no produce. gRPC may be used in one event loop of a process only.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

THREAD_NAME = "metadata-store"


class StoreThread:
    """One daemon thread; started when made, ended by `stop`."""

    def __init__(self, name: str = THREAD_NAME) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Have `work` done in the thread; the result here. Cancelled here, it goes on there."""
        done = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))
        # A caller that is gone does not take the error, and it must not be reported as lost.
        done.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(done)

    def stop(self) -> None:
        """End the loop; what it was doing is cancelled. The thread ends by itself."""

        def end() -> None:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            gathered = asyncio.gather(*tasks, return_exceptions=True)
            gathered.add_done_callback(lambda _done: self.loop.stop())

        self.loop.call_soon_threadsafe(end)
