"""The hand-made frames of the measurements say what our own codec reads in them."""

import pytest

from bench import wire
from protocol.hot import fetch as hot_fetch
from protocol.hot import produce as hot_produce
from protocol.records.batch import crc32c, read_header
from protocol.records.record import iterate_records
from tests.harness.broker_headers import decode_request_header, encode_response_header


def test_record_batch_is_a_valid_batch() -> None:
    """Checksum, counts and values are what a broker expects of a client's batch."""
    values = [b"one", b"", b"x" * 300]
    batch = memoryview(wire.record_batch(values, producer_id=7, producer_epoch=1, base_sequence=42))
    header = read_header(batch, 0)
    assert header.crc == crc32c(batch[21:])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 42)
    assert header.records_count == 3
    assert header.last_offset_delta == 2
    assert [r.value for r in iterate_records(batch, max_size=1 << 20)] == values
    assert list(wire.plain_values(batch)) == values


@pytest.mark.parametrize("size", [10, 100, 20_000])
def test_produce_frame_is_read_by_the_codec(size: int) -> None:
    """One topic, one partition, the batch untouched, for lengths of one to three varint bytes."""
    batch = wire.record_batch([b"v" * size])
    frame = memoryview(wire.produce_frame("topic", 3, batch, correlation_id=9, acks=1))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, position = decode_request_header(frame[4:])
    assert (header.api_key, header.api_version, header.correlation_id) == (0, 9, 9)
    request = hot_produce.decode_request(frame[4:], position, header.api_version)
    assert request.acks == 1
    assert request.topics[0].name == "topic"
    assert request.topics[0].partitions == [(3, memoryview(batch))]


@pytest.mark.parametrize("topic", ["t", "bench-12", "a" * 100])
def test_produce_response_layout(topic: str) -> None:
    """Answers are checked by position: the positions are those the codec writes to."""
    answer = hot_produce.ProducePartitionResponse(5, 0x0102, 0x0304050607080910)
    head = encode_response_header(wire.PRODUCE, wire.PRODUCE_VERSION, 1)
    body = hot_produce.encode_response([(topic, [answer])], wire.PRODUCE_VERSION)
    frame = (len(head) + len(body)).to_bytes(4, "big") + head + body
    layout = wire.ProduceResponseLayout.of(topic)
    assert layout.size == len(frame)
    assert frame[layout.error_code : layout.error_code + 2] == b"\x01\x02"
    assert frame[layout.base_offset : layout.base_offset + 8] == bytes.fromhex("0304050607080910")


def test_fetch_frame_and_answer() -> None:
    """The request is read by the codec, and the codec's answer is read here."""
    frame = memoryview(wire.fetch_frame("topic", 2, 77, max_bytes=1000, max_wait_ms=5))
    header, position = decode_request_header(frame[4:])
    request = hot_fetch.decode_request(frame[4:], position, header.api_version)
    assert (request.max_wait_ms, request.min_bytes, request.session_epoch) == (5, 1, -1)
    (asked,) = request.topics[0].partitions
    assert (asked.partition, asked.fetch_offset, asked.max_bytes) == (2, 77, 1000)

    batches = wire.record_batch([b"a", b"b"]) + wire.record_batch([b"c"])
    answer = hot_fetch.FetchPartitionResponse(2, 0, 3, 3, 0, None, records=batches + b"cut off")
    pieces = hot_fetch.encode_response([("topic", [answer])], wire.FETCH_VERSION)
    body = b"".join(bytes(piece) for piece in pieces)
    data = encode_response_header(wire.FETCH, wire.FETCH_VERSION, 1) + body
    parsed = wire.parse_fetch(data)
    assert (parsed.error_code, parsed.high_watermark) == (0, 3)
    whole = list(wire.whole_batches(parsed.records))
    assert [(base, count) for base, count, _ in whole] == [(0, 2), (0, 1)]
