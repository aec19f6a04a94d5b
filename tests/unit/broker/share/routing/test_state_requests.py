"""The requests, as far as the router does not show it: topics, and codes of other releases."""

from uuid import UUID

from broker.share.routing.state_requests import DELETE, READ, request_of, results_of
from protocol.error_codes import ErrorCode as E
from protocol.messages import delete_share_group_state as delete
from protocol.messages import read_share_group_state as read

ONE, OTHER = UUID(int=1), UUID(int=2)


def test_partitions_of_a_topic_are_together() -> None:
    items = [
        (topic, delete.PartitionData(partition=index))
        for topic, index in ((ONE, 0), (OTHER, 0), (ONE, 3))
    ]
    request = request_of(DELETE, "g", items)
    assert isinstance(request, delete.DeleteShareGroupStateRequest)
    assert request.group_id == "g"
    assert [(t.topic_id, [p.partition for p in t.partitions]) for t in request.topics] == [
        (ONE, [0, 3]),
        (OTHER, [0]),
    ]


def test_results_with_an_error_carry_nothing() -> None:
    answer = read.ReadShareGroupStateResponse(
        results=[
            read.ReadStateResult(
                topic_id=ONE,
                partitions=[
                    read.PartitionResult(partition=0, error_code=E.NOT_COORDINATOR),
                    read.PartitionResult(partition=1, error_code=30_000, state_epoch=4),
                ],
            )
        ]
    )
    assert results_of(READ, answer) == {
        (ONE, 0): (E.NOT_COORDINATOR, None),
        (ONE, 1): (E.UNKNOWN_SERVER_ERROR, None),
    }
