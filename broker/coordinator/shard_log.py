"""Appends of one shard to its partition.

    append ──────────────────────────────────────────────────> one batch, one append
                                                                     ^ behind gathered records
    gather ──┬─ other records of this event loop iteration ────> one batch, one append
    gather ──┘  (at most GATHERED_RECORDS_MAX records, GATHERED_BYTES_MAX bytes),
                until the iteration ends, it is full, or a caller needs them written (`flush`)

    append_later ──> held (`deferred_records`) ──> before the next record, in the same batch

Records are in the log in the order of the calls. Those that share a batch share its fate, except
for its size: where the topic takes no batch as large as all of them, it is split.

How an append ends (`outcome`), and when memory changes (decision 13):

                apply_at=COMMIT                          apply_at=APPEND
    written     -                                        `apply`: visible already
    committed   `apply`, `done(NONE)`                    `done(NONE)`
    refused     nothing was changed, `done(why)`         nothing was changed, `done(why)`
    unknown     the shard fails, `done(why)`             the shard fails, `done(why)`

Records that are written and then refused, since another broker leads or the partition has left, are
unknown: the next leader may have them. A log that has failed, or was closed by a resignation,
refuses all appends: memory may differ from the log, and another shard is, or will be, loaded from
it. A caller that changed memory before the append fails the log when that is refused (`fail`).

Source of the idea: Kafka, CoordinatorRuntime.java (adaptive `group.coordinator.append.linger.ms`,
which waits only for events that are queued already).
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol

from broker.coordinator.outcome import Done, KeyValue
from broker.coordinator.writes import Apply, Gathered, Part, Write
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch, build_plain_batch
from protocol.records.compression import Codec
from storage.environment.environment import Environment
from storage.types.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

AtIterationEnd = Callable[[Callable[[], None]], object]
"""Calls back when the loop's iteration ends (`IterationEnd.call`), or after a linger."""

HELD_MAX: Final = 100
HELD_BYTES_MAX: Final = 64 * 1024
"""Most deferred records, and their bytes: far below the largest batch."""


class ApplyAt(Enum):
    """When records change memory; see the module."""

    APPEND = "append"
    COMMIT = "commit"


class CoordinatorAppender(Protocol):
    """The replica manager's interface for coordinators' appends."""

    def takes_records(self, topic_partition: TopicPartition) -> bool:
        """Whether enough replicas are in sync for an append; True if the partition is not led."""
        ...

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
        *,
        timeout_ms: float,
    ) -> int:
        """Append a batch; return its base offset, or -1 if nothing was written.

        `on_committed` is called once, perhaps before this returns: with (NONE, base offset) when
        the batch is committed, else with an error and -1 (`outcome`), REQUEST_TIMED_OUT after
        `timeout_ms`.
        """
        ...


class ShardLog:
    """See the module.

    Attributes:
        topic_partition: Written to.
        is_closed: Whether the shard has failed, or was unloaded.
    """

    __slots__ = (
        "_answer_within_ms",
        "_appender",
        "_at_iteration_end",
        "_clock",
        "_codec",
        "_gathered",
        "_held",
        "_held_bytes",
        "_hold",
        "_is_due",
        "_last_write",
        "_on_failed",
        "_refusals",
        "_timeout_ms",
        "_timer",
        "is_closed",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        appender: CoordinatorAppender,
        environment: Environment,
        timeout_ms: float,
        on_failed: Callable[[ErrorCode | None], None],
        codec: int = 0,
        answer_within_ms: float | None = None,
        at_iteration_end: AtIterationEnd | None = None,
        hold: "Callable[[ShardLog, int], None] | None" = None,
    ) -> None:
        """A log whose shard is about to be, or has been, loaded.

        Args:
            topic_partition: Written to.
            appender: Writes batches.
            environment: Clock of the records' timestamps; timer of `answer_within_ms`.
            timeout_ms: After which the outcome of an append is unknown.
            on_failed: Called at most once, after `is_closed` was set, with why.
            codec: Compression of the batches.
            answer_within_ms: After which callers get the code of REQUEST_TIMED_OUT while the append
                goes on: its outcome is applied all the same. None: they wait for the append.
            at_iteration_end: Without it nothing is gathered.
            hold: Called with the first deferred record (`append_later`) and 0, and whenever the
                deferred ones were refused, with how often in a row; it has to call `write_held`
                after a delay.
        """
        self.topic_partition = topic_partition
        self.is_closed = False
        self._appender = appender
        self._clock = environment.clock
        self._timeout_ms = timeout_ms
        self._on_failed = on_failed
        self._codec = codec
        self._timer = environment.timer
        self._answer_within_ms = answer_within_ms
        self._at_iteration_end = at_iteration_end
        self._is_due = False
        self._last_write: Write | None = None
        self._gathered: Gathered | None = None
        self._hold = hold
        self._held: list[KeyValue] = []
        self._held_bytes = 0
        self._refusals = 0

    # -- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Refuse all further appends: another shard has been, or will be, loaded from the log.

        Gathered records are still written, so that the other shard reads them; deferred ones are
        dropped, since they follow from records that were written before.
        """
        self.is_closed = True
        self._held.clear()
        self._held_bytes = 0
        self.flush()

    def fail(self, code: ErrorCode | None = None) -> None:
        """Close the log, and have the shard loaded again: memory may differ from the log.

        `code`: why; None if an append was refused whose change was made in memory before.
        """
        if not self.is_closed:
            self.close()
            self._on_failed(code)

    # -- writes ----------------------------------------------------------------------------------

    @property
    def takes_records(self) -> bool:
        """Whether an append would not be refused for too few replicas in sync.

        That may last for hours. Who changes memory before the append asks first: after each
        refusal the whole shard is loaded again.
        """
        return self._appender.takes_records(self.topic_partition)

    def append(
        self,
        records: Sequence[KeyValue],
        apply: Apply | None,
        done: Done,
        *,
        apply_at: ApplyAt = ApplyAt.COMMIT,
        refused: Callable[[], None] | None = None,
    ) -> None:
        """Write records as one batch.

        Args:
            records: Keys and values, all or none of which become part of the log.
            apply: Called once they are in the log, or committed; see `apply_at`. A log that was
                closed meanwhile calls it all the same: the records are in it. None if `done`
                changes memory.
            done: Called once: with NONE when they are committed, else with the client's error.
            apply_at: When memory changes.
            refused: Called before `done` when nothing was written, or the outcome is unknown.
        """
        if self._gathered is not None:
            self.flush()
        if self.is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        write = Write(self, apply, done, refused)
        if apply_at is ApplyAt.APPEND:
            write.at_append = True
        if self._held:
            self._append_behind_held(records, write)
        elif self._codec:
            self._append_built(self.batch_of(records), write)
        else:
            self._append_built(build_plain_batch(records, self._clock.now_ms()), write)

    def batch_of(self, records: Sequence[KeyValue], *, codec: int | None = None) -> bytearray:
        """Encode records as a batch; may be called on any thread."""
        now_ms = self._clock.now_ms()
        if codec is None:
            codec = self._codec
        if not codec:
            return build_plain_batch(records, now_ms)
        return build_batch([(key, value, (), now_ms) for key, value in records], codec=codec)

    def append_batch(
        self, batch: bytearray, apply: Apply, done: Done, *, refused: Callable[[], None]
    ) -> None:
        """Append a large batch that was built elsewhere by `batch_of`; see `append`."""
        self.flush()
        if self.is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return
        self._append_built(batch, Write(self, apply, done, refused))

    def append_whole(
        self,
        records: Sequence[KeyValue],
        apply: Apply,
        done: Done,
        *,
        refused: Callable[[], None],
    ) -> bool:
        """Append a change so large that it may have to be compressed; see `append`.

        Returns:
            False if it is too large for one batch even so; then nothing was written.
        """
        self.flush()
        if self.is_closed:
            done(ErrorCode.NOT_COORDINATOR)
            return True
        is_too_large = False

        def too_large() -> None:
            nonlocal is_too_large
            is_too_large = True

        for codec in (self._codec, Codec.ZSTD):
            is_too_large = False
            write = Write(self, apply, done, refused, too_large)
            self._append_built(self.batch_of(records, codec=codec), write)
            if not is_too_large:
                return True
        return False

    def when_committed(self, done: Done) -> None:
        """Call `done` when everything appended so far is committed; with an error if it is not.

        For answers out of memory that changed at APPEND: what they say could still be lost.
        """
        self.flush()
        if self.is_closed:
            done(ErrorCode.NOT_COORDINATOR)
        elif self._last_write is None or self._last_write.is_complete:
            done(ErrorCode.NONE)
        else:
            self._last_write.behind.append(done)

    def _append_built(self, batch: bytearray, write: Write) -> None:
        if write.at_append:
            write.early = []
        base_offset = self._appender.append_coordinated(
            self.topic_partition, batch, write.complete, timeout_ms=self._timeout_ms
        )
        # Read by outcomes that are still to come.
        write.is_written = base_offset >= 0
        if write.at_append:
            write.appended(base_offset)
        if write.is_complete:
            return
        if write.is_written:
            self._last_write = write
        if self._answer_within_ms is not None:
            write.timeout = self._timer.call_later_ms(self._answer_within_ms, write.time_out)

    # -- gathered --------------------------------------------------------------------------------

    def gather(self, records: Sequence[KeyValue], apply: Apply, done: Done) -> None:
        """Write records in one batch with others of this event loop iteration.

        As `append` at COMMIT otherwise. No callback is called before this returns.
        """
        if self._at_iteration_end is None or self.is_closed:
            self.append(records, apply, done)
            return
        size = 0
        for key, value in records:
            size += len(key) + (0 if value is None else len(value))
        gathered = self._gathered
        if gathered is not None and not gathered.has_room(len(records), size):
            self.flush()
            self.gather(records, apply, done)
            return
        if gathered is None:
            gathered = self._gathered = Gathered()
            if not self._is_due:
                self._is_due = True
                self._at_iteration_end(self._iteration_ended)
        gathered.add(records, size, apply, done)

    def _iteration_ended(self) -> None:
        self._is_due = False
        self.flush()

    def flush(self) -> None:
        """Append the gathered records now, since a caller reads them or appends after them."""
        gathered = self._gathered
        if gathered is None:
            return
        self._gathered = None
        parts = gathered.parts
        if len(parts) > 1:
            self._append_safely(
                gathered.records,
                Write(self, gathered.apply, gathered.done, None, lambda: self._append_each(parts)),
            )
        else:
            self._append_each(parts)

    def _append_each(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self._append_safely(part.records, Write(self, part.apply, part.done, None))

    def _append_safely(self, records: Sequence[KeyValue], write: Write) -> None:
        """Append for callers that have returned: errors go to their callbacks; see `append`.

        The caller of `flush` is another one, and must not get them.
        """
        try:
            if self._held:
                self._append_behind_held(records, write)
            else:
                self._append_built(self.batch_of(records), write)
        except Exception:
            logger.exception("append of gathered records failed partition=%s", self.topic_partition)
            write.break_off()

    # -- held ------------------------------------------------------------------------------------

    def append_later(self, record: KeyValue) -> None:
        """Defer a record until the log's next append, or a delay; the order of records is kept.

        For records that a reader of the log could derive. A refused append is retried until it
        succeeds.
        """
        if self.is_closed:
            return
        if not self._held:
            self._hold_on()
        self._held.append(record)
        self._held_bytes += _size(record)
        if len(self._held) >= HELD_MAX or self._held_bytes >= HELD_BYTES_MAX:
            self.write_held()

    def write_held(self) -> None:
        """Write the deferred records, if there are any."""
        if self._held and not self.is_closed:
            self._append_behind_held([], Write(self, None, _ignore_outcome, None))

    def _hold_on(self) -> None:
        assert self._hold is not None, "a log that defers records needs `hold`"
        self._hold(self, self._refusals)

    def _append_behind_held(self, records: Sequence[KeyValue], write: Write) -> None:
        if len(records) == 1 and len(records[0][1] or b"") > HELD_BYTES_MAX:
            # Together they might not fit. If these are refused, so are those after them.
            self.write_held()
            if self.is_closed:
                write.complete(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
                return
        held, self._held, self._held_bytes = self._held, [], 0
        if held:
            write.held = held
            write.records = records
            records = [*held, *records]
        write.is_complete = False
        self._append_built(self.batch_of(records), write)

    def hold_again(self, held: list[KeyValue], code: ErrorCode) -> None:
        """Defer refused records again: no later record may precede them."""
        self._refusals += 1
        if self._refusals == 1:
            # What refuses them may last for hours, and they are tried all the time.
            logger.warning(
                "append failed, records are kept until they can be appended "
                "partition=%s count=%d error=%s",
                self.topic_partition,
                len(held),
                code.name,
            )
        self._held[:0] = held
        self._held_bytes += sum(map(_size, held))
        self._hold_on()

    def held_written(self) -> None:
        """What was deferred is committed; say so if it had been refused."""
        if self._refusals:
            logger.info(
                "records that were kept are appended partition=%s refused=%d",
                self.topic_partition,
                self._refusals,
            )
            self._refusals = 0

    def write_separately(
        self, held: list[KeyValue], records: Sequence[KeyValue], write: Write, code: ErrorCode
    ) -> None:
        """Split a batch that exceeds the topic's limits; each half may fit."""
        middle = len(held) if records else len(held) // 2
        rest = held[middle:]
        self._held = held[:middle]
        self._held_bytes = sum(map(_size, self._held))
        self.write_held()
        if self.is_closed:
            write.complete(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        elif self._held:
            # Refused: no later record may precede them.
            self._held += rest
            self._held_bytes += sum(map(_size, rest))
            write.complete(code, -1)
        else:
            self._held = rest
            self._held_bytes = sum(map(_size, rest))
            if rest or records:
                self._append_behind_held(records, write)


def _size(record: KeyValue) -> int:
    return len(record[0]) + len(record[1] or b"")


def _ignore_outcome(_code: ErrorCode) -> None:
    return
