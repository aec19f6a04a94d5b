"""What a produced batch must be: each rule broken alone, and the error that follows."""

import struct

import pytest

from config.topic import TopicConfig
from protocol.records.batch import HEADER, BatchHeader, crc_matches, read_header, update_crc
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from protocol.records.record import iterate_records
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
from storage.log.validator import BatchValidator, HeaderFields
from storage.types.append_origin import AppendOrigin
from tests.code_path import CODE
from tests.unit.storage.log.log_model import NOW_MS, make_batch, small_segments

CLIENT = AppendOrigin.CLIENT
IN_C = CODE.modules > 0


def _check(
    batch: memoryview, config: TopicConfig | None = None, origin: AppendOrigin = CLIENT
) -> list[HeaderFields]:
    return BatchValidator(config or TopicConfig()).check(batch, NOW_MS, origin, True)


def _prepare(batch: memoryview, config: TopicConfig) -> memoryview:
    validator = BatchValidator(config)
    headers = validator.check(batch, NOW_MS, CLIENT, True)
    return validator.prepare(batch, headers, NOW_MS, CLIENT)[0]


def _with(batch: memoryview, **fields: int) -> memoryview:
    """The batch with header fields changed and summed again."""
    header = read_header(batch)._replace(**fields)
    HEADER.pack_into(batch, 0, *header)
    update_crc(batch, 0, len(batch))
    return batch


def test_a_good_batch_passes_untouched() -> None:
    """Its header comes back, its bytes stay."""
    batch = make_batch(b"a", b"b")
    before = bytes(batch)
    assert _check(batch) == [tuple(read_header(batch))]
    assert bytes(batch) == before


@pytest.mark.parametrize("timestamp", [-(1 << 62), -(1 << 61), -2, -1, 0, NOW_MS, 1 << 61])
@pytest.mark.parametrize("before_max_ms", [1000, (1 << 63) - 1])
def test_a_batch_in_one_call_is_judged_as_ever(timestamp: int, before_max_ms: int) -> None:
    """Far beyond any clock's time it is left to whoever knows the topic's own bounds."""
    config = TopicConfig(message_timestamp_before_max_ms=before_max_ms)
    batch = _with(make_batch(b"a"), base_timestamp=timestamp, max_timestamp=timestamp)
    found = BatchValidator(config).check_plain(batch, NOW_MS)
    if found is not None:
        assert _check(batch, config) == [found]
    if IN_C:
        is_near = before_max_ms > 1000 and -(1 << 60) < timestamp <= NOW_MS
        assert (found is not None) is (is_near or timestamp in (-1, NOW_MS))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"base_offset": 1}, InvalidRecordError),
        ({"records_count": 0}, InvalidRecordError),
        ({"records_count": -1}, InvalidRecordError),
        ({"records_count": 3}, InvalidRecordError),
        ({"last_offset_delta": -1, "records_count": 0}, InvalidRecordError),
        ({"last_offset_delta": 2}, InvalidRecordError),
        ({"attributes": 0x20}, InvalidRecordError),
        ({"attributes": 5}, UnsupportedCodecError),
        ({"attributes": 7}, UnsupportedCodecError),
        ({"producer_id": 4, "base_sequence": -1}, InvalidRecordError),
        ({"max_timestamp": NOW_MS + 3_600_001}, InvalidTimestampError),
    ],
)
def test_each_rule_for_clients(fields: dict[str, int], error: type[BatchError]) -> None:
    """Well formed and with the right sum, but not allowed."""
    with pytest.raises(error):
        _check(_with(make_batch(b"a", b"b"), **fields))


def test_a_clients_timestamp_type_is_written_anew() -> None:
    """As CreateTime, with a right sum; every other rule counts before it is touched."""
    batch = _with(make_batch(b"a", b"b"), attributes=0x08)
    (fields,) = _check(batch)
    header = read_header(batch)
    assert fields == tuple(header)
    assert (header.attributes, crc_matches(batch, 0, header)) == (0, True)
    assert header.max_timestamp == NOW_MS

    for wrong in ({"base_offset": 1}, {"attributes": 0x28}, {"producer_id": 4}):
        batch = _with(make_batch(b"a", b"b"), **{"attributes": 0x08, **wrong})
        before = bytes(batch)
        with pytest.raises(InvalidRecordError):
            _check(batch)
        assert bytes(batch) == before


def test_coordinators_may_write_markers_and_batches_without_sequence() -> None:
    """The rules for clients are not for them."""
    marker = build_end_transaction_marker(
        producer_id=1, producer_epoch=0, commit=True, coordinator_epoch=0, timestamp_ms=NOW_MS
    )
    assert _check(memoryview(marker), origin=AppendOrigin.COORDINATOR)
    with pytest.raises(InvalidRecordError):
        _check(memoryview(marker))
    batch = make_batch(b"a", producer_id=1, producer_epoch=0, base_sequence=-1)
    assert _check(batch, origin=AppendOrigin.COORDINATOR)


@pytest.mark.parametrize("size", [0, 1, 16, 17, 60, 61, 70])
def test_a_cut_off_batch_is_corrupt(size: int) -> None:
    """At any length short of the whole."""
    with pytest.raises(CorruptBatchError):
        _check(make_batch(b"abcdefgh")[:size])


def test_a_length_that_lies_is_corrupt() -> None:
    """Too long, too short, negative."""
    for length in (-1, 0, 48, 1 << 30, 0x7FFFFFFF):
        batch = make_batch(b"a")
        struct.pack_into(">i", batch, 8, length)
        with pytest.raises(CorruptBatchError):
            _check(batch)


def test_a_wrong_sum_is_corrupt() -> None:
    """Unless the batch was made in this process."""
    batch = make_batch(b"a")
    batch[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        _check(batch)
    assert BatchValidator(TopicConfig()).check(batch, NOW_MS, CLIENT, False)


def test_old_formats_are_named() -> None:
    """Magic 0 and 1, also when shorter than a header of magic 2; unknown magic is corrupt."""
    for magic in (0, 1):
        for size in (20, 80):
            data = bytearray(size)
            data[16] = magic
            with pytest.raises(UnsupportedFormatError):
                _check(memoryview(data))
    data = bytearray(80)
    data[16] = 3
    with pytest.raises(CorruptBatchError):
        _check(memoryview(data))


def test_sizes_are_limited() -> None:
    """One batch by max.message.bytes, all of a call by segment.bytes: exactly at it is fine."""
    batch = make_batch(b"x" * 100)
    size = len(batch)
    assert _check(batch, small_segments(10_000, max_message_bytes=size))
    with pytest.raises(BatchTooLargeError):
        _check(batch, small_segments(10_000, max_message_bytes=size - 1))
    two = memoryview(bytearray(bytes(batch) * 2))
    assert len(_check(two, small_segments(2 * size))) == 2
    with pytest.raises(BatchListTooLargeError):
        _check(two, small_segments(2 * size - 1))


def test_timestamp_bounds() -> None:
    """Exactly at the bound is fine; -1, no timestamp, has no lower bound."""
    config = TopicConfig().model_copy(
        update={"message_timestamp_before_max_ms": 50, "message_timestamp_after_max_ms": 70}
    )
    for good in (NOW_MS - 50, NOW_MS + 70, -1):
        assert _check(make_batch(b"a", timestamp_ms=good), config)
    for bad in (NOW_MS - 51, NOW_MS + 71):
        with pytest.raises(InvalidTimestampError):
            _check(make_batch(b"a", timestamp_ms=bad), config)
    late = config.model_copy(update={"message_timestamp_type": "LogAppendTime"})
    assert _check(make_batch(b"a", timestamp_ms=NOW_MS + 10**9), late)


def test_compacted_topics_want_keys() -> None:
    """The record at fault is named."""
    config = TopicConfig().model_copy(update={"cleanup_policy": ("compact",)})
    good = make_batch(b"a", b"b")
    assert _prepare(good, config) is good
    batch = memoryview(build_batch([(b"k", b"v", (), NOW_MS), (None, b"v", (), NOW_MS)]))
    with pytest.raises(InvalidRecordError) as caught:
        _prepare(batch, config)
    assert [index for index, _ in caught.value.record_errors] == [1]


def test_full_validation_walks_the_records() -> None:
    """What the header check lets pass is found: here a record's length."""
    config = TopicConfig().model_copy(update={"record_validation": "full"})
    batch = make_batch(b"abcdef", b"ghijkl")
    assert _prepare(batch, config) is batch
    batch[61] += 2
    update_crc(batch, 0, len(batch))
    assert _check(batch)
    with pytest.raises(CorruptBatchError):
        _prepare(batch, config)


def test_log_append_time_is_stamped_and_summed() -> None:
    """Type bit, max timestamp and CRC change; the records do not."""
    config = TopicConfig().model_copy(update={"message_timestamp_type": "LogAppendTime"})
    batch = make_batch(b"a", timestamp_ms=5)
    records = _prepare(batch, config)
    header = read_header(records)
    assert (header.is_log_append_time, header.max_timestamp) == (True, NOW_MS)
    assert crc_matches(records, 0, header)
    assert [r.timestamp for r in iterate_records(records, max_size=99)] == [NOW_MS]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_the_topics_codec_is_enforced(codec: str) -> None:
    """A batch in another codec is packed again, with the same records and producer."""
    config = TopicConfig().model_copy(update={"compression_type": codec})
    source = 0 if codec == "gzip" else 1
    batch = make_batch(
        b"a" * 50, b"b" * 50, codec=source, producer_id=3, producer_epoch=1, base_sequence=7
    )
    records = _prepare(batch, config)
    header = read_header(records)
    assert header.codec == {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}[codec]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 7)
    values = [record.value for record in iterate_records(records, max_size=999)]
    assert values == [b"a" * 50, b"b" * 50]
    assert _prepare(records, config) is records
    assert bytes(BatchValidator(config).prepare_batches(batch, NOW_MS)) == bytes(records)


def test_rewriting_apart_looks_at_the_sum() -> None:
    """The new sum would hide that the old one was wrong."""
    config = TopicConfig().model_copy(update={"compression_type": "gzip"})
    batch = make_batch(b"a")
    batch[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        BatchValidator(config).prepare_batches(batch, NOW_MS)


def test_a_bomb_costs_twice_the_limit_at_most() -> None:
    """A small batch that unpacks to a hundred times max.message.bytes is refused.

    As too large: Java's producer splits it then, and sends one that is corrupt as it is, in vain.
    """
    batch = make_batch(b"\0" * 200_000, codec=1)
    assert len(batch) < 2000
    for changes in ({"cleanup_policy": ("compact",)}, {"compression_type": "uncompressed"}):
        config = small_segments(1 << 20, max_message_bytes=2000, **changes)
        with pytest.raises(BatchTooLargeError):
            _prepare(batch, config)
        with pytest.raises(BatchTooLargeError):
            BatchValidator(config).prepare_batches(batch, NOW_MS)


@pytest.mark.parametrize("codec", [0, 4])
def test_records_out_of_time_are_named(codec: int) -> None:
    """So a client knows which, and why the others of the batch were refused (KIP-467)."""
    config = TopicConfig().model_copy(
        update={"message_timestamp_before_max_ms": 50, "message_timestamp_after_max_ms": 70}
    )
    times = [NOW_MS - 51, NOW_MS, -1, NOW_MS + 71, NOW_MS + 70, NOW_MS - 50]
    records = [(None, b"v", (), time_ms) for time_ms in times]
    with pytest.raises(InvalidTimestampError) as refused:
        _check(memoryview(build_batch(records, codec=codec)), config)
    assert refused.value.record_errors == (
        (0, f"timestamp {times[0]} is out of range"),
        (3, f"timestamp {times[3]} is out of range"),
    )


@pytest.mark.parametrize(("count", "size"), [(1_001, 1), (2, 1 << 18)])
def test_no_record_of_a_large_batch_is_named(count: int, size: int) -> None:
    """Walking it would hold the loop."""
    records = [(None, bytes(size), (), NOW_MS + 10**9)] * count
    with pytest.raises(InvalidTimestampError) as refused:
        _check(memoryview(build_batch(records, codec=4)), TopicConfig())
    assert refused.value.record_errors == ()


@pytest.mark.parametrize("timestamp", [-1, -86_400_000])
def test_a_record_without_a_time_may_be_in_a_compacted_topic(timestamp: int) -> None:
    """As in every other; and one from before 1970, unless `message.timestamp.before.max.ms`."""
    batch = memoryview(build_batch([(b"k", b"v", (), timestamp)]))
    assert _prepare(batch, small_segments(1 << 20, cleanup_policy=("compact",))) is batch
    config = small_segments(
        1 << 20, cleanup_policy=("compact",), message_timestamp_before_max_ms=1000
    )
    if timestamp == -1:
        assert _prepare(batch, config) is batch
    else:
        with pytest.raises(InvalidTimestampError):
            _prepare(batch, config)


def test_names_of_headers_are_any_bytes() -> None:
    """C clients send what the application gave them; a batch packed anew has the same."""
    batch = memoryview(build_batch([(b"k", b"v", (("\udcff", b"x"),), 5)]))
    assert b"\x02\xff" in bytes(batch)
    assert _prepare(batch, small_segments(1 << 20, cleanup_policy=("compact",))) is batch
    packed = _prepare(batch, small_segments(1 << 20, compression_type="gzip"))
    (record,) = iterate_records(packed, max_size=999)
    assert record.headers == (("\udcff", b"x"),)


def test_the_second_of_two_batches_is_judged_too() -> None:
    """All or nothing."""
    both = bytearray(bytes(make_batch(b"a")) + bytes(make_batch(b"b")))
    assert len(_check(memoryview(both))) == 2
    both[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        _check(memoryview(both))
    assert isinstance(BatchHeader._make(_check(make_batch(b"c"))[0]), BatchHeader)
