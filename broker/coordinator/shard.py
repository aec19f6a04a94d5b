"""The interface of a shard: a coordinator's state for one partition of its topic.

    build ──> replay, replay_marker ... ──> on_loaded ──> on_active ──> on_topics_changed ...
                                                │             │               │
                                                └─────────────┴───────────────┴──> on_unloaded

A shard lives for one election (`election`); the next one builds another. A caller that resumes
after a wait checks `log.is_closed`.

Source: Kafka, CoordinatorShard.java, CoordinatorPlayback.java.
"""

from collections.abc import Mapping
from typing import Final, Protocol
from uuid import UUID

from broker.coordinator.topics_change import TopicsChange

NO_PRODUCER: Final = -1
"""Producer id of a record that belongs to no transaction."""


class Shard(Protocol):
    """See the module. All is called on the event loop."""

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """Apply a record of the log, while loading.

        Args:
            key: As written.
            value: As written; None for a tombstone.
            offset: Of the record.
            producer_id: Of its transaction, `NO_PRODUCER` for none.

        Raises:
            DecodeError: It is damaged; it is skipped, and counted.
        """
        ...

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """Apply the end of a transaction, while loading."""
        ...

    async def on_loaded(self) -> None:
        """Prepare the shard to serve, in slices; all records were replayed.

        Raises:
            Exception: The shard cannot serve; it is unloaded, and the partition is FAILED.
        """
        ...

    async def on_active(self, deleted_topics: Mapping[UUID, str]) -> None:
        """Resume unfinished work, in slices; the shard serves.

        `deleted_topics`: name by id of those that this broker has seen being deleted since its
        start, perhaps while the partition had no shard. A topic that is only not in the image is
        none: where the metadata store was lost it may come back.
        """
        ...

    async def on_topics_changed(self, change: TopicsChange) -> None:
        """Apply that topics were created, altered or deleted; called for active shards."""
        ...

    def on_unloaded(self) -> None:
        """Close the log, stop all timers, answer waiting requests with NOT_COORDINATOR; once."""
        ...

    def summary(self) -> str:
        """Counts of the loaded state, for the log: `groups=3 offsets=12`; empty for nothing."""
        ...
