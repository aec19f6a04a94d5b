"""Deletion of what deleted topics have left in remote storage, after a crash too.

The controller forgets a topic first, then its deletion is published. In between only the
controller's note says so; that a topic is unknown here says nothing.

    note ──> segments deleted ──> a collection of garbage that began later ──> note dropped

A leader that has not heard of the deletion yet may publish a copy when all was deleted. Known to
the metadata, it is no garbage, so it is deleted as what was there before.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from broker.controller.store.metadata_store import StoreError
from config.tier import TierConfig
from storage.environment.clock import Clock

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from tiered.metadata.topic_based_manager import TopicMetadataManager
    from tiered.tasks.remote_log_manager import RemoteLogManager

LOGGER = logging.getLogger(__name__)


class DeletedTopics:
    """See the module. Touched on the loop's thread only; checked by its owner, again and again.

    Attributes:
        gone_ms: By topic id, when it was first seen that all of a topic's segments are gone.
    """

    __slots__ = (
        "_clock",
        "_controller",
        "_forgetting",
        "_manager",
        "_metadata",
        "_settings",
        "gone_ms",
    )

    def __init__(
        self,
        controller: "Controller",
        metadata: "TopicMetadataManager",
        manager: "RemoteLogManager",
        *,
        clock: Clock,
        settings: Callable[[], TierConfig],
    ) -> None:
        """Delete nothing yet.

        Args:
            controller: Has the notes.
            metadata: Of the segments.
            manager: Deletes them.
            clock: Of the broker.
            settings: The present ones.
        """
        self._controller = controller
        self._metadata = metadata
        self._manager = manager
        self._clock = clock
        self._settings = settings
        self._forgetting: asyncio.Task[None] | None = None
        self.gone_ms: dict[UUID, float] = {}

    def check(self) -> None:
        """Delete segments of deleted topics, and drop the notes of those that have none left."""
        deleted = self._controller.image.deleted_topics
        if not deleted:
            return
        metadata, manager = self._metadata, self._manager
        left = [
            id_partition for id_partition in metadata.known() if id_partition.topic_id in deleted
        ]
        for id_partition in left:
            if manager.tasks_of(id_partition) is None and metadata.leads(id_partition):
                LOGGER.info(
                    "deleting remote segments of a deleted topic partition=%s", id_partition
                )
                manager.on_stop(id_partition, delete_remote=True)
        done = self._swept(deleted - {id_partition.topic_id for id_partition in left})
        is_ours = metadata.is_steward and metadata.is_complete
        if done and is_ours and self._forgetting is None:
            self._forgetting = asyncio.ensure_future(self._forget(done))

    def _swept(self, done: frozenset[UUID]) -> frozenset[UUID]:
        """Of topics whose segments are gone, those of which no object can appear any more.

        What a copy was uploading when it was cancelled may appear after all has been removed. It is
        found by a collection of garbage, once it is old enough, and by the note that the topic was
        deleted here: so the note stays until one has passed since. One that only reports, as the
        bucket is not this cluster's just then, or as it was a trial, does not count.
        """
        now_ms = self._clock.monotonic_ms()
        self.gone_ms = {one: self.gone_ms.get(one, now_ms) for one in done}
        removed_from_ms = self._manager.scrubber.removed_from_ms
        if removed_from_ms is None:
            return frozenset()
        latest_ms = removed_from_ms - self._settings().tier_gc_grace_ms
        return frozenset(one for one, gone_ms in self.gone_ms.items() if gone_ms <= latest_ms)

    async def _forget(self, done: frozenset[UUID]) -> None:
        try:
            await self._controller.forget_deleted(done)
        except StoreError as error:
            # It is retried at the next check.
            LOGGER.warning(
                "notes of deleted topics whose remote segments are gone could not be removed from "
                "the metadata store, trying again topics=%d error=%s",
                len(done),
                error,
            )
        finally:
            self._forgetting = None

    async def stop(self) -> None:
        """Wait until a note that is being dropped is dropped."""
        if self._forgetting is not None:
            await asyncio.wait([self._forgetting])
