"""Compaction of a cluster's metadata store: its history is forgotten but for the newest revisions.

etcd keeps every revision until a compaction is requested, and refuses writes when its quota is
full. The active controller compacts once an hour; a broker that follows changes is never that far
behind, or reads all of it again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from broker.controller.store.metadata_store import CompactedError, MetadataStore, StoreError
from broker.runtime.timer import Timer, TimerHandle

LOGGER = logging.getLogger(__name__)

EVERY_MS: Final = 3_600_000.0

KEPT_REVISIONS: Final = 10_000
"""Newest revisions that can still be watched and read as of."""


class StoreCompaction:
    """See the module. Runs on the loop's thread; `close` before the store is closed."""

    def __init__(
        self,
        store: MetadataStore,
        timer: Timer,
        *,
        is_controller: Callable[[], bool],
        revision: Callable[[], int],
        every_ms: float = EVERY_MS,
        kept: int = KEPT_REVISIONS,
    ) -> None:
        """The first compaction is `every_ms` away.

        Args:
            store: Of the cluster.
            timer: For that time.
            is_controller: Whether this broker is the active controller.
            revision: Of the newest image.
            every_ms: Between two compactions.
            kept: Newest revisions that stay.
        """
        self._every_ms = every_ms
        self._kept = kept
        self._store = store
        self._timer = timer
        self._is_controller = is_controller
        self._revision = revision
        self._task: asyncio.Task[None] | None = None
        self._handle: TimerHandle | None = timer.call_later_ms(every_ms, self._due)

    def _due(self) -> None:
        self._handle = self._timer.call_later_ms(self._every_ms, self._due)
        target = self._revision() - self._kept
        if self._is_controller() and target > 0 and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(
                self._compact(target), name="store compaction"
            )

    async def _compact(self, target: int) -> None:
        try:
            await self._store.compact(target)
        except CompactedError:
            # By etcd itself, or another cluster in it.
            return
        except StoreError as error:
            LOGGER.warning("metadata store not compacted revision=%d error=%s", target, error)

    def close(self) -> None:
        """Compact no more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._task is not None:
            self._task.cancel()
