"""Produce by hand: agrees with kio at every served version, and survives any bytes."""

import contextlib
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from protocol.errors import DecodeError
from protocol.hot.produce import (
    MAX_VERSION,
    MIN_VERSION,
    ProducePartitionResponse,
    ProduceRequest,
    decode_request,
    encode_response,
)
from protocol.hot.wire import ELEMENTS_MAX, TAGGED_SIZE_MAX, NodeEndpoint, uvarint
from tests.effort import examples
from tests.unit.protocol import kio_oracle as kio

VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)

names = st.text(min_size=1, max_size=12) | st.just("t" * 200)
topic_ids = st.binary(min_size=16, max_size=16)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
records = st.none() | st.binary(max_size=40) | st.just(bytes(range(256)) * 80)
texts = st.none() | st.text(max_size=10)

Topics = list[tuple[str, bytes, list[tuple[int, bytes | None]]]]

requested = st.lists(
    st.tuples(names, topic_ids, st.lists(st.tuples(int32, records), max_size=3)), max_size=3
)


def encode_with_kio(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Topics
) -> bytes:
    schema = kio.module("produce", version, "request")
    return kio.encode(
        kio.make(
            schema.ProduceRequest,
            transactional_id=transactional_id,
            acks=acks,
            timeout=kio.milliseconds(timeout_ms),
            topic_data=tuple(
                kio.make(
                    schema.TopicProduceData,
                    name=name,
                    topic_id=kio.topic_uuid(topic_id),
                    partition_data=tuple(
                        schema.PartitionProduceData(index=index, records=content)
                        for index, content in partitions
                    ),
                )
                for name, topic_id, partitions in topics
            ),
        )
    )


def plain(request: ProduceRequest) -> Any:
    return (
        request.transactional_id,
        request.acks,
        request.timeout_ms,
        [
            (
                topic.name,
                topic.topic_id,
                [(i, None if r is None else bytes(r)) for i, r in topic.partitions],
            )
            for topic in request.topics
        ],
    )


@pytest.mark.parametrize("version", VERSIONS)
@examples(40)
@given(texts, st.sampled_from([-1, 0, 1]), st.integers(0, 10**6), requested, st.binary(max_size=3))
def test_request_agrees_with_kio(
    version: int,
    transactional_id: str | None,
    acks: int,
    timeout_ms: int,
    topics: Topics,
    trailing: bytes,
) -> None:
    """Kio's bytes mean the same to us, wherever they begin and whatever follows them."""
    body = encode_with_kio(version, transactional_id, acks, timeout_ms, topics)
    request = decode_request(memoryview(b"head" + body + trailing), 4, version)
    by_id = version >= 13
    assert plain(request) == (
        transactional_id,
        acks,
        timeout_ms,
        [(None if by_id else n, i if by_id else b"", p) for n, i, p in topics],
    )


def one_partition(version: int, content: bytes | None = b"records") -> bytes:
    return encode_with_kio(version, None, -1, 30_000, [("topic", b"i" * 16, [(0, content)])])


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_a_writable_slice_of_the_input(version: int) -> None:
    """What the log patches in the records lands in the frame: nothing was copied."""
    frame = bytearray(one_partition(version))
    request = decode_request(memoryview(frame), 0, version)
    view = request.topics[0].partitions[0][1]
    assert view is not None
    assert not view.readonly
    view[:] = b"patched"
    assert b"patched" in frame


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_a_decode_error(version: int) -> None:
    """Cut anywhere, a request is refused; it is never taken for a shorter one."""
    body = encode_with_kio(
        version,
        "txn",
        1,
        5,
        [
            ("first", b"a" * 16, [(0, b"x" * 20), (1, None)]),
            ("second", b"b" * 16, [(7, b"y" * 150)]),
        ],
    )
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            decode_request(memoryview(body[:size]), 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_flipped_bit_decodes_or_is_a_decode_error(version: int) -> None:
    """No single wrong bit raises anything else, or makes records larger than the frame."""
    body = bytearray(one_partition(version))
    for bit in range(len(body) * 8):
        body[bit >> 3] ^= 1 << (bit & 7)
        try:
            request = decode_request(memoryview(body), 0, version)
        except DecodeError:
            pass
        else:
            total = sum(len(r or b"") for t in request.topics for _, r in t.partitions)
            assert total <= len(body)
        body[bit >> 3] ^= 1 << (bit & 7)


@pytest.mark.parametrize("version", VERSIONS)
def test_random_bytes_decode_or_are_a_decode_error(version: int) -> None:
    """Noise, and a valid request with a stretch of it overwritten."""
    noise = random.Random(version)
    valid = one_partition(version, bytes(50))
    for _ in range(1500):
        body = bytearray(noise.randbytes(noise.randrange(60)))
        if noise.random() < 0.5:
            position = noise.randrange(len(valid))
            body = bytearray(valid[:position]) + body[:4] + valid[position + 4 :]
        with contextlib.suppress(DecodeError):
            decode_request(memoryview(body), 0, version)


FIXED_HEAD = b"\xff\xff" + b"\xff\xff" + bytes(4)
FLEXIBLE_HEAD = b"\0" + b"\xff\xff" + bytes(4)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (8, FIXED_HEAD + b"\x7f\xff\xff\xff"),
        (8, FIXED_HEAD + b"\xff\xff\xff\xff"),
        (8, FIXED_HEAD + b"\0\0\0\x01\0\x01t\x7f\xff\xff\xff"),
        (8, FIXED_HEAD + b"\0\0\0\x01\0\x01t\xff\xff\xff\xff"),
        (8, FIXED_HEAD + b"\0\0\0\x01\xff\xff\0\0\0\0"),
        (8, FIXED_HEAD + b"\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0\x7f\xff\xff\xff" + bytes(50)),
        (8, FIXED_HEAD + b"\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0\xff\xff\xff\xfe" + bytes(50)),
        (9, FLEXIBLE_HEAD + b"\xff\xff\xff\xff\x0f"),
        (9, FLEXIBLE_HEAD + b"\0" + bytes(9)),
        (9, FLEXIBLE_HEAD + b"\x02\0" + bytes(9)),
        (9, FLEXIBLE_HEAD + b"\x02\x02t\0" + bytes(9)),
        (9, FLEXIBLE_HEAD + b"\x02\x02t\xff\xff\xff\xff\x0f" + bytes(9)),
        (9, FLEXIBLE_HEAD + b"\x02\x02t\x02\0\0\0\0\xff\xff\xff\xff\x0f" + bytes(50)),
        (13, FLEXIBLE_HEAD + b"\xff\xff\xff\xff\x0f" + bytes(99)),
    ],
)
def test_lies_about_sizes_are_refused(version: int, body: bytes) -> None:
    """Counts and lengths beyond the input, null where it is not allowed."""
    with pytest.raises(DecodeError):
        decode_request(memoryview(body), 0, version)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (8, b"\0\x01\xff\xff\xff" + bytes(4) + b"\0\0\0\x01\0\x02t\xe9" + bytes(4)),
        (9, b"\x02\xff\xff\xff" + bytes(4) + b"\x02\x03t\xe9\x01\0\0"),
    ],
)
def test_names_that_are_not_utf8_are_replaced(version: int, body: bytes) -> None:
    """There are no such topics, and the answer says so."""
    request = decode_request(memoryview(body), 0, version)
    assert request.transactional_id == "\ufffd"
    assert [topic.name for topic in request.topics] == ["t\ufffd"]


def test_a_frame_of_countless_topics_is_refused() -> None:
    """Topics that cost a stranger three bytes each are bounded, whatever the frame's size."""
    body = FLEXIBLE_HEAD + uvarint(ELEMENTS_MAX + 2) + b"\x01\x01\0" * (ELEMENTS_MAX + 1) + b"\0"
    with pytest.raises(DecodeError, match="topics"):
        decode_request(memoryview(body), 0, 9)


def test_tagged_fields_are_skipped_at_every_level() -> None:
    """A newer client's fields do not hide what we know."""
    tags = b"\x01\x09\x02xx"
    body = (
        FLEXIBLE_HEAD + b"\x02\x02t" + b"\x02\0\0\0\x07\x04abc" + tags + tags + tags + b"trailing"
    )
    request = decode_request(memoryview(body), 0, 9)
    assert plain(request)[3] == [("t", b"", [(7, b"abc")])]


def test_tagged_fields_are_bounded_over_the_request() -> None:
    """Many sections below the bound do not add up to a stall."""
    tags = b"\x01\x09\xff\xff\x01" + bytes(32767)
    partition = b"\0\0\0\0\0" + tags
    count = TAGGED_SIZE_MAX // 32767 + 1
    body = FLEXIBLE_HEAD + b"\x02\x02t" + uvarint(count + 1) + partition * count + b"\0\0"
    with pytest.raises(DecodeError, match="tagged"):
        decode_request(memoryview(body), 0, 9)


partition_responses = st.builds(
    ProducePartitionResponse,
    index=int32,
    error_code=st.sampled_from([int(code) for code in ErrorCode]),
    base_offset=int64,
    log_append_time_ms=st.just(-1) | st.integers(0, 2**41),
    log_start_offset=int64,
    record_errors=st.lists(st.tuples(int32, texts), max_size=2),
    error_message=texts,
    current_leader=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99)),
)
endpoints = st.lists(
    st.tuples(st.integers(0, 99), st.text(max_size=9), st.integers(0, 65535), texts), max_size=2
)


@pytest.mark.parametrize("version", VERSIONS)
@examples(40)
@given(
    st.lists(st.tuples(names, topic_ids, st.lists(partition_responses, max_size=3)), max_size=3),
    st.integers(0, 10**6),
    endpoints,
)
def test_response_is_byte_identical_with_kio(
    version: int,
    topics: list[tuple[str, bytes, list[ProducePartitionResponse]]],
    throttle_time_ms: int,
    node_endpoints: list[NodeEndpoint],
) -> None:
    """Every field of every version, in one partition (the short way) and in many."""
    schema = kio.module("produce", version, "response")

    def leader(it: ProducePartitionResponse) -> Any:
        if version < 10:
            return None
        if it.current_leader is None:
            return schema.LeaderIdAndEpoch()
        return schema.LeaderIdAndEpoch(
            leader_id=it.current_leader[0], leader_epoch=it.current_leader[1]
        )

    expected = kio.make(
        schema.ProduceResponse,
        responses=tuple(
            kio.make(
                schema.TopicProduceResponse,
                name=name,
                topic_id=kio.topic_uuid(topic_id),
                partition_responses=tuple(
                    kio.make(
                        schema.PartitionProduceResponse,
                        index=it.index,
                        error_code=ErrorCode(it.error_code),
                        base_offset=it.base_offset,
                        log_append_time=kio.moment(it.log_append_time_ms),
                        log_start_offset=it.log_start_offset,
                        record_errors=tuple(
                            schema.BatchIndexAndErrorMessage(
                                batch_index=index, batch_index_error_message=message
                            )
                            for index, message in (it.record_errors if version >= 8 else ())
                        ),
                        error_message=it.error_message,
                        current_leader=leader(it),
                    )
                    for it in partitions
                ),
            )
            for name, topic_id, partitions in topics
        ),
        throttle_time=kio.milliseconds(throttle_time_ms),
        node_endpoints=tuple(
            schema.NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in (node_endpoints if version >= 10 else ())
        ),
    )
    ours = encode_response(
        [(i if version >= 13 else n, p) for n, i, p in topics],
        version,
        throttle_time_ms=throttle_time_ms,
        node_endpoints=node_endpoints,
    )
    assert ours == kio.encode(expected)


@pytest.mark.parametrize("length", [1, 125, 126, 127, 128, 249])
def test_topic_names_around_one_length_byte(length: int) -> None:
    """The short way of one partition writes the same name as the general way of two."""
    one = ProducePartitionResponse(0, 0, 5)
    name = "n" * length
    single = encode_response([(name, [one])], 9)
    double = encode_response([(name, [one, one])], 9)
    head = uvarint(2) + uvarint(length + 1) + name.encode()
    assert single.startswith(head + b"\x02")
    assert double.startswith(head + b"\x03")
