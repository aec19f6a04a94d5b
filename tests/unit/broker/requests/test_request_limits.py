"""What one request may ask for is bounded by elements and bytes."""

import pytest

from broker.requests.request_limits import (
    ELEMENTS_MAX,
    SIZE_MAX,
    check_elements,
    check_partitions,
    check_size,
    elements_max_of,
)
from protocol.api_keys import ApiKey
from protocol.errors import DecodeError
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)


def test_exactly_the_limit_is_allowed() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t") for _ in range(100)])
    check_elements(request, 100)
    with pytest.raises(DecodeError, match="more than 99"):
        check_elements(request, 99)


def test_elements_of_every_level_count() -> None:
    """Two groups, six topics, sixty partitions."""
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=list(range(10)))] * 3
    groups = [OffsetFetchRequestGroup(group_id="g", topics=topics)] * 2
    request = OffsetFetchRequest(groups=groups)
    check_elements(request, 68)
    with pytest.raises(DecodeError):
        check_elements(request, 67)


def test_only_produce_may_be_as_large_as_a_frame() -> None:
    check_size(ApiKey.PRODUCE, 100 * 1024 * 1024)
    check_size(ApiKey.SYNC_GROUP, SIZE_MAX)
    with pytest.raises(DecodeError, match="bytes"):
        check_size(ApiKey.SYNC_GROUP, SIZE_MAX + 1)


def test_what_costs_more_is_allowed_less() -> None:
    assert elements_max_of(ApiKey.ALTER_CONFIGS) < elements_max_of(ApiKey.METADATA) == ELEMENTS_MAX


def test_a_plan_of_moves_comes_in_one_request() -> None:
    """5,000 partitions with three replicas each."""
    moves = [ReassignablePartition(partition_index=n, replicas=[1, 2, 3]) for n in range(5000)]
    topics = [ReassignableTopic(name="t", partitions=moves)]
    request = AlterPartitionReassignmentsRequest(topics=topics)
    check_elements(request, elements_max_of(ApiKey.ALTER_PARTITION_REASSIGNMENTS))


def test_partitions() -> None:
    check_partitions(ELEMENTS_MAX)
    with pytest.raises(DecodeError):
        check_partitions(ELEMENTS_MAX + 1)
