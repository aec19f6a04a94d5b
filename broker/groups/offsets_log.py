"""Writes of the coordinator to its partition of `__consumer_offsets`.

    append ──────────────────────────────────────────────────> one batch, one append
                                                                     ^ behind what was gathered
    gather ──┬─ what else comes in this turn of the loop ──┬─> one batch, one append
    gather ──┘   (at most GATHERED_RECORDS_MAX records,    │
    gather ──────  GATHERED_BYTES_MAX bytes)  ─────────────┘
             until the turn ends, it is full, or somebody must know (`flush`)

Writes are in the log in the order of the calls. Those that share a batch share its fate, except for
its size: where the topic takes no batch as large as all of them, each is appended by itself.

Source of the idea: Kafka, CoordinatorRuntime.java (adaptive `group.coordinator.append.linger.ms`,
which waits for what is queued already and for no more).
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from broker.runtime.timer import Timer, TimerHandle
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.environment.clock import Clock
from storage.types.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

KeyValue = tuple[bytes, bytes | None]
"""A record; without a value it is a tombstone."""

Committed = Callable[[int], None]
"""Called with the offset of the first record once the records cannot be lost any more."""

Done = Callable[[ErrorCode], None]
"""Called once with what the client is to be told."""

AtTurnEnd = Callable[[Callable[[], None]], object]
"""Has something done when the loop's turn ends (`TurnEnd.call`), or after a linger."""

GATHERED_RECORDS_MAX: Final = 250
"""Two milliseconds of applying and answering commits of one partition each."""

GATHERED_BYTES_MAX: Final = 128 * 1024
"""Of keys and values: an eighth of what a topic allows by default."""

_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

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
        "_at_turn_end",
        "_clock",
        "_codec",
        "_gathered",
        "_is_closed",
        "_is_due",
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
        at_turn_end: AtTurnEnd | None = None,
    ) -> None:
        """Without `at_turn_end` nothing is gathered."""
        self.topic_partition = topic_partition
        self._appender = appender
        self._clock = clock
        self._timer = timer
        self._timeout_ms = timeout_ms
        self._codec = codec
        self._is_closed = False
        self._at_turn_end = at_turn_end
        self._is_due = False
        self._gathered: _Gathered | None = None

    def close(self) -> None:
        """Refuse writes from now on: another shard has been, or will be, read from the log."""
        # What was gathered is still written; whoever hears of that writes nothing behind it.
        self._is_closed = True
        self.flush()

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
        if self._gathered is not None:
            self.flush()
        self._append(records, _Write(committed, done, refused))

    def batch_of(self, records: Sequence[KeyValue], *, codec: int | None = None) -> bytearray:
        """The batch that records become; may be called on any thread."""
        now_ms = self._clock.now_ms()
        return build_batch(
            [(key, value, (), now_ms) for key, value in records],
            codec=self._codec if codec is None else codec,
        )

    def append_batch(
        self, batch: bytearray, committed: Committed, done: Done, *, refused: Callable[[], None]
    ) -> None:
        """As `append`, of a large batch that was built elsewhere by `batch_of`."""
        if self._is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        if self._gathered is not None:
            self.flush()
        self._append_built(batch, _Write(committed, done, refused))

    def append_whole(
        self,
        records: Sequence[KeyValue],
        committed: Committed,
        done: Done,
        *,
        refused: Callable[[], None],
    ) -> bool:
        """As `append`, of a change so large that it may have to be compressed.

        Returns:
            False if it is too large for one batch all the same; then nothing has happened.
        """
        if self._is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return True
        self.flush()
        is_too_large = False

        def too_large() -> None:
            nonlocal is_too_large
            is_too_large = True

        for codec in (self._codec, Codec.ZSTD):
            is_too_large = False
            batch = self.batch_of(records, codec=codec)
            self._append_built(batch, _Write(committed, done, refused), too_large)
            if not is_too_large:
                return True
        return False

    def gather(self, records: Sequence[KeyValue], committed: Committed, done: Done) -> None:
        """Write records in one batch with others that come in this turn of the loop.

        As `append` otherwise. Nothing of it has happened when this returns.
        """
        if self._at_turn_end is None or self._is_closed:
            self.append(records, committed, done)
            return
        size = 0
        for key, value in records:
            size += len(key) + (0 if value is None else len(value))
        gathered = self._gathered
        if gathered is not None and not gathered.has_room(len(records), size):
            self.flush()
            gathered = self._gathered
        if gathered is None:
            gathered = self._gathered = _Gathered()
            if not self._is_due:
                self._is_due = True
                self._at_turn_end(self._turn_ended)
        gathered.add(records, size, committed, done)

    def _turn_ended(self) -> None:
        self._is_due = False
        self.flush()

    def flush(self) -> None:
        """Append what was gathered: somebody is to see it, or to write behind it."""
        gathered = self._gathered
        if gathered is None:
            return
        self._gathered = None
        parts = gathered.parts
        if len(parts) > 1:
            write = _Write(gathered.committed, gathered.done, None)
            self._append_safely(gathered.records, write, lambda: self._append_each(parts))
        else:
            self._append_each(parts)

    def _append_each(self, parts: "Sequence[_Part]") -> None:
        for part in parts:
            self._append_safely(part.records, _Write(part.committed, part.done, None))

    def _append_safely(
        self,
        records: Sequence[KeyValue],
        write: "_Write",
        too_large: Callable[[], None] | None = None,
    ) -> None:
        """As `_append`, for those who have left: whatever goes wrong, they are to hear of it.

        Whoever has them written (`flush`) asked for something else, and must not hear of it.
        """
        try:
            self._append(records, write, too_large)
        except Exception:
            logger.exception("gathered records not written partition=%s", self.topic_partition)
            write.break_off()

    def _append(
        self,
        records: Sequence[KeyValue],
        write: "_Write",
        too_large: Callable[[], None] | None = None,
    ) -> None:
        """Append a batch; `too_large` is called instead of telling `write` that it is."""
        self._append_built(self.batch_of(records), write, too_large)

    def _append_built(
        self, batch: bytearray, write: "_Write", too_large: Callable[[], None] | None = None
    ) -> None:
        def complete(code: ErrorCode, base_offset: int) -> None:
            if code in _TOO_LARGE and too_large is not None:
                write.is_complete = True
                too_large()
            else:
                write.complete(code, base_offset)

        self._appender.append_internal(
            self.topic_partition, batch, write.complete if too_large is None else complete
        )
        if not write.is_complete:
            write.timeout = self._timer.call_later_ms(self._timeout_ms, write.time_out)


class _Part(NamedTuple):
    """One caller's share of what is gathered."""

    records: Sequence[KeyValue]
    committed: Committed
    done: Done


class _Gathered:
    """Writes that become one batch; one whose callback fails keeps no other from being told."""

    __slots__ = ("_size", "parts", "records")

    def __init__(self) -> None:
        self._size = 0
        self.records: list[KeyValue] = []
        self.parts: list[_Part] = []

    def has_room(self, count: int, size: int) -> bool:
        """Whether so many records of so many bytes may come in, too."""
        return (
            len(self.records) + count <= GATHERED_RECORDS_MAX
            and self._size + size <= GATHERED_BYTES_MAX
        )

    def add(self, records: Sequence[KeyValue], size: int, committed: Committed, done: Done) -> None:
        self._size += size
        self.records.extend(records)
        self.parts.append(_Part(records, committed, done))

    def committed(self, base_offset: int) -> None:
        for part in self.parts:
            try:
                part.committed(base_offset)
            except Exception:
                logger.exception("a gathered write cannot be taken in offset=%d", base_offset)
            base_offset += len(part.records)

    def done(self, code: ErrorCode) -> None:
        for part in self.parts:
            try:
                part.done(code)
            except Exception:
                logger.exception("a gathered write cannot be answered code=%s", code.name)


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

    def break_off(self) -> None:
        """Nobody knows what became of it."""
        if self.is_complete:
            self._answer(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self.complete(ErrorCode.UNKNOWN_SERVER_ERROR, -1)

    def _answer(self, code: ErrorCode) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(code_for_clients(code))
