"""What assignors share."""

from uuid import UUID

import pytest

from broker.groups.modern.assignor import (
    AssignorError,
    TopicSpec,
    partition_count,
    topic_order,
)


def test_topics_sort_as_in_kafka() -> None:
    """By two signed halves: what begins with a high bit comes first."""
    low = UUID("00000000-0000-0000-0000-000000000001")
    negative_low = UUID("00000000-0000-0000-8000-000000000000")
    high = UUID("7fffffff-ffff-ffff-0000-000000000000")
    negative = UUID("80000000-0000-0000-0000-000000000000")
    assert sorted([high, low, negative, negative_low], key=topic_order) == [
        negative,
        negative_low,
        low,
        high,
    ]


def test_topic_that_is_missing() -> None:
    """It is an error of whoever asked."""
    topic_id = UUID(int=5)
    assert partition_count({topic_id: TopicSpec("t", 3)}, topic_id) == 3
    with pytest.raises(AssignorError, match=str(topic_id)):
        partition_count({}, topic_id)
