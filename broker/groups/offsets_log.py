"""Writes of the coordinator to its partition of `__consumer_offsets`."""

from collections.abc import Callable, Sequence
from typing import Protocol

from broker.timer import Timer, TimerHandle
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from storage.clock import Clock
from storage.topic_partition import TopicPartition

KeyValue = tuple[bytes, bytes | None]
"""A record; without a value it is a tombstone."""

Committed = Callable[[int], None]
"""Called with the offset of the first record once the records cannot be lost any more."""

Done = Callable[[ErrorCode], None]
"""Called once with what the client is to be told."""

_CODES_FOR_CLIENTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def code_for_clients(code: ErrorCode) -> ErrorCode:
    """What a client of the coordinator is told of a failed write (Kafka's translation)."""
    return _CODES_FOR_CLIENTS.get(code, code)


class InternalAppender(Protocol):
    """The part of the replica manager that coordinators write through."""

    def append_internal(
        self,
        tp: TopicPartition,
        batch: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
    ) -> None:
        """Append, and call back with (NONE, base offset) when committed, or with an error."""
        ...


class OffsetsLog:
    """Appends to one partition; every write is answered, in time or with an error."""

    __slots__ = (
        "_appender",
        "_clock",
        "_codec",
        "_is_closed",
        "_timeout_ms",
        "_timer",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        appender: InternalAppender,
        clock: Clock,
        timer: Timer,
        timeout_ms: int,
        codec: int = 0,
    ) -> None:
        self.topic_partition = topic_partition
        self._appender = appender
        self._clock = clock
        self._timer = timer
        self._timeout_ms = timeout_ms
        self._codec = codec
        self._is_closed = False

    def close(self) -> None:
        """Refuse writes from now on: another shard has been, or will be, read from the log."""
        self._is_closed = True

    def append(
        self,
        records: Sequence[KeyValue],
        committed: Committed,
        done: Done,
        *,
        refused: Callable[[], None] | None = None,
    ) -> None:
        """Write records as one batch.

        Args:
            records: Keys and values, all or none of which become part of the log.
            committed: Called when they are committed, even after `done` has reported a time-out:
                what the log says is true, whatever a client was told.
            done: Called once: with NONE after `committed`, or with the client's error after a
                failure or after `offsets.commit.timeout.ms`.
            refused: Called when they will never be committed, before `done` if that was not told
                of a time-out.
        """
        if self._is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        now_ms = self._clock.now_ms()
        batch = build_batch([(key, value, (), now_ms) for key, value in records], codec=self._codec)
        write = _Write(committed, done, refused)
        self._appender.append_internal(self.topic_partition, batch, write.complete)
        if not write.is_complete:
            write.timeout = self._timer.call_later_ms(self._timeout_ms, write.time_out)


class _Write:
    __slots__ = ("_committed", "_done", "_refused", "is_complete", "timeout")

    def __init__(
        self, committed: Committed, done: Done, refused: Callable[[], None] | None
    ) -> None:
        self._committed = committed
        self._refused = refused
        self._done: Done | None = done
        self.is_complete = False
        self.timeout: TimerHandle | None = None

    def complete(self, code: ErrorCode, base_offset: int) -> None:
        self.is_complete = True
        if self.timeout is not None:
            self.timeout.cancel()
        if code is ErrorCode.NONE:
            self._committed(base_offset)
            done, self._done = self._done, None
            if done is not None:
                done(code)
            return
        if self._refused is not None:
            self._refused()
        self._answer(code)

    def time_out(self) -> None:
        self._answer(ErrorCode.REQUEST_TIMED_OUT)

    def _answer(self, code: ErrorCode) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(code_for_clients(code))
