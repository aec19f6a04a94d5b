"""Fetch by hand: agrees with kio at every served version, and survives any bytes."""

import contextlib
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from protocol.errors import DecodeError
from protocol.hot.fetch import (
    MAX_VERSION,
    MIN_VERSION,
    NO_HIGH_WATERMARK,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    decode_request,
    encode_response,
)
from protocol.hot.wire import ELEMENTS_MAX, NodeEndpoint, uvarint
from storage.types.file_slice import FileSlice
from tests.effort import examples
from tests.unit.protocol import kio_oracle as kio

VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)

names = st.text(min_size=1, max_size=12) | st.just("t" * 200)
topic_ids = st.binary(min_size=16, max_size=16)
int8 = st.integers(-128, 127)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
texts = st.none() | st.text(max_size=10)

partitions_requested = st.builds(
    FetchPartition,
    int32,
    int32,
    int64,
    int32,
    int64,
    int32,
    st.just(NO_HIGH_WATERMARK) | int64,
    st.none() | st.binary(min_size=15, max_size=15).map(lambda raw: raw + b"x"),
)
requests = st.builds(
    FetchRequest,
    replica_id=int32,
    max_wait_ms=st.integers(0, 10**6),
    min_bytes=int32,
    max_bytes=int32,
    isolation_level=int8,
    session_id=int32,
    session_epoch=int32,
    # Name and id; the test picks what the version carries.
    topics=st.lists(
        st.tuples(names, topic_ids, st.lists(partitions_requested, max_size=3)), max_size=3
    ),
    forgotten=st.lists(st.tuples(names, topic_ids, st.lists(int32, max_size=3)), max_size=2),
    rack_id=st.text(max_size=10),
    cluster_id=texts,
    replica_epoch=int64,
)


def encode_with_kio(version: int, it: Any) -> bytes:
    schema = kio.module("fetch", version, "request")
    state = None
    if version >= 15:
        state = schema.ReplicaState(replica_id=it.replica_id, replica_epoch=it.replica_epoch)
    return kio.encode(
        kio.make(
            schema.FetchRequest,
            cluster_id=it.cluster_id,
            replica_id=it.replica_id,
            replica_state=state,
            max_wait=kio.milliseconds(it.max_wait_ms),
            min_bytes=it.min_bytes,
            max_bytes=it.max_bytes,
            isolation_level=it.isolation_level,
            session_id=it.session_id,
            session_epoch=it.session_epoch,
            topics=tuple(
                kio.make(
                    schema.FetchTopic,
                    topic=name,
                    topic_id=kio.topic_uuid(topic_id),
                    partitions=tuple(
                        kio.make(
                            schema.FetchPartition,
                            partition=p.partition,
                            current_leader_epoch=p.current_leader_epoch,
                            fetch_offset=p.fetch_offset,
                            last_fetched_epoch=p.last_fetched_epoch,
                            log_start_offset=p.log_start_offset,
                            partition_max_bytes=p.max_bytes,
                            replica_directory_id=p.directory_id and kio.topic_uuid(p.directory_id),
                            high_watermark=p.high_watermark,
                        )
                        for p in partitions
                    ),
                )
                for name, topic_id, partitions in it.topics
            ),
            forgotten_topics_data=tuple(
                kio.make(
                    schema.ForgottenTopic,
                    topic=name,
                    topic_id=kio.topic_uuid(topic_id),
                    partitions=tuple(partitions),
                )
                for name, topic_id, partitions in (it.forgotten if version >= 7 else ())
            ),
            rack_id=it.rack_id,
        )
    )


def plain_partition(p: FetchPartition, version: int) -> Any:
    return (
        p.partition,
        p.current_leader_epoch if version >= 9 else -1,
        p.fetch_offset,
        p.last_fetched_epoch if version >= 12 else -1,
        p.log_start_offset if version >= 5 else -1,
        p.max_bytes,
        p.directory_id if version >= 17 else None,
        p.high_watermark if version >= 18 else NO_HIGH_WATERMARK,
    )


@pytest.mark.parametrize("version", VERSIONS)
@examples(40)
@given(requests, st.binary(max_size=3))
def test_request_agrees_with_kio(version: int, sent: Any, trailing: bytes) -> None:
    """Kio's bytes mean the same to us, wherever they begin and whatever follows them."""
    body = encode_with_kio(version, sent)
    got = decode_request(memoryview(b"head" + body + trailing), 4, version)
    by_id = version >= 13
    assert (got.max_wait_ms, got.min_bytes, got.max_bytes, got.isolation_level) == (
        sent.max_wait_ms,
        sent.min_bytes,
        sent.max_bytes,
        sent.isolation_level,
    )
    assert got.replica_id == sent.replica_id
    assert got.replica_epoch == (sent.replica_epoch if version >= 15 else -1)
    assert got.cluster_id == (sent.cluster_id if version >= 12 else None)
    assert got.session_id == (sent.session_id if version >= 7 else 0)
    assert got.session_epoch == (sent.session_epoch if version >= 7 else -1)
    assert got.rack_id == (sent.rack_id if version >= 11 else "")
    assert got.forgotten == (
        [(i if by_id else n, p) for n, i, p in sent.forgotten] if version >= 7 else []
    )
    assert [
        (t.name, t.topic_id, [plain_partition(p, MAX_VERSION) for p in t.partitions])
        for t in got.topics
    ] == [
        (
            None if by_id else name,
            topic_id if by_id else b"",
            [plain_partition(p, version) for p in partitions],
        )
        for name, topic_id, partitions in sent.topics
    ]


def example(version: int) -> bytes:
    """A request that uses every field of its version."""
    partitions = [
        FetchPartition(0, 1, 100, 2, 3, 4096, 99, b"d" * 16),
        FetchPartition(1, 1, 200, 2, 3, 4096),
    ]
    return encode_with_kio(
        version,
        FetchRequest(
            7,
            500,
            1,
            1 << 20,
            1,
            12,
            3,
            [("first", b"a" * 16, partitions), ("second", b"b" * 16, [])],  # type: ignore[list-item]  # name and id
            [("third", b"c" * 16, [1, 2])],  # type: ignore[list-item]  # name and id
            "rack",
            "cluster",
            5,
        ),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_a_decode_error(version: int) -> None:
    """Cut anywhere, a request is refused; it is never taken for a shorter one."""
    body = example(version)
    decode_request(memoryview(body), 0, version)
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            decode_request(memoryview(body[:size]), 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_flipped_bit_decodes_or_is_a_decode_error(version: int) -> None:
    """No single wrong bit raises anything else."""
    body = bytearray(example(version))
    view = memoryview(body)
    for bit in range(len(body) * 8):
        body[bit >> 3] ^= 1 << (bit & 7)
        with contextlib.suppress(DecodeError):
            decode_request(view, 0, version)
        body[bit >> 3] ^= 1 << (bit & 7)


@pytest.mark.parametrize("version", VERSIONS)
def test_random_bytes_decode_or_are_a_decode_error(version: int) -> None:
    """Noise, and a valid request with a stretch of it overwritten."""
    noise = random.Random(version)
    valid = example(version)
    for _ in range(1500):
        body = bytearray(noise.randbytes(noise.randrange(90)))
        if noise.random() < 0.5:
            position = noise.randrange(len(valid))
            body = bytearray(valid[:position]) + body[:4] + valid[position + 4 :]
        with contextlib.suppress(DecodeError):
            decode_request(memoryview(body), 0, version)


HEAD_V7 = bytes(25)
HEAD_V15 = bytes(21)
PARTITION = bytes(32)
END = b"\0\x01\x01\0" + bytes(20)
"""What follows a partition in a valid request: no tags, nothing forgotten, no rack."""


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (7, HEAD_V7 + b"\x7f\xff\xff\xff"),
        (7, HEAD_V7 + b"\xff\xff\xff\xff"),
        (7, HEAD_V7 + b"\0\0\0\x01\0\x01t\x7f\xff\xff\xff"),
        (7, HEAD_V7 + b"\0\0\0\x01\0\x01t\xff\xff\xff\xff"),
        (7, HEAD_V7 + b"\0\0\0\x01\xff\xff\0\0\0\0\0\0\0\0"),
        (7, HEAD_V7 + b"\0\0\0\0\x7f\xff\xff\xff"),
        (7, HEAD_V7 + b"\0\0\0\0\xff\xff\xff\xff"),
        (7, HEAD_V7 + b"\0\0\0\0\0\0\0\x01\0\x01t\x7f\xff\xff\xff"),
        (7, HEAD_V7 + b"\0\0\0\0\0\0\0\x01\xff\xff\0\0\0\0"),
        (11, HEAD_V7 + b"\0\0\0\0\0\0\0\0\xff\xff"),
        (12, HEAD_V7 + b"\xff\xff\xff\xff\x0f"),
        (12, HEAD_V7 + b"\0" + bytes(9)),
        (12, HEAD_V7 + b"\x02\0" + bytes(9)),
        (12, HEAD_V7 + b"\x02\x02t\0" + bytes(9)),
        (12, HEAD_V7 + b"\x02\x02t\xff\xff\xff\xff\x0f"),
        (12, HEAD_V7 + b"\x01\0\x01\0"),
        (12, HEAD_V7 + b"\x01\xff\xff\xff\xff\x0f"),
        (12, HEAD_V7 + b"\x01\x02\x02t\0\0\x01\0"),
        (12, HEAD_V7 + b"\x01\x02\x02t\xff\xff\xff\xff\x0f"),
        (12, HEAD_V7 + b"\x01\x02\0\x01\0\x01\0"),
        (12, HEAD_V7 + b"\x01\x01\0\0"),
        (12, HEAD_V7 + b"\x01\x01\x01\x01\0\x02\x05abcd"),
        (15, HEAD_V15 + b"\x01\x01\x01\x01\x01\x04" + bytes(40)),
        (17, HEAD_V15 + b"\x02" + bytes(16) + b"\x02" + PARTITION + b"\x01\0\x08" + bytes(8) + END),
        (
            18,
            HEAD_V15 + b"\x02" + bytes(16) + b"\x02" + PARTITION + b"\x01\x01\x04" + bytes(4) + END,
        ),
        (18, HEAD_V15 + b"\x02" + bytes(16) + b"\x02" + PARTITION + b"\x01\x09\x7f\0\x01\x01\0"),
    ],
)
def test_lies_about_sizes_are_refused(version: int, body: bytes) -> None:
    """Counts and lengths beyond the input, null where it is not allowed, fields of wrong size."""
    with pytest.raises(DecodeError):
        decode_request(memoryview(body), 0, version)


@pytest.mark.parametrize(
    ("version", "topic"),
    [(7, b"\0\0\0\x01\0\x02t\xe9" + bytes(8)), (12, b"\x02\x03t\xe9\x01\0\x01\x01\0")],
)
def test_names_that_are_not_utf8_are_replaced(version: int, topic: bytes) -> None:
    """There are no such topics, and the answer says so."""
    request = decode_request(memoryview(HEAD_V7 + topic), 0, version)
    assert [topic.name for topic in request.topics] == ["t\ufffd"]


def test_a_frame_of_countless_topics_is_refused() -> None:
    """Topics that cost a stranger three bytes each are bounded, whatever the frame's size."""
    body = HEAD_V7 + uvarint(ELEMENTS_MAX + 2) + b"\x01\x01\0" * (ELEMENTS_MAX + 1)
    with pytest.raises(DecodeError, match="topics"):
        decode_request(memoryview(body + b"\x01\x01\0"), 0, 12)


def test_unknown_tagged_fields_are_skipped_at_every_level() -> None:
    """A newer client's fields do not hide what we know, nor do tags of later versions count."""
    tags = b"\x02\x00\x03xyz\x09\x02xx"
    partition = (5).to_bytes(4) + PARTITION[4:] + tags
    topic = b"\x02\x02t\x02" + partition + b"\x01\x09\0"
    body = HEAD_V7 + topic + b"\x01\x02r" + b"\x02\x01\x02zz\x09\x01y"
    request = decode_request(memoryview(body), 0, 12)
    assert request.topics[0].partitions[0].partition == 5
    assert request.topics[0].partitions[0].directory_id is None
    assert request.rack_id == "r"
    assert request.replica_epoch == -1


@pytest.mark.parametrize(
    "tags",
    [
        "01010d" + "00000002" + "0000000000000007" + "00",  # what followers send
        "010110" + "00000002" + "0000000000000007" + "01" + "0501" + "ff",  # a tag within it
        "02010d" + "00000002" + "0000000000000007" + "00" + "0901ff",  # a tag behind it
    ],
)
def test_a_follower_names_itself_in_a_tagged_field(tags: str) -> None:
    head = bytes(13 + 8) + b"\x01\x01\x01"
    request = decode_request(memoryview(head + bytes.fromhex(tags)), 0, 17)
    assert (request.replica_id, request.replica_epoch) == (2, 7)
    for end in range(len(head) + 1, len(head) + len(tags) // 2):
        with pytest.raises(DecodeError):
            decode_request(memoryview((head + bytes.fromhex(tags))[:end]), 0, 17)


partition_responses = st.builds(
    FetchPartitionResponse,
    index=int32,
    error_code=st.sampled_from([int(code) for code in ErrorCode]),
    high_watermark=int64,
    last_stable_offset=int64,
    log_start_offset=int64,
    aborted=st.none() | st.lists(st.tuples(int64, int64), max_size=3),
    preferred_read_replica=st.integers(-1, 99),
    diverging_epoch=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99)),
    current_leader=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99)),
    records=st.none() | st.binary(max_size=30) | st.just(bytes(20_000)),
)
endpoints = st.lists(
    st.tuples(st.integers(0, 99), st.text(max_size=9), st.integers(0, 65535), texts), max_size=2
)


@pytest.mark.parametrize("version", VERSIONS)
@examples(40)
@given(
    st.lists(st.tuples(names, topic_ids, st.lists(partition_responses, max_size=3)), max_size=3),
    st.integers(0, 10**6),
    st.sampled_from([0, 70, 71]),
    int32,
    endpoints,
)
def test_response_is_byte_identical_with_kio(
    version: int,
    topics: list[tuple[str, bytes, list[FetchPartitionResponse]]],
    throttle_time_ms: int,
    error_code: int,
    session_id: int,
    node_endpoints: list[NodeEndpoint],
) -> None:
    """Every field of every version, in one partition (the short way) and in many."""
    schema = kio.module("fetch", version, "response")

    def tags(it: FetchPartitionResponse) -> dict[str, Any]:
        if version < 12:
            return {}
        found: dict[str, Any] = {}
        if it.diverging_epoch is not None:
            epoch, end_offset = it.diverging_epoch
            found["diverging_epoch"] = schema.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        if it.current_leader is not None:
            leader_id, leader_epoch = it.current_leader
            found["current_leader"] = schema.LeaderIdAndEpoch(
                leader_id=leader_id, leader_epoch=leader_epoch
            )
        return found

    def aborted(it: FetchPartitionResponse) -> Any:
        if it.aborted is None:
            return None
        return tuple(
            schema.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in it.aborted
        )

    expected = kio.make(
        schema.FetchResponse,
        throttle_time=kio.milliseconds(throttle_time_ms),
        error_code=ErrorCode(error_code),
        session_id=session_id,
        responses=tuple(
            kio.make(
                schema.FetchableTopicResponse,
                topic=name,
                topic_id=kio.topic_uuid(topic_id),
                partitions=tuple(
                    kio.make(
                        schema.PartitionData,
                        partition_index=it.index,
                        error_code=ErrorCode(it.error_code),
                        high_watermark=it.high_watermark,
                        last_stable_offset=it.last_stable_offset,
                        log_start_offset=it.log_start_offset,
                        aborted_transactions=aborted(it),
                        preferred_read_replica=it.preferred_read_replica,
                        records=it.records or b"",
                        **tags(it),
                    )
                    for it in partitions
                ),
            )
            for name, topic_id, partitions in topics
        ),
        node_endpoints=tuple(
            schema.NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in (node_endpoints if version >= 16 else ())
        ),
    )
    ours = encode_response(
        [(i if version >= 13 else n, p) for n, i, p in topics],
        version,
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        node_endpoints=node_endpoints,
    )
    assert b"".join(ours) == kio.encode(expected)


@pytest.mark.parametrize("version", [4, 11, 12, 13, 18])
def test_records_leave_as_the_objects_that_came(version: int) -> None:
    """File slices, views and bytes are passed on in wire order, our own bytes merged around."""
    piece = FileSlice(None, 4096, 300)
    view = memoryview(bytes(5))
    topic: str | bytes = b"i" * 16 if version >= 13 else "topic"
    partitions = [
        FetchPartitionResponse(0, 0, 9, records=piece),
        FetchPartitionResponse(1, 0, 9, records=FileSlice(None, 0, 0)),
        FetchPartitionResponse(2, 0, 9, records=None),
        FetchPartitionResponse(3, 0, 9, records=view),
    ]
    buffers = encode_response([(topic, partitions)], version)
    assert buffers[1] is piece
    assert buffers[3] is view
    assert not any(type(a) is type(b) is bytes for a, b in pairwise(buffers))
    alone = encode_response([(topic, partitions[:1])], version)
    assert alone[1] is piece


@pytest.mark.parametrize("version", VERSIONS)
def test_no_records_go_out_as_empty_not_null(version: int) -> None:
    """Some clients do not expect null records; an answer without data is one buffer."""
    topic: str | bytes = b"i" * 16 if version >= 13 else "topic"
    single = encode_response([(topic, [FetchPartitionResponse(0, 1, -1)])], version)
    assert len(single) == 1
    end = b"\0\0\0\0" if version < 12 else b"\x01\0\0\0"
    assert single[0].endswith(end)


@pytest.mark.parametrize("length", [1, 126, 127, 128, 249])
def test_topic_names_around_one_length_byte(length: int) -> None:
    """The short way of one partition writes the same name as the general way of two."""
    one = FetchPartitionResponse(0, 0, 5)
    name = "n" * length
    head = bytes(10) + uvarint(2) + uvarint(length + 1) + name.encode()
    assert encode_response([(name, [one])], 12)[0].startswith(head + b"\x02")
    assert encode_response([(name, [one, one])], 12)[0].startswith(head + b"\x03")
