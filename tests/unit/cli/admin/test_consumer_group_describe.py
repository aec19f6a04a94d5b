"""The client library speaks a request it does not have, byte for byte as the broker does."""

from uuid import UUID

import pytest

from cli.admin.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from protocol.messages import consumer_group_describe as ours


@pytest.mark.parametrize("version", [0, 1])
def test_the_request_is_that_of_the_broker(version: int) -> None:
    request = ConsumerGroupDescribeRequest(
        group_ids=["a", "b"], include_authorized_operations=True, version=version
    )
    read = ours.decode_request(bytes(request.encode(header=False)), version)
    assert (read.group_ids, read.include_authorized_operations) == (["a", "b"], True)


@pytest.mark.parametrize("version", [0, 1])
def test_the_answer_is_that_of_the_broker(version: int) -> None:
    """Down to the partitions; the kind of member only in version 1."""
    assignment = ours.Assignment(
        topic_partitions=[
            ours.TopicPartitions(topic_id=UUID(int=1), topic_name="t", partitions=[0, 2])
        ]
    )
    sent = ours.ConsumerGroupDescribeResponse(
        groups=[
            ours.DescribedGroup(
                group_id="g",
                group_state="Stable",
                group_epoch=3,
                assignment_epoch=2,
                assignor_name="uniform",
                members=[
                    ours.Member(member_id="m", assignment=assignment, member_epoch=1, member_type=0)
                ],
            )
        ]
    )
    data = bytes(ours.encode_response(sent, version))
    read = ConsumerGroupDescribeResponse.decode(data, version=version, header=False)
    (group,) = (one.to_dict() for one in read.groups)
    (member,) = group["members"]
    assert (group["group_id"], group["group_epoch"], group["assignment_epoch"]) == ("g", 3, 2)
    (held,) = member["assignment"]["topic_partitions"]
    assert (held["topic_name"], held["partitions"]) == ("t", [0, 2])
    assert member.get("member_type", -1) == (0 if version == 1 else -1)
