"""A follower's Fetch says what the generated codec says, and reads what it writes."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.hot import fetch as hot_fetch
from protocol.hot.follower_fetch import (
    VERSION,
    FetchedPartition,
    decode_answer,
    encode_request,
    pack_partition,
)
from protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
    SnapshotId,
)
from protocol.messages.fetch import encode_request as generated_request
from protocol.messages.fetch import encode_response as generated_response

INT32 = st.integers(-1, 2**31 - 1)
INT64 = st.integers(-1, 2**63 - 1)
TOPIC_ID = st.binary(min_size=16, max_size=16).filter(any)
PARTITION = st.tuples(INT32, INT32, INT64, INT32, INT64, INT32)


@given(
    topics=st.dictionaries(TOPIC_ID, st.lists(PARTITION, max_size=3), max_size=3),
    forgotten=st.dictionaries(TOPIC_ID, st.lists(INT32, max_size=3), max_size=2),
    numbers=st.tuples(INT32, INT64, INT32, INT32, INT32, INT32, INT32),
)
def test_request_is_the_generated_one(
    topics: dict[bytes, list[tuple[int, ...]]],
    forgotten: dict[bytes, list[int]],
    numbers: tuple[int, ...],
) -> None:
    """Byte for byte, and the broker's decoder reads it."""
    replica_id, replica_epoch, max_wait_ms, min_bytes, max_bytes, session_id, epoch = numbers
    data = encode_request(
        replica_id=replica_id,
        replica_epoch=replica_epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session=(session_id, epoch),
        topics={key: [pack_partition(*one) for one in found] for key, found in topics.items()},
        forgotten=forgotten,
    )
    message = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic_id=UUID(bytes=key),
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=leader_epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=fetched,
                        log_start_offset=log_start,
                        partition_max_bytes=most,
                    )
                    for index, leader_epoch, offset, fetched, log_start, most in found
                ],
            )
            for key, found in topics.items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic_id=UUID(bytes=key), partitions=list(indexes))
            for key, indexes in forgotten.items()
        ],
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=replica_epoch),
    )
    if (replica_id, replica_epoch) != (-1, -1):
        assert data == generated_request(message, VERSION)
        read = hot_fetch.decode_request(memoryview(data), 0, VERSION)
        assert (read.replica_id, read.replica_epoch) == (replica_id, replica_epoch)
        assert (read.session_id, read.session_epoch) == (session_id, epoch)
        assert [topic.topic_id for topic in read.topics] == list(topics)


@st.composite
def partitions(draw: Any) -> PartitionData:
    return PartitionData(
        partition_index=draw(INT32),
        error_code=draw(st.integers(-1, 130)),
        high_watermark=draw(INT64),
        last_stable_offset=draw(INT64),
        log_start_offset=draw(INT64),
        aborted_transactions=draw(
            st.none()
            | st.lists(
                st.builds(AbortedTransaction, producer_id=INT64, first_offset=INT64), max_size=2
            )
        ),
        preferred_read_replica=draw(INT32),
        records=draw(st.none() | st.binary(max_size=300)),
        diverging_epoch=draw(st.none() | st.builds(EpochEndOffset, epoch=INT32, end_offset=INT64)),
        current_leader=draw(
            st.none() | st.builds(LeaderIdAndEpoch, leader_id=INT32, leader_epoch=INT32)
        ),
        snapshot_id=draw(st.none() | st.builds(SnapshotId, end_offset=INT64, epoch=INT32)),
    )


ANSWERS = st.builds(
    FetchResponse,
    throttle_time_ms=INT32,
    error_code=st.integers(-1, 130),
    session_id=INT32,
    responses=st.lists(
        st.builds(
            FetchableTopicResponse,
            topic_id=TOPIC_ID.map(lambda raw: UUID(bytes=raw)),
            partitions=st.lists(partitions(), max_size=3),
        ),
        max_size=3,
    ),
    node_endpoints=st.lists(
        st.builds(
            NodeEndpoint, node_id=INT32, host=st.text(max_size=5), port=INT32, rack=st.none()
        ),
        max_size=1,
    ),
)


def expected(message: FetchResponse) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for topic in message.responses:
        for one in topic.partitions:
            fork = one.diverging_epoch
            diverging = None if fork is None else (fork.epoch, fork.end_offset)
            found.append(
                (
                    topic.topic_id.bytes,
                    one.partition_index,
                    one.error_code,
                    one.high_watermark,
                    one.log_start_offset,
                    memoryview(bytes(one.records or b"")),
                    None if diverging == (-1, -1) else diverging,
                )
            )
    return found


def fields(one: FetchedPartition) -> tuple[object, ...]:
    return (
        one.topic_id,
        one.partition,
        one.error_code,
        one.high_watermark,
        one.log_start_offset,
        one.records,
        one.diverging_epoch,
    )


@given(message=ANSWERS)
def test_answer_is_read_as_it_was_written(message: FetchResponse) -> None:
    """Whatever tagged fields it has."""
    answer = decode_answer(memoryview(generated_response(message, VERSION)))
    assert answer.throttle_time_ms == message.throttle_time_ms
    assert (answer.error_code, answer.session_id) == (message.error_code, message.session_id)
    assert list(map(fields, answer.partitions)) == expected(message)


@given(message=ANSWERS, cut=st.floats(0, 1, exclude_max=True), noise=st.binary(max_size=40))
def test_malformed_answers_are_refused(message: FetchResponse, cut: float, noise: bytes) -> None:
    """Cut off anywhere, or with noise behind: an answer or a DecodeError, nothing else."""
    data = generated_response(message, VERSION)
    for bad in (data[: int(cut * len(data))], data[: int(cut * len(data))] + noise):
        try:
            decode_answer(memoryview(bad))
        except DecodeError:
            continue


def test_partitions_that_cannot_be_there_are_refused_at_once() -> None:
    """A count is compared with the bytes that are left."""
    data = bytes(10) + b"\x02" + bytes(16) + b"\xff\xff\xff\xff\x0f" + bytes(20)
    with pytest.raises(DecodeError, match="claims"):
        decode_answer(memoryview(data))


@pytest.mark.parametrize(("topics", "partitions"), [(200, 1), (1, 200), (127, 1), (1, 127)])
def test_counts_of_two_bytes_are_read(topics: int, partitions: int) -> None:
    """And those that are the last to take one."""
    message = FetchResponse(
        session_id=7,
        responses=[
            FetchableTopicResponse(
                topic_id=UUID(int=number + 1),
                partitions=[
                    PartitionData(partition_index=index, high_watermark=index, records=b"r" * index)
                    for index in range(partitions)
                ],
            )
            for number in range(topics)
        ],
    )
    answer = decode_answer(memoryview(generated_response(message, VERSION)))
    assert list(map(fields, answer.partitions)) == expected(message)


def test_aborted_transactions_are_passed_over() -> None:
    """A follower is sent none; what is behind them is found all the same."""
    aborted = [AbortedTransaction(producer_id=1, first_offset=offset) for offset in range(130)]
    message = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic_id=UUID(int=1),
                partitions=[
                    PartitionData(partition_index=1, aborted_transactions=aborted, records=b"abc"),
                    PartitionData(partition_index=2, aborted_transactions=[], records=b"d"),
                ],
            )
        ],
    )
    answer = decode_answer(memoryview(generated_response(message, VERSION)))
    assert list(map(fields, answer.partitions)) == expected(message)
