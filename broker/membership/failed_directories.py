"""Reports of failed log directories to the cluster: a key of the broker in the metadata store.

    directory fails ──> offline/<id> has its id and the epoch ──> the controller elects others for
                                 │                                 what lay there
              store is away: again and again, for log.dir.failure.timeout.ms
                                 └──> the broker fails: no broker would replace its leaders

Directories without room are in it, too, and leave it when they have room again: meanwhile others
lead and take records, if there are others; reading goes on.

Not under the lease: it is true for as long as this process lives, whichever broker is the
controller. A later life has another epoch, and says in its registration which directories work.

Source: KIP-858 (Kafka reports it with BrokerHeartbeat).
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from broker.controller.images.broker_records import (
    FailedDirectories,
    broker_key,
    encode_failed,
    offline_key,
)
from broker.controller.store.metadata_store import (
    MetadataStore,
    Put,
    StoreClosedError,
    StoreError,
    unchanged_since,
)
from broker.runtime.pauses import pause
from storage.environment.clock import Clock
from storage.environment.timer import Timer
from storage.types.uuid_text import format_uuid

LOGGER = logging.getLogger(__name__)

AGAIN_MS: Final = 200.0
"""Before a store that did not answer is asked again."""


class FailedDirectoryReports:
    """See the module. Runs on the loop's thread; one write is under way at a time."""

    def __init__(
        self,
        store: MetadataStore,
        node_id: int,
        *,
        clock: Clock,
        timer: Timer,
        timeout_ms: float,
        fail: Callable[[str], None],
    ) -> None:
        """Report nothing yet.

        Args:
            store: Of the cluster.
            node_id: Of this broker.
            clock: For how long it may take.
            timer: For trying again.
            timeout_ms: `log.dir.failure.timeout.ms`.
            fail: Ends the broker, with a reason for the operator.
        """
        self._store = store
        self._node_id = node_id
        self._clock = clock
        self._timer = timer
        self._timeout_ms = timeout_ms
        self._fail = fail
        self._epoch = 0
        self._failed: dict[UUID, None] = {}
        self._full: tuple[UUID, ...] = ()
        self._written: tuple[tuple[UUID, ...], tuple[UUID, ...]] = ((), ())
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def unreported(self) -> int:
        """Failed directories that are not in the store yet."""
        return len(self._failed) - len(self._written[0])

    @property
    def _is_due(self) -> bool:
        return (tuple(self._failed), self._full) != self._written

    def begin(self, epoch: int) -> None:
        """This broker is registered in `epoch`: what has failed before is reported now."""
        self._epoch = epoch
        self._run()

    def add(self, directory_id: UUID) -> None:
        """A log directory has failed."""
        self._failed.setdefault(directory_id)
        self._run()

    def set_full(self, directories: tuple[UUID, ...]) -> None:
        """These have no room now, and the others have."""
        self._full = directories
        self._run()

    def _run(self) -> None:
        if not (self._epoch and self._is_due) or self._is_closed:
            return
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._report(), name="report of failed directories"
            )

    async def _report(self) -> None:
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        while self._is_due:
            failed = FailedDirectories(self._epoch, tuple(self._failed), self._full)
            try:
                result = await self._store.txn(
                    [unchanged_since(broker_key(self._node_id), self._epoch)],
                    [Put(offline_key(self._node_id), encode_failed(failed))],
                )
            except StoreClosedError:
                return
            except StoreError as error:
                if self.unreported and self._clock.monotonic_ms() >= deadline_ms:
                    self._fail(
                        "a failed log directory could not be reported to the cluster within "
                        f"log.dir.failure.timeout.ms: {error}"
                    )
                    return
                await pause(self._timer, AGAIN_MS)
                continue
            if not result.succeeded:
                # Another process has registered: the membership of this one ends.
                return
            self._written = (failed.directories, failed.full)
            LOGGER.info(
                "log directories reported node=%d failed=%s full=%s",
                self._node_id,
                [format_uuid(one) for one in failed.directories],
                [format_uuid(one) for one in failed.full],
            )

    async def aclose(self) -> None:
        """Report nothing more; the end of the process says it all."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
