"""Responses to heartbeats: what a member owns, or why it is refused."""

from uuid import UUID

from broker.groups.consumer.responses import (
    answer_when_written,
    assignment_message,
    no_such_group,
)
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

A = UUID(int=1)


def test_assignment_names_topics_by_id() -> None:
    (topic,) = assignment_message({A: (0, 2)}).topic_partitions
    assert (topic.topic_id, topic.partitions) == (A, [0, 2])
    assert assignment_message({}).topic_partitions == []


def test_response_is_sent_only_when_it_is_committed() -> None:
    answers: list[ConsumerGroupHeartbeatResponse] = []
    response = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=3)
    answer_when_written(answers.append, response, ErrorCode.NONE)
    answer_when_written(answers.append, response, ErrorCode.NOT_COORDINATOR)
    assert answers[0] is response
    assert (answers[1].error_code, answers[1].member_epoch) == (ErrorCode.NOT_COORDINATOR, 0)


def test_missing_group_and_group_of_another_kind_are_told_apart() -> None:
    assert no_such_group("g", exists=False).message == "Consumer group g not found."
    assert no_such_group("g", exists=True).message == "Group g is not a consumer group."
