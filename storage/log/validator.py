"""Validation of produced batches, before they are appended.

By default a batch is judged by its header and its sum, whatever the number of records: one
comparison chain, then CRC-32C. The records are walked only where a rule is about records:

    cleanup.policy has compact     every record needs a key
    record.validation=full         structure, offsets and timestamps of every record
    compression.type not producer  a batch in another codec is packed again

Several batches may come in one call; all are judged before any is written.

    check                                        error (what a client sees is said there)
    length, CRC-32C, record structure            CorruptBatchError
    magic                                        UnsupportedFormatError
    size above max.message.bytes                 BatchTooLargeError; also of records
                                                 that decompress to more than twice of it
    sum of sizes above segment.bytes             BatchListTooLargeError
    codec bits 5 to 7                            UnsupportedCodecError
    message.timestamp.*.max.ms                   InvalidTimestampError; names the records
    base offset, counts, control bit, sequence   InvalidRecordError

Source: Kafka, LogValidator.java, UnifiedLog.java (analyzeAndValidateRecords).
"""

from typing import Final, TypeAlias

from config.topic import TopicConfig
from protocol.errors import DecodeError, DecompressedSizeError
from protocol.quick import plain_batch
from protocol.records.batch import (
    ATTRIBUTES_FIELD,
    BASE_TIMESTAMP_FIELD,
    BATCH_LENGTH_FIELD,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    MAX_TIMESTAMP_FIELD,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    crc32c,
    set_max_timestamp,
)
from protocol.records.record import check_records
from storage.errors import (
    BatchError,
    BatchListTooLargeError,
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedCodecError,
    UnsupportedFormatError,
)
from storage.records.walks import recompress, record_errors
from storage.types.append_origin import AppendOrigin

HeaderFields: TypeAlias = tuple[int, ...]
"""The thirteen fields of `BatchHeader`, as unpacked.

Not thirteen times `int`: mypyc would take a tuple of a known length apart, and make it anew, at
every call that it is passed to.
"""

CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
CODEC_LAST: Final = 4
KEEP_CODEC: Final = -1
NO_TIMESTAMP: Final = -1

PLAIN_MS_MAX: Final = 1 << 60
"""Bounds of timestamps beyond are left to `check`, the default of both among them: compiled code
adds and subtracts numbers of 62 bits without objects. It is 36 million years."""

NAMED_RECORDS_MAX: Final = 1_000
NAMED_BYTES_MAX: Final = 1 << 18
"""Of a batch that is refused for its timestamps; in a larger one no record is named: it would hold
the loop for longer than 10 ms."""

_CLIENT_FORBIDDEN: Final = CONTROL_BIT | TIMESTAMP_TYPE_BIT
_plain_batch: Final = plain_batch
_unpack: Final = HEADER.unpack_from
_CLIENT: Final = AppendOrigin.CLIENT


class BatchValidator:
    """The rules of one topic, taken out of its settings once.

    Attributes:
        is_special: A batch needs more than the header check: see `prepare`.
        log_append_time: `message.timestamp.type` is LogAppendTime.
    """

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_codec",
        "_level",
        "_max_message_bytes",
        "_plain_after_ms",
        "_plain_before_ms",
        "_records_size_max",
        "_require_key",
        "_segment_bytes",
        "_size_max",
        "_walk",
        "is_special",
        "log_append_time",
    )

    def __init__(self, config: TopicConfig) -> None:
        self._max_message_bytes = config.max_message_bytes
        self._segment_bytes = config.segment_bytes
        self._size_max = min(config.max_message_bytes, config.segment_bytes)
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._plain_before_ms = min(self._before_max_ms, PLAIN_MS_MAX)
        self._plain_after_ms = min(self._after_max_ms, PLAIN_MS_MAX)
        self._require_key = "compact" in config.cleanup_policy
        self._walk = self._require_key or config.record_validation == "full"
        self._codec = target_codec(config)
        self._level = codec_level(config)
        # A small batch may unpack to much more; twice the limit is what one request may cost.
        self._records_size_max = 2 * config.max_message_bytes
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self.is_special = self._walk or self._codec != KEEP_CODEC or self.log_append_time

    def check(
        self, records: memoryview, now_ms: int, origin: AppendOrigin, verify: bool
    ) -> list[HeaderFields]:
        """Judge all batches in `records` by their headers and sums.

        Touches nothing but the timestamp type: a client's LogAppendTime is taken for CreateTime.

        Args:
            records: One or more whole batches.
            now_ms: Wall clock, for the timestamp bounds.
            origin: Sequence, control and offset rules are for clients only.
            verify: Check the CRC. False only for batches built in this process.

        Returns:
            The header of each batch.

        Raises:
            BatchError: One of the kinds above; nothing may be written.
        """
        total = len(records)
        latest = now_ms + self._after_max_ms
        earliest = now_ms - self._before_max_ms
        headers: list[HeaderFields] = []
        position = 0
        while True:
            if total - position < HEADER_SIZE:
                raise _cut_off(records, position)
            fields: HeaderFields = _unpack(records, position)
            (
                base_offset,
                length,
                _,
                magic,
                crc,
                attributes,
                delta,
                base_timestamp,
                max_timestamp,
                producer_id,
                _,
                base_sequence,
                count,
            ) = fields
            size = length + LOG_OVERHEAD
            end = position + size
            if magic != MAGIC or end > total or size < HEADER_SIZE:
                raise _cut_off(records, position)
            if size > self._max_message_bytes and (
                origin is _CLIENT or not attributes & CONTROL_BIT
            ):
                # A marker always fits: without it a transaction would never end.
                raise BatchTooLargeError(
                    f"batch of {size} bytes is above max.message.bytes={self._max_message_bytes}"
                )
            if verify and crc32c(records[position + CRC_START : end]) != crc:
                raise CorruptBatchError(f"CRC-32C of the batch is not {crc:#010x} as it says")
            if attributes & CODEC_MASK > CODEC_LAST:
                raise UnsupportedCodecError(f"codec {attributes & CODEC_MASK} does not exist")
            if origin is _CLIENT:
                if (
                    base_offset != 0
                    or count != delta + 1
                    or count <= 0
                    or attributes & _CLIENT_FORBIDDEN
                    or (producer_id >= 0 and base_sequence < 0)
                ):
                    fields = self._judge_client(records, position, BatchHeader._make(fields))
            elif delta < 0:
                raise InvalidRecordError(f"batch has last offset delta {delta}")
            if not self.log_append_time and (
                max_timestamp > latest
                or (base_timestamp < earliest and base_timestamp != NO_TIMESTAMP)
            ):
                raise InvalidTimestampError(
                    f"timestamps {base_timestamp} to {max_timestamp} of the batch are out of "
                    f"range, they should be within [{earliest}, {latest}]",
                    _untimely(records[position:end], count, earliest, latest),
                )
            headers.append(fields)
            if end == total:
                break
            position = end
        if total > self._segment_bytes:
            raise BatchListTooLargeError(
                f"{total} bytes of batches are above segment.bytes={self._segment_bytes}"
            )
        return headers

    def check_plain(self, records: memoryview, now_ms: int) -> HeaderFields | None:
        """Judge a client's batch that is alone, of a topic that is not special, in one call.

        Returns:
            Its header, or None where `check` has to look, and to say what is wrong.
        """
        return _plain_batch(
            records, self._size_max, now_ms - self._plain_before_ms, now_ms + self._plain_after_ms
        )

    def check_own(self, records: memoryview, now_ms: int) -> HeaderFields | None:
        """Judge one batch that this process has just built: only the topic's settings can refuse.

        Returns:
            Its header, or None where `check` has to say what is wrong.
        """
        fields: HeaderFields = _unpack(records)
        size = len(records)
        if (
            fields[BATCH_LENGTH_FIELD] + LOG_OVERHEAD == size
            and size <= self._max_message_bytes
            and size <= self._segment_bytes
            and fields[MAX_TIMESTAMP_FIELD] <= now_ms + self._after_max_ms
            and fields[BASE_TIMESTAMP_FIELD] >= now_ms - self._before_max_ms
            and not self.log_append_time
        ):
            return fields
        return None

    @staticmethod
    def _judge_client(records: memoryview, position: int, header: BatchHeader) -> HeaderFields:
        """Refuse a client's batch, unless only its timestamp type is not a client's to set.

        That is written anew, as Kafka does: else whoever passes on batches that were fetched from a
        topic with LogAppendTime could not.
        """
        if header.base_offset != 0:
            raise InvalidRecordError(
                f"base offset of a produced batch must be 0, it is {header.base_offset}"
            )
        if header.last_offset_delta < 0:
            raise InvalidRecordError(f"batch has last offset delta {header.last_offset_delta}")
        if header.records_count <= 0:
            raise InvalidRecordError(f"batch claims {header.records_count} records")
        if header.records_count != header.last_offset_delta + 1:
            raise InvalidRecordError(
                f"batch claims {header.records_count} records and last offset delta "
                f"{header.last_offset_delta}"
            )
        if header.is_control:
            raise InvalidRecordError("clients are not allowed to write control records")
        if header.producer_id >= 0 and header.base_sequence < 0:
            raise InvalidRecordError(
                f"batch of producer {header.producer_id} has sequence {header.base_sequence}"
            )
        set_max_timestamp(
            records, position, header, log_append_time=False, timestamp=header.max_timestamp
        )
        return _unpack(records, position)

    def prepare(
        self,
        records: memoryview,
        headers: list[HeaderFields],
        now_ms: int,
        origin: AppendOrigin,
    ) -> tuple[memoryview, list[HeaderFields]]:
        """Do what `is_special` topics need, after `check`: walk, rewrite, stamp.

        Returns:
            The batches to write and their headers: the same memory, unless they were rewritten.

        Raises:
            BatchError: A record is at fault; `record_errors` says which.
        """
        is_client = origin is _CLIENT
        if self._walk and is_client:
            self._walk_records(records, headers, now_ms)
        if self._codec != KEEP_CODEC and is_client and any(self._differs(h) for h in headers):
            records = memoryview(self._rewrite(records, headers))
            headers = self.check(records, now_ms, origin, verify=False)
        if self.log_append_time:
            headers = self.stamp(records, headers, now_ms)
        return records, headers

    @property
    def works_by_record(self) -> bool:
        """Batches are decoded or compressed again: worth a thread when they are large."""
        return self._walk or self._codec != KEEP_CODEC

    def prepare_batches(self, records: memoryview, now_ms: int) -> memoryview:
        """Check, walk and pack a client's batches, before the append and in any thread.

        Pure: neither the log nor this object changes.

        Returns:
            What is to be appended with `prepared=True`: the same memory, unless recompressed.

        Raises:
            BatchError: As the append would say.
        """
        headers = self.check(records, now_ms, _CLIENT, True)
        if self._walk:
            self._walk_records(records, headers, now_ms)
        if self._codec != KEEP_CODEC and any(self._differs(h) for h in headers):
            records = memoryview(self._rewrite(records, headers))
            self.check(records, now_ms, _CLIENT, False)
        return records

    def stamp(
        self, records: memoryview, headers: list[HeaderFields], now_ms: int
    ) -> list[HeaderFields]:
        """Give all records the broker's time (LogAppendTime); the new headers."""
        position = 0
        for fields in headers:
            header = BatchHeader._make(fields)
            set_max_timestamp(records, position, header, log_append_time=True, timestamp=now_ms)
            position += header.batch_length + LOG_OVERHEAD
        return headers_of(records)

    def _walk_records(self, records: memoryview, headers: list[HeaderFields], now_ms: int) -> None:
        position = 0
        checks_time = not self.log_append_time
        for fields in headers:
            end = position + fields[BATCH_LENGTH_FIELD] + LOG_OVERHEAD
            try:
                errors = record_errors(
                    records[position:end],
                    max_size=self._records_size_max,
                    require_key=self._require_key,
                    timestamp_min=now_ms - self._before_max_ms if checks_time else None,
                    timestamp_max=now_ms + self._after_max_ms if checks_time else None,
                )
            except DecodeError as error:
                raise _unreadable(error) from error
            if errors:
                index, message = errors[0]
                kind = InvalidTimestampError if "timestamp" in message else InvalidRecordError
                raise kind(f"record {index} of the batch: {message}", tuple(errors))
            position = end

    def _differs(self, fields: HeaderFields) -> bool:
        return fields[ATTRIBUTES_FIELD] & CODEC_MASK != self._codec

    def _rewrite(self, records: memoryview, headers: list[HeaderFields]) -> bytearray:
        output = bytearray()
        position = 0
        for fields in headers:
            end = position + fields[BATCH_LENGTH_FIELD] + LOG_OVERHEAD
            try:
                output += recompress(
                    BatchHeader._make(fields),
                    records[position:end],
                    codec=self._codec,
                    level=self._level,
                    max_size=self._records_size_max,
                )
            except DecodeError as error:
                raise _unreadable(error) from error
            position = end
        return output


def _untimely(
    batch: memoryview, count: int, earliest: int, latest: int
) -> tuple[tuple[int, str], ...]:
    """(index, why) of each record whose timestamp is out of range; nothing of a large batch."""
    if count > NAMED_RECORDS_MAX or len(batch) > NAMED_BYTES_MAX:
        return ()
    try:
        found = check_records(
            batch, max_size=NAMED_BYTES_MAX, timestamp_min=earliest, timestamp_max=latest
        ).errors
    except DecodeError:
        return ()
    return tuple(error for error in found if error[1].startswith("timestamp"))


def target_codec(config: TopicConfig) -> int:
    """Codec number of `compression.type`, -1 for `producer`."""
    return CODECS.get(config.compression_type, KEEP_CODEC)


def codec_level(config: TopicConfig) -> int | None:
    """Compression level for `compression.type`; None: the codec's default or no levels."""
    if config.compression_type == "gzip":
        return None if config.compression_gzip_level < 0 else config.compression_gzip_level
    if config.compression_type == "lz4":
        return config.compression_lz4_level
    if config.compression_type == "zstd":
        return config.compression_zstd_level
    return None


def headers_of(records: memoryview) -> list[HeaderFields]:
    """The header of each batch; they have been checked."""
    headers: list[HeaderFields] = []
    position = 0
    while position < len(records):
        if len(records) - position < HEADER_SIZE:
            raise _cut_off(records, position)
        fields: HeaderFields = _unpack(records, position)
        _, length, _, magic, *_ = fields
        end = position + length + LOG_OVERHEAD
        if magic != MAGIC or length + LOG_OVERHEAD < HEADER_SIZE or end > len(records):
            raise _cut_off(records, position)
        headers.append(fields)
        position = end
    return headers


def _unreadable(error: DecodeError) -> BatchError:
    if isinstance(error, DecompressedSizeError):
        # Java's producer splits the batch then; of one that is corrupt it sends the same again.
        return BatchTooLargeError(f"records of the batch: {error}")
    return CorruptBatchError(f"records of the batch are damaged: {error}")


def _cut_off(records: memoryview, position: int) -> BatchError:
    left = len(records) - position
    # Judged before lengths: batches of magic 0 and 1 are shorter than a header of magic 2.
    if left > MAGIC_POSITION and records[position + MAGIC_POSITION] != MAGIC:
        magic = records[position + MAGIC_POSITION]
        if magic < MAGIC:
            return UnsupportedFormatError(f"batch has magic {magic}, only {MAGIC} is supported")
        return CorruptBatchError(f"batch has unknown magic {magic}")
    if left == 0:
        return CorruptBatchError("there is no batch")
    return CorruptBatchError(f"batch is cut off or its length is wrong, {left} bytes are left")
