"""The response by hand says what the generated decoder reads."""

from typing import Any
from uuid import UUID

import pytest

from protocol.hot.share_fetch import ShareFetchedPartition, encode_response
from protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from protocol.messages.share_fetch import encode_response as encode_generated


def joined(buffers: list[Any]) -> bytes:
    return b"".join(bytes(buffer) for buffer in buffers)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("records", [None, b"", b"r", bytes(200), bytes(20_000)])
def test_it_is_what_the_generated_encoder_writes(version: int, records: bytes | None) -> None:
    acquired = [(1, 5, 2), (9, 9, 1)]
    nothing = ShareFetchedPartition(1)
    ours = encode_response(
        [
            (UUID(int=7), [ShareFetchedPartition(3, 0, 121, records, acquired, None, "gone")]),
            (
                UUID(int=8),
                [
                    ShareFetchedPartition(0, 6, error_message="ä"),
                    ShareFetchedPartition(2, 6, current_leader=(3, 9)),
                    nothing,
                ],
            ),
        ],
        error_code=4,
        error_message="no",
        lock_timeout_ms=30_000,
        node_endpoints=[(3, "h", 9092, None), (300, "other", 1, "rack")],
    )
    expected = ShareFetchResponse(
        error_code=4,
        error_message="no",
        acquisition_lock_timeout_ms=30_000,
        responses=[
            ShareFetchableTopicResponse(
                topic_id=UUID(int=7),
                partitions=[
                    PartitionData(
                        partition_index=3,
                        acknowledge_error_code=121,
                        current_leader=LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
                        acknowledge_error_message="gone",
                        records=records or b"",
                        acquired_records=[
                            AcquiredRecords(first_offset=f, last_offset=last, delivery_count=count)
                            for f, last, count in acquired
                        ],
                    )
                ],
            ),
            ShareFetchableTopicResponse(
                topic_id=UUID(int=8),
                partitions=[
                    PartitionData(
                        partition_index=0,
                        error_code=6,
                        error_message="ä",
                        current_leader=LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
                    ),
                    PartitionData(
                        partition_index=2,
                        error_code=6,
                        current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=9),
                    ),
                    PartitionData(partition_index=1),
                ],
            ),
        ],
        node_endpoints=[
            NodeEndpoint(node_id=3, host="h", port=9092, rack=None),
            NodeEndpoint(node_id=300, host="other", port=1, rack="rack"),
        ],
    )
    assert joined(ours) == encode_generated(expected, version)


def test_records_stay_what_they_are() -> None:
    records = memoryview(bytearray(100))
    buffers = encode_response([(UUID(int=1), [ShareFetchedPartition(0, records=records)])])
    assert buffers[1] is records
    assert isinstance(buffers[0], bytes)
