"""Writes of the coordinator to one partition of `__transaction_state`.

The log is the truth; memory follows it, and never goes ahead:

    append ──┬── committed ──────────────> the transition is true, `done(NONE)`
             ├── refused, not written ───> nothing has changed, `done(why)`
             └── nobody knows ───────────> the log is closed and given up: the shard is read anew

Nobody knows when the time for the commit is up, or when the disk fails in the middle. To guess
either way could tell two clients two outcomes.

One record may be late: `append_later`, for what a reader of the log would come to without it. It is
held (`held_records`) and written before the log's next one, in the same batch: no record ever
overtakes another.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from broker.coordinator.outcome import KeyValue, code_for_clients
from broker.transactions.transaction_metadata import TransactionMetadata, Transition
from protocol.error_codes import ErrorCode
from protocol.internal.transaction_log import FLEXIBLE_VALUE_VERSION
from protocol.records.builder import build_plain_batch
from storage.environment.clock import Clock
from storage.types.topic_partition import TopicPartition


class InternalAppender(Protocol):
    """The part of the replica manager that coordinators write through."""

    def append_internal(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
    ) -> None:
        """Append, and call back with (NONE, base offset) when committed, or with an error."""
        ...


logger = logging.getLogger(__name__)

Done = Callable[[ErrorCode], None]
"""Called once with what the client is to be told."""

_OUTCOME_UNKNOWN = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR})

HELD_MAX = 100
HELD_BYTES_MAX = 64 * 1024
"""Records that are held, and their bytes: far below the size a batch may have."""

TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
"""Told before anything is written, by `max.message.bytes` and `segment.bytes` of the topic."""

FLEXIBLE_FROM = 1
"""The transaction.version from which on records are flexible."""


class TransactionLog:
    """See the module."""

    __slots__ = (
        "_appender",
        "_clock",
        "_give_up",
        "_held",
        "_held_bytes",
        "_hold",
        "_version",
        "is_closed",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        appender: InternalAppender,
        clock: Clock,
        transaction_version: Callable[[], int],
        give_up: Callable[[ErrorCode], None],
        hold: Callable[["TransactionLog"], None],
    ) -> None:
        """A log whose shard is about to be, or has been, loaded.

        Args:
            topic_partition: Of `__transaction_state`.
            appender: Writes batches.
            clock: For the records' timestamps.
            transaction_version: The cluster's, asked for every record.
            give_up: Called at most once, after `is_closed` was set, when what is in memory may not
                be what is in the log.
            hold: Called with this log when it begins to hold records back; who is called has them
                written (`write_held`) after a while.
        """
        self.topic_partition = topic_partition
        self.is_closed = False
        self._appender = appender
        self._clock = clock
        self._version = transaction_version
        self._give_up = give_up
        self._hold = hold
        self._held: list[KeyValue] = []
        self._held_bytes = 0

    def append(self, metadata: TransactionMetadata, transition: Transition, done: Done) -> None:
        """Write what was prepared, and complete or cancel it."""
        if self.is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        record = self._record(metadata, transition)
        self._write([record], partial(self._appended, metadata, transition, done))

    def append_later(self, metadata: TransactionMetadata, transition: Transition) -> None:
        """Complete what was prepared, and write its record some time: it must follow from the last.

        A log that refuses it is asked until it does not.
        """
        if self.is_closed:
            return
        metadata.complete(transition)
        record = self._record(metadata, transition)
        if not self._held:
            self._hold(self)
        self._held.append(record)
        self._held_bytes += _size(record)
        if len(self._held) >= HELD_MAX or self._held_bytes >= HELD_BYTES_MAX:
            self.write_held()

    def write_held(self) -> None:
        """Write what is held back, if anything is."""
        if self._held and not self.is_closed:
            self._write([], _nobody_asks)

    def _record(self, metadata: TransactionMetadata, transition: Transition) -> tuple[bytes, bytes]:
        version = FLEXIBLE_VALUE_VERSION if self._version() >= FLEXIBLE_FROM else 0
        return metadata.record_key, transition.to_record(version)

    def append_tombstones(self, expired: Sequence[TransactionMetadata], done: Done) -> None:
        """Forget transactional ids that were prepared for it; all of them or none."""
        if self.is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        records: list[KeyValue] = [(metadata.record_key, None) for metadata in expired]

        def appended(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                for metadata in expired:
                    metadata.cancel()
            done(code_for_clients(code))

        self._write(records, appended)

    def close(self) -> None:
        """Somebody else goes on from here: whatever is still under way changes nothing any more."""
        self.is_closed = True
        self._held.clear()

    def _write(self, records: Sequence[KeyValue], done: Done) -> None:
        held = self._held
        if held:
            if len(records) == 1 and len(records[0][1] or b"") > HELD_BYTES_MAX:
                # Together they might not fit. If these are refused, so is what comes after them.
                self.write_held()
                if self.is_closed:
                    done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    return
                held = self._held
            self._held = []
            self._held_bytes = 0
        batch = build_plain_batch([*held, *records], self._clock.now_ms())
        self._appender.append_internal(
            self.topic_partition, batch, partial(self._written, held, records, done)
        )

    def _written(
        self,
        held: list[KeyValue],
        records: Sequence[KeyValue],
        done: Done,
        code: ErrorCode,
        _base_offset: int,
    ) -> None:
        if self.is_closed:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if code in _OUTCOME_UNKNOWN:
            logger.warning(
                "record may be lost partition=%s error=%s", self.topic_partition, code.name
            )
            self.close()
            done(code)
            self._give_up(code)
            return
        if code in TOO_LARGE and held and len(held) + len(records) > 1:
            self._write_apart(held, records, done, code)
            return
        if held and code is not ErrorCode.NONE:
            logger.warning(
                "records held back partition=%s count=%d error=%s",
                self.topic_partition,
                len(held),
                code.name,
            )
            self._held[:0] = held
            self._held_bytes += sum(map(_size, held))
            self._hold(self)
        done(code)

    def _write_apart(
        self, held: list[KeyValue], records: Sequence[KeyValue], done: Done, code: ErrorCode
    ) -> None:
        """Together they are more than the topic's settings allow; each may fit by itself."""
        middle = len(held) if records else len(held) // 2
        rest = held[middle:]
        self._held = held[:middle]
        self._write([], _nobody_asks)
        if self.is_closed:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif self._held:
            # Refused: nothing may pass them.
            self._held += rest
            self._held_bytes += sum(map(_size, rest))
            done(code)
        else:
            self._held = rest
            self._write(records, done)

    def _appended(
        self, metadata: TransactionMetadata, transition: Transition, done: Done, code: ErrorCode
    ) -> None:
        if self.is_closed:
            done(code_for_clients(code))
            return
        if code is ErrorCode.NONE:
            metadata.complete(transition)
        else:
            metadata.cancel()
        done(code_for_clients(code))


def _size(record: KeyValue) -> int:
    return len(record[0]) + len(record[1] or b"")


def _nobody_asks(_code: ErrorCode) -> None:
    return
