"""OffsetCommit by hand: agrees with the generated codec at every served version, on any bytes."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.hot.offset_commit import (
    FIRST_FLEXIBLE_VERSION,
    FIRST_TOPIC_ID_VERSION,
    MAX_VERSION,
    MIN_VERSION,
    OffsetCommitRequest,
    decode_request,
    encode_response,
)
from protocol.message import REQUEST_ELEMENTS_MAX
from protocol.messages import offset_commit as generated
from protocol.primitives import NIL_UUID, encode_unsigned_varint
from tests.effort import examples

VERSIONS = pytest.mark.parametrize("version", range(MIN_VERSION, MAX_VERSION + 1))
FLEXIBLE = pytest.mark.parametrize("version", range(FIRST_FLEXIBLE_VERSION, MAX_VERSION + 1))

names = st.text(max_size=12) | st.just("t" * 200) | st.just("é" * 64)
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)

partitions = st.builds(
    generated.OffsetCommitRequestPartition,
    partition_index=int32,
    committed_offset=int64,
    committed_leader_epoch=int32,
    committed_metadata=st.none() | names,
)
topics = st.builds(
    generated.OffsetCommitRequestTopic,
    name=names,
    topic_id=st.uuids(),
    partitions=st.lists(partitions, max_size=3),
)
requests = st.builds(
    generated.OffsetCommitRequest,
    group_id=names,
    generation_id_or_member_epoch=int32,
    member_id=names,
    group_instance_id=st.none() | names,
    retention_time_ms=int64,
    topics=st.lists(topics, max_size=3),
)


def plain(request: OffsetCommitRequest) -> Any:
    return (
        request.group_id,
        request.generation_or_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        [
            (
                t.name,
                t.topic_id,
                [(p.index, p.offset, p.leader_epoch, p.metadata) for p in t.partitions],
            )
            for t in request.topics
        ],
    )


def plain_of_generated(request: generated.OffsetCommitRequest) -> Any:
    return (
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        [
            (
                topic.name,
                topic.topic_id,
                [
                    (
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.committed_metadata,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def agree(data: bytes, version: int) -> bool:
    """Both read the same, or both refuse; whether they read it."""
    try:
        expected = generated.decode_request(data, version)
    except DecodeError:
        try:
            found = decode_request(data, version)
        except DecodeError:
            return False
        pytest.fail(f"{data!r} was read as {plain(found)}")
    assert plain(decode_request(data, version)) == plain_of_generated(expected)
    return True


@VERSIONS
@examples(30)
@given(requests, st.binary(max_size=3))
def test_request_agrees_with_the_generated_codec(
    version: int, request: generated.OffsetCommitRequest, trailing: bytes
) -> None:
    """Whatever follows the body."""
    assert agree(generated.encode_request(request, version) + trailing, version)


def example(version: int) -> bytes:
    listed = [
        generated.OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=1 << 40,
            committed_leader_epoch=3,
            committed_metadata=metadata,
        )
        for index, metadata in enumerate((None, "", "noté", "m" * 128))
    ]
    return generated.encode_request(
        generated.OffsetCommitRequest(
            group_id="group",
            generation_id_or_member_epoch=7,
            member_id="member",
            group_instance_id="i",
            topics=[
                generated.OffsetCommitRequestTopic(
                    name=name, topic_id=UUID(int=9), partitions=listed
                )
                for name in ("t", "topic")
            ],
        ),
        version,
    )


@VERSIONS
def test_every_truncation_is_refused(version: int) -> None:
    """Cut anywhere, a request is refused; it is never taken for a shorter one."""
    body = example(version)
    assert agree(body, version)
    for size in range(len(body)):
        assert not agree(body[:size], version)


@VERSIONS
def test_every_flipped_bit_is_read_alike(version: int) -> None:
    body = bytearray(example(version))
    for bit in range(len(body) * 8):
        body[bit >> 3] ^= 1 << (bit & 7)
        agree(bytes(body), version)
        body[bit >> 3] ^= 1 << (bit & 7)


@VERSIONS
def test_false_lengths_are_read_alike(version: int) -> None:
    """Long and negative lengths, and numbers in more bytes than they need, in every place."""
    body = example(version)
    lies = [b"\xff\xff\xff\xff\x0f", b"\xff" * 6, b"\x7f\xff\xff\xff", b"\x80\x00", b"\xff\xff"]
    for lie in lies:
        for position in range(len(body)):
            agree(body[:position] + lie + body[position + 1 :], version)


def with_tags(version: int, *, fields: bytes) -> bytes:
    """A request of one partition whose three tagged sections are `fields`."""
    topic = NIL_UUID.bytes if version >= FIRST_TOPIC_ID_VERSION else b"\x02t"
    partition = bytes(4) + bytes(8) + bytes(4) + b"\x03no" + fields
    return b"\x02g" + bytes(4) + b"\x01\x00\x02" + topic + b"\x02" + partition + fields + fields


@FLEXIBLE
def test_tagged_fields_are_skipped(version: int) -> None:
    fields = b"\x02\x00\x01x\x85\x01\x03abc"
    assert agree(with_tags(version, fields=fields), version)
    assert agree(with_tags(version, fields=b"\x80\x00"), version)
    assert not agree(with_tags(version, fields=b"\x01\x00\x7fabc"), version)


@FLEXIBLE
def test_tagged_fields_count_as_elements(version: int) -> None:
    """Some tens of thousands would take the loop's time: they are as limited as lists are."""
    for count, is_read in ((REQUEST_ELEMENTS_MAX // 3 - 1, True), (REQUEST_ELEMENTS_MAX, False)):
        fields = encode_unsigned_varint(count) + b"\x00\x00" * count
        assert agree(with_tags(version, fields=fields), version) is is_read


@VERSIONS
@pytest.mark.parametrize(("listed", "is_read"), [(1_000, True), (REQUEST_ELEMENTS_MAX, False)])
def test_lists_have_a_limit(version: int, listed: int, is_read: bool) -> None:
    one = generated.OffsetCommitRequestPartition()
    topic = generated.OffsetCommitRequestTopic(name="t", partitions=[one] * listed)
    body = generated.encode_request(generated.OffsetCommitRequest(topics=[topic]), version)
    assert agree(body, version) is is_read


@VERSIONS
@examples(30)
@given(requests, st.lists(int16, min_size=1))
def test_response_is_that_of_the_generated_codec(
    version: int, request: generated.OffsetCommitRequest, codes: list[int]
) -> None:
    """Byte for byte, of a request with its errors."""
    decoded = decode_request(generated.encode_request(request, version), version)
    number = 0
    expected = generated.OffsetCommitResponse(topics=[])
    for topic in decoded.topics:
        results = []
        for partition in topic.partitions:
            partition.error_code = codes[number % len(codes)]
            number += 1
            results.append(
                generated.OffsetCommitResponsePartition(
                    partition_index=partition.index, error_code=partition.error_code
                )
            )
        expected.topics.append(
            generated.OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=results
            )
        )
    assert encode_response(decoded.topics, version) == generated.encode_response(expected, version)
