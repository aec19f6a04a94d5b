"""Rows of a range of offsets, by Fetch from the partition's leader.

    Fetch ─> whole batches ─> the next Fetch goes out ─> rows of these ─> ...

Batches are compared with their own sums, as consumers do. The answers hold what Fetch gives to any
consumer, so one decoder serves both tiers.

                                        below the log start: lost up to there
    answer ── OFFSET_OUT_OF_RANGE ──┼── above the end: lost up to the end of the range
                                    └── in between: the leader has changed, again
    answer ── nothing in it, for a while ── at the log's end: lost up to the end of the range
    answer ── nothing in it, although all of the range may be read and is local: nothing is there

A while, since remote storage may be slow, and a new leader does not know its high watermark yet.
The last is a range whose records were compacted away, up to the end of the log: a leader that has
records behind them gives those at once.

Source: Kafka, UnifiedLog.java (read: all messages from the offset on have been deleted).

With failOnDataLoss=false what is lost is skipped and reported; else it is an error.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pipeline.plan.piece import BrokerPiece
from pipeline.read.broker.client import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    BrokerClient,
    FetchedBatches,
    PendingFetch,
)
from pipeline.read.broker.errors import BrokerError, OffsetsGoneError, TopicGoneError
from pipeline.read.broker.fetched_aborts import aborted_ranges
from pipeline.read.decode.row_decoder import RowDecoder
from pipeline.read.errors import BrokenBatchError
from pipeline.read.loss import LossReport
from pipeline.read.read_errors import DamagedDataError, LostOffsetsError
from protocol.errors import DecodeError
from protocol.records.batch import HEADER_SIZE, LOG_OVERHEAD, read_header
from storage.environment.clock import Clock

OUT_OF_RANGE_ATTEMPTS: Final = 3
"""Answers that say an offset is out of range while ListOffsets says that it is not."""


EMPTY_ANSWERS: Final = 3
"""One after the other, each after the broker's whole wait for records, before it is believed that
there are none."""


class _Batches(NamedTuple):
    """Whole batches of an answer; `needed` is the size of the first if not even that is whole."""

    data: memoryview
    next_offset: int
    needed: int


class BrokerRows:
    """Rows of one piece.

    Attributes:
        next_offset: Of what comes next: all rows below it were given, or are reported as lost.
    """

    def __init__(
        self,
        piece: BrokerPiece,
        client: BrokerClient,
        decoder: RowDecoder,
        clock: Clock,
        loss: LossReport | None,
        *,
        read_committed: bool,
    ) -> None:
        """Ask for nothing yet.

        Args:
            piece: Which rows.
            client: Asks the leader.
            decoder: Of the piece's partition.
            clock: For how long an empty answer is borne.
            loss: Collects what is skipped; None: nothing may be.
            read_committed: Leave out aborted transactions.
        """
        self.next_offset = piece.start_offset
        self._piece = piece
        self._client = client
        self._decoder = decoder
        self._clock = clock
        self._loss = loss
        self._read_committed = read_committed
        self._max_bytes = client.options.fetch_max_bytes
        self._name = f"{piece.partition.topic}-{piece.partition.partition}"

    def rows(self) -> Iterator[Any]:
        """All rows, as Arrow record batches.

        Raises:
            LostOffsetsError: The leader does not have them any more, or the topic is gone.
            DamagedDataError: A batch is not what was written.
            BrokerError: The leader cannot be asked, or gives nothing.
        """
        piece = self._piece
        pending: PendingFetch | None = None
        out_of_range = empty = 0
        progress_ms = self._clock.monotonic_ms()
        while self.next_offset < piece.end_offset:
            try:
                fetched = (pending or self._ask(self.next_offset)).wait()
            except (OffsetsGoneError, TopicGoneError) as error:
                pending = None
                out_of_range += 1
                self._gone(error, out_of_range)
                continue
            pending = None
            found = self._whole_batches(fetched)
            if not found.data:
                empty = empty + 1 if self._may_all_be_read(found, fetched) else 0
                if empty >= EMPTY_ANSWERS and self._is_local():
                    self.next_offset = piece.end_offset
                else:
                    self._bear_emptiness(found, fetched, progress_ms)
                continue
            progress_ms = self._clock.monotonic_ms()
            out_of_range = empty = 0
            if found.next_offset < piece.end_offset:
                pending = self._ask(found.next_offset)
            yield from self._decoded(found, fetched)
            self.next_offset = max(self.next_offset, found.next_offset)

    def _ask(self, offset: int) -> PendingFetch:
        return self._client.begin_fetch(
            self._piece.partition,
            offset,
            read_committed=self._read_committed,
            leader_epoch=self._piece.leader_epoch,
            max_bytes=self._max_bytes,
        )

    def _whole_batches(self, fetched: FetchedBatches) -> _Batches:
        """What of an answer is whole."""
        records = fetched.records
        end = len(records)
        at = 0
        next_offset = self.next_offset
        needed = 0
        while end - at >= LOG_OVERHEAD:
            size = int.from_bytes(records[at + 8 : at + 12], "big", signed=True) + LOG_OVERHEAD
            if size < HEADER_SIZE:
                raise self._damaged(at, f"a batch claims {size} bytes, less than its header")
            if size > end - at:
                needed = 0 if at else size
                break
            next_offset = read_header(records, at).next_offset
            at += size
        if at and next_offset <= self.next_offset:
            # Or it would be asked for again and again.
            raise self._damaged(0, f"batches up to offset {next_offset - 1} came again")
        return _Batches(records[:at], next_offset, needed)

    def _decoded(self, found: _Batches, fetched: FetchedBatches) -> Iterator[Any]:
        piece = self._piece
        data = found.data
        begun = self.next_offset
        while data:
            try:
                aborted = aborted_ranges(data, fetched.aborted) if self._read_committed else ()
                yield from self._decoder.decode(
                    data,
                    begun,
                    piece.end_offset,
                    aborted,
                    read_committed=self._read_committed,
                    check_crc=True,
                )
            except DecodeError as error:
                raise self._damaged(0, str(error)) from error
            except BrokenBatchError as error:
                if self._loss is None:
                    raise self._damaged(error.position, error.problem) from error
                first = begun if error.base_offset is None else max(begun, error.base_offset)
                behind = error.next_offset
                if error.next_position is None or behind is None:
                    behind = found.next_offset
                end = min(max(behind, first), piece.end_offset)
                self._loss.add(first, end, f"a batch is broken: {error.problem}")
                begun = end
                data = data[len(data) if error.next_position is None else error.next_position :]
            else:
                return

    # -- what is not there -------------------------------------------------------------------

    def _damaged(self, position: int, problem: str) -> DamagedDataError:
        key = f"{self._name}, fetched from offset {self.next_offset}"
        return DamagedDataError(key, position, problem)

    def _may_all_be_read(self, found: _Batches, fetched: FetchedBatches) -> bool:
        """Whether the leader would have given what there is of the range, and has nothing."""
        limit = fetched.last_stable_offset if self._read_committed else fetched.high_watermark
        return not found.needed and limit >= self._piece.end_offset

    def _is_local(self) -> bool:
        """Whether the leader reads the rest of the range from its own disk, where nothing is late.

        Slow remote storage cannot be distinguished from a range without records.
        """
        topic, _, number = self._piece.partition
        wanted = {(topic, number): EARLIEST_LOCAL}
        listed = self._client.list_offsets(wanted, read_committed=False)[topic, number]
        return 0 <= listed.offset <= self.next_offset

    def _bear_emptiness(self, found: _Batches, fetched: FetchedBatches, progress_ms: float) -> None:
        """An answer without a whole batch: remote storage may be slow, or the batch is large."""
        if found.needed > self._max_bytes:
            self._max_bytes = found.needed
            return
        waited_ms = self._clock.monotonic_ms() - progress_ms
        if waited_ms < self._client.options.retry_timeout_ms:
            self._client.pause()
            return
        if 0 <= fetched.high_watermark <= self.next_offset:
            self._lose_the_rest(fetched.high_watermark)
            return
        raise BrokerError(
            f"{self._name}: the leader gives no batch from offset {self.next_offset} for "
            f"{waited_ms:.0f} ms, while its log reaches from {fetched.log_start_offset} to "
            f"{fetched.high_watermark} and {self._piece.end_offset - 1} is wanted"
        )

    def _gone(self, error: OffsetsGoneError | TopicGoneError, attempt: int) -> None:
        """Find out what is gone, and go on behind it."""
        topic, _, number = self._piece.partition
        one = (topic, number)
        try:
            self._client.check_incarnation(self._piece.partition)
        except TopicGoneError as gone:
            self._lose(self._piece.end_offset, str(gone))
            return
        start = self._client.list_offsets({one: EARLIEST}, read_committed=False)[one].offset
        end = self._client.list_offsets({one: LATEST}, read_committed=False)[one].offset
        if self.next_offset < start:
            self._lose(min(start, self._piece.end_offset), f"the log starts at {start}")
        elif self.next_offset >= end:
            self._lose_the_rest(end)
        elif attempt >= OUT_OF_RANGE_ATTEMPTS:
            raise error

    def _lose_the_rest(self, log_end: int) -> None:
        reason = f"the log ends at {log_end}: it was cut off, or restored"
        self._lose(self._piece.end_offset, reason)

    def _lose(self, end: int, reason: str) -> None:
        if self._loss is None:
            raise LostOffsetsError(self._piece.partition, self.next_offset, end, reason)
        self._loss.add(self.next_offset, end, reason)
        self.next_offset = end
