"""Rows of a piece, on an executor: from the bucket, and from other sources where it lacks them.

                 object is gone                   nothing there          no broker, or not there
    the segment ────────────────> a fresh listing ────────────> broker ─────────────> lost

A listing is asked once: of a segment that retention or a new copy has removed meanwhile another
copy may have the offsets. What is lost is an error, or with failOnDataLoss=false skipped and
reported in one warning.
"""

import atexit
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from pipeline.plan.bucket import BucketOptions
from pipeline.plan.errors import DamagedBucketError
from pipeline.plan.piece import BrokerPiece, Piece, RemotePiece
from pipeline.plan.replan import replan
from pipeline.read.broker.client import BrokerClient
from pipeline.read.broker.options import BrokerOptions
from pipeline.read.broker.rows import BrokerRows
from pipeline.read.bytes.open_buckets import LentBucket, OpenBuckets
from pipeline.read.decode.row_decoder import RowDecoder
from pipeline.read.decode.row_schema import KAFKA_COLUMNS
from pipeline.read.loss import LossReport
from pipeline.read.piece.segment_rows import SegmentRows
from pipeline.read.read_errors import DamagedDataError, LostOffsetsError, ReadError
from storage.environment.clock import Clock, SystemClock
from storage.environment.filesystem import Filesystem
from storage.environment.local_filesystem import LocalFilesystem
from tiered.errors import ObjectNotFoundError

BUCKET_TIER: Final = "bucket"
BROKER_TIER: Final = "broker"


class ReadOptions(NamedTuple):
    """Options of reading pieces. Pickled to executors; its text has no secret.

    Attributes:
        bucket: For remote pieces.
        broker: For broker pieces, and for what the bucket has lost.
        columns: Of `row_schema.COLUMNS`; what is not named is not copied.
        read_committed: Leave out aborted transactions.
        fail_on_data_loss: What cannot be read is an error, not left out with a warning.
        kernel: Which decoder of records, by name; None: the fastest there is.
    """

    bucket: BucketOptions | None = None
    broker: BrokerOptions | None = None
    columns: tuple[str, ...] = KAFKA_COLUMNS[:-1]
    read_committed: bool = False
    fail_on_data_loss: bool = True
    kernel: str | None = None


def read_piece(piece: Piece, options: ReadOptions) -> Iterator[Any]:
    """Rows of a piece in the order of their offsets, as `pyarrow.RecordBatch`es.

    They have at most 4 MiB, or one row. Every byte was compared with a sum. Buckets stay open for
    the next piece; a worker reads one piece at a time.

    Raises:
        DamagedDataError: Bytes are not those that were written.
        LostOffsetsError: Offsets that were planned are nowhere any more.
        PlanError: The bucket cannot be opened.
        ReadError: The options do not say where the piece is.
        RemoteStorageError: The store cannot be read, after its deadlines and retries.
    """
    return PieceReader(options, _BUCKETS, LocalFilesystem(), SystemClock()).rows(piece)


_BUCKETS: Final = OpenBuckets()
"""Of this process."""

# Else libraries complain, at a program's end, of connections that are not closed.
atexit.register(_BUCKETS.close)


class PieceReader:
    """Reads pieces, one after the other; see the module."""

    def __init__(
        self,
        options: ReadOptions,
        buckets: OpenBuckets,
        filesystem: Filesystem,
        clock: Clock,
        connect: Callable[[BrokerOptions], BrokerClient] = BrokerClient,
    ) -> None:
        self._options = options
        self._buckets = buckets
        self._filesystem = filesystem
        self._clock = clock
        self._connect = connect

    def rows(self, piece: Piece) -> Iterator[Any]:
        """As `read_piece`."""
        loss = LossReport(piece.partition)
        try:
            if isinstance(piece, RemotePiece):
                yield from self._remote(piece, loss)
            else:
                yield from self._broker(piece, loss)
        finally:
            loss.report()

    def _remote(self, piece: RemotePiece, loss: LossReport) -> Iterator[Any]:
        lent = self._lend(piece)
        first = self._segment(piece, lent, loss)
        try:
            yield from first.rows()
        except ObjectNotFoundError as error:
            gone = error
        else:
            return
        reached = first.next_offset
        for other in self._planned_again(piece, lent, reached):
            if other.start_offset > reached:
                yield from self._elsewhere(piece, reached, other.start_offset, gone, loss)
            rows = self._segment(other, lent, loss)
            try:
                yield from rows.rows()
            except ObjectNotFoundError as error:
                gone = error
            reached = max(reached, rows.next_offset)
        if reached < piece.end_offset:
            yield from self._elsewhere(piece, reached, piece.end_offset, gone, loss)

    def _lend(self, piece: Piece) -> LentBucket:
        if self._options.bucket is None:
            name = f"{piece.partition.topic}-{piece.partition.partition}"
            raise ReadError(f"{name}: a piece of a bucket, and no bucket is given")
        return self._buckets.lend(self._options.bucket)

    def _segment(self, piece: RemotePiece, lent: LentBucket, loss: LossReport) -> SegmentRows:
        options = self._options
        return SegmentRows(
            piece,
            lent,
            RowDecoder(options.columns, piece.partition, options.kernel, tier=BUCKET_TIER),
            self._filesystem,
            None if options.fail_on_data_loss else loss,
            read_committed=options.read_committed,
        )

    def _planned_again(
        self, piece: RemotePiece, lent: LentBucket, start: int
    ) -> Sequence[RemotePiece]:
        """What the bucket has of the piece's offsets from `start` on, as of now."""
        bucket, thread = lent
        options = self._options
        try:
            call = replan(bucket, piece, start, read_committed=options.read_committed)
            return thread.run(call).pieces
        except DamagedBucketError as error:
            if options.fail_on_data_loss and options.broker is None:
                raise DamagedDataError(error.key, error.position, error.problem) from error
            return ()

    def _elsewhere(
        self,
        piece: RemotePiece,
        start: int,
        end: int,
        gone: ObjectNotFoundError,
        loss: LossReport,
    ) -> Iterator[Any]:
        """Offsets that the bucket has lost."""
        if self._options.broker is not None:
            yield from self._broker(BrokerPiece(piece.partition, -1, start, end), loss)
        elif self._options.fail_on_data_loss:
            raise LostOffsetsError(piece.partition, start, end, str(gone)) from gone
        else:
            loss.add(start, end, str(gone))

    def _broker(self, piece: BrokerPiece, loss: LossReport) -> Iterator[Any]:
        options = self._options
        if options.broker is None:
            name = f"{piece.partition.topic}-{piece.partition.partition}"
            raise ReadError(f"{name}: a piece of a broker, and no broker is given")
        with self._connect(options.broker) as client:
            rows = BrokerRows(
                piece,
                client,
                RowDecoder(options.columns, piece.partition, options.kernel, tier=BROKER_TIER),
                self._clock,
                None if options.fail_on_data_loss else loss,
                read_committed=options.read_committed,
            )
            yield from rows.rows()
