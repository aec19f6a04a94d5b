"""The client library speaks requests it does not have, byte for byte as the broker does."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from cli.admin.share_group_requests import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareAdminClient,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from protocol.messages import describe_share_group_offsets as our_offsets
from protocol.messages import share_group_describe as ours

GROUP = ours.DescribedGroup(
    group_id="g",
    group_state="Stable",
    group_epoch=3,
    assignment_epoch=2,
    assignor_name="simple",
    members=[
        ours.Member(
            member_id="m",
            member_epoch=1,
            client_id="c",
            client_host="/10.0.0.1",
            subscribed_topic_names=["t"],
            assignment=ours.Assignment(
                topic_partitions=[
                    ours.TopicPartitions(topic_id=UUID(int=1), topic_name="t", partitions=[0, 2])
                ]
            ),
        )
    ],
)


def test_groups() -> None:
    request = ShareGroupDescribeRequest(
        group_ids=["a", "b"], include_authorized_operations=True, version=1
    )
    read = ours.decode_request(bytes(request.encode(header=False)), 1)
    assert (read.group_ids, read.include_authorized_operations) == (["a", "b"], True)
    data = bytes(ours.encode_response(ours.ShareGroupDescribeResponse(groups=[GROUP]), 1))
    answer = ShareGroupDescribeResponse.decode(data, version=1, header=False)
    (group,) = (one.to_dict() for one in answer.groups)
    (member,) = group["members"]
    assert (group["group_id"], group["group_epoch"], group["assignment_epoch"]) == ("g", 3, 2)
    assert (member["member_id"], member["member_epoch"]) == ("m", 1)
    (held,) = member["assignment"]["topic_partitions"]
    assert (held["topic_name"], held["partitions"]) == ("t", [0, 2])


@pytest.mark.parametrize("version", [0, 1])
def test_offsets(version: int) -> None:
    """All topics is no list at all; the lag is in version 1 only."""
    kind = DescribeShareGroupOffsetsRequest
    one = kind.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    request = kind(groups=[one], version=version)
    read = our_offsets.decode_request(bytes(request.encode(header=False)), version)
    assert [(group.group_id, group.topics) for group in read.groups] == [("g", None)]
    sent = our_offsets.DescribeShareGroupOffsetsResponse(
        groups=[
            our_offsets.DescribeShareGroupOffsetsResponseGroup(
                group_id="g",
                topics=[
                    our_offsets.DescribeShareGroupOffsetsResponseTopic(
                        topic_name="t",
                        partitions=[
                            our_offsets.DescribeShareGroupOffsetsResponsePartition(
                                partition_index=1, start_offset=7, lag=9
                            )
                        ],
                    )
                ],
            )
        ]
    )
    data = bytes(our_offsets.encode_response(sent, version))
    answer = DescribeShareGroupOffsetsResponse.decode(data, version=version, header=False)
    (group,) = (one.to_dict() for one in answer.groups)
    (partition,) = group["topics"][0]["partitions"]
    assert (partition["partition_index"], partition["start_offset"]) == (1, 7)
    assert partition.get("lag", -1) == (9 if version else -1)


def test_the_coordinator_is_asked() -> None:
    admin = ShareAdminClient.__new__(ShareAdminClient)
    sent: list[tuple[Any, int]] = []

    async def find(names: list[str]) -> dict[str, int]:
        return dict.fromkeys(names, 3)

    async def send(request: Any, *, node_id: int) -> Any:
        sent.append((type(request), node_id))
        found = SimpleNamespace(group_id="g", to_dict=lambda: {"error_code": 0})
        return SimpleNamespace(groups=[found])

    manager = SimpleNamespace(run=lambda coroutine: asyncio.run(coroutine()), send=send)
    for name, part in (("_manager", manager), ("_find_coordinator_ids", find)):
        setattr(admin, name, part)
    assert admin.describe_share_groups(["g"]) == {"g": {"error_code": 0}}
    assert admin.share_group_offsets("g") == {"error_code": 0}
    assert sent == [(ShareGroupDescribeRequest, 3), (DescribeShareGroupOffsetsRequest, 3)]
