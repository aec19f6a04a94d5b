"""OffsetDelete: every served version, end to end."""

from broker.handlers import (
    offset_delete,
)
from protocol.error_codes import ErrorCode
from protocol.messages import offset_delete as delete_offset_messages
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    commit,
    fetch,
)


async def test_offset_delete(groups: Groups) -> None:
    """Known partitions are forgotten; what does not exist has its error."""
    commit(groups, 9, ("t", 0, 5), ("u", 0, 6))
    request = delete_offset_messages.OffsetDeleteRequest(
        group_id="g",
        topics=[
            delete_offset_messages.OffsetDeleteRequestTopic(
                name=name,
                partitions=[delete_offset_messages.OffsetDeleteRequestPartition(partition_index=0)],
            )
            for name in ("t", "nowhere")
        ],
    )
    answer = groups.send(offset_delete, delete_offset_messages, request, 0)
    assert answer.error_code == ErrorCode.NONE
    assert [t.partitions[0].error_code for t in answer.topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert fetch(groups, 9, None)[1].keys() == {("u", 0)}
    for group, code in (("", ErrorCode.INVALID_GROUP_ID), ("x", ErrorCode.GROUP_ID_NOT_FOUND)):
        request.group_id = group
        refused = groups.send(offset_delete, delete_offset_messages, request, 0)
        assert (refused.error_code, refused.topics) == (code, [])
