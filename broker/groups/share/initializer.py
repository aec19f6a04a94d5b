"""Initialization of share-partitions' state by the share coordinator, recorded in the log.

    log: initializing ──> share coordinator, each partition ──> log: initialized,
                                                                     or no longer initializing

No request waits for it: the members' next heartbeats find partitions that can be assigned.

Source: Kafka, GroupCoordinatorService.java (persisterInitialize and what follows it).
"""

import logging
from collections.abc import Callable, Mapping
from uuid import UUID

from broker.coordinator.persister import SharePartitionKey, SharePersister
from broker.groups.modern.journal import Journal
from broker.groups.share.changes import ShareChanges
from broker.groups.share.each_partition import each_partition
from broker.groups.share.share_group import ShareGroup
from broker.runtime.log_value import log_value
from broker.runtime.timer import Timer
from protocol.error_codes import ErrorCode

logger = logging.getLogger(__name__)

Codes = dict[UUID, dict[int, ErrorCode]]
"""Error code of each partition, by topic id."""


class Initializer:
    """Initialization of share state for the groups of one shard."""

    def __init__(
        self, journal: Journal, persister: Callable[[], SharePersister | None], timer: Timer
    ) -> None:
        self._journal = journal
        self._persister = persister
        self._timer = timer

    def begin(
        self,
        group: ShareGroup,
        start_offsets: Mapping[UUID, Mapping[int, int]],
        done: Callable[[Codes], None],
    ) -> None:
        """Initialize the state of these partitions, which are initializing in the log.

        Args:
            group: In its present epoch, which becomes that of the state.
            start_offsets: By topic id and partition; -1: by `share.auto.offset.reset`.
            done: Called when the outcome is in the log.
        """
        state_epoch = group.group_epoch

        def initialize(
            item: tuple[SharePartitionKey, int], answer: Callable[[ErrorCode], None]
        ) -> None:
            persister = self._persister()
            if persister is None or group.is_dead:
                answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            else:
                persister.initialize(item[0], state_epoch, item[1], answer)

        def finished(results: list[tuple[tuple[SharePartitionKey, int], ErrorCode]]) -> None:
            codes: Codes = {}
            for (key, _), code in results:
                codes.setdefault(key.topic_id, {})[key.partition] = code
            self._write_down(group, codes, done)

        each_partition(
            [
                (SharePartitionKey(group.group_id, topic_id, partition), offset)
                for topic_id, offsets in start_offsets.items()
                for partition, offset in offsets.items()
            ],
            initialize,
            finished,
            self._timer,
        )

    def _write_down(self, group: ShareGroup, codes: Codes, done: Callable[[Codes], None]) -> None:
        if group.is_dead:
            # Its new coordinator initializes again.
            done(codes)
            return
        good: dict[UUID, list[int]] = {}
        bad: dict[UUID, list[int]] = {}
        for topic_id, partitions in codes.items():
            for partition, code in partitions.items():
                if code is ErrorCode.NONE:
                    good.setdefault(topic_id, []).append(partition)
                else:
                    bad.setdefault(topic_id, []).append(partition)
        if bad:
            logger.warning(
                "share state not initialized group=%s partitions=%d error=%s",
                log_value(group.group_id),
                sum(map(len, bad.values())),
                next(code.name for p in codes.values() for code in p.values() if code),
            )
        kept = group.kept.answered(good, bad)
        changes = ShareChanges(group)
        if kept != group.kept:
            changes.set_kept(kept)
        self._journal.write(group, changes.records, lambda _: done(codes))
