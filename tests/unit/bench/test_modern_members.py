"""Members of the new protocol say at once what they own, and start anew when they were fenced."""

import struct
import uuid
from types import SimpleNamespace
from typing import Any

from bench.group_wire import Assignment, Subscription
from bench.modern_members import ModernMember, is_balanced
from bench.pipeline import OnAnswer
from protocol.messages import consumer_group_heartbeat as cgh
from tests.harness.broker_headers import decode_request_header

TOPIC = uuid.UUID(int=9)


class Broker:
    """Stands for loop and connection: notes requests, answers on demand, plans without a clock."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self._waiting: list[OnAnswer] = []
        self.planned: list[Any] = []

    def send(self, frame: bytes, on_answer: OnAnswer) -> None:
        header, position = decode_request_header(frame[4:])
        self.requests.append(cgh.decode_request(frame[4 + position :], header.api_version))
        self._waiting.append(on_answer)

    def call_at(self, _moment: float, call: Any) -> None:
        self.planned.append(call)

    def answer(self, epoch: int, assignment: Assignment | None = None, *, error: int = 0) -> None:
        response = cgh.ConsumerGroupHeartbeatResponse(
            error_code=error, member_epoch=epoch, heartbeat_interval_ms=5000
        )
        if assignment is not None:
            response.assignment = cgh.Assignment(
                topic_partitions=[
                    cgh.ConsumerGroupHeartbeatResponseTopicPartitions(
                        topic_id=topic, partitions=list(some)
                    )
                    for topic, some in assignment.items()
                ]
            )
        body = struct.pack(">ib", 0, 0) + bytes(cgh.encode_response(response, 1))
        self._waiting.pop(0)(body)


def new_member(broker: Broker, laps: list[float] | None = None) -> ModernMember:
    loop: Any = broker
    return ModernMember(loop, loop, "g", Subscription(["topic"]), laps=laps)


def test_an_assignment_is_acknowledged_at_once() -> None:
    broker = Broker()
    member = new_member(broker)
    member.join()
    assert broker.requests[0].member_epoch == 0
    broker.answer(1, {TOPIC: (0, 1)})
    assert not member.is_settled
    (owned,) = broker.requests[1].topic_partitions
    assert (broker.requests[1].member_epoch, owned.partitions) == (1, [0, 1])
    broker.answer(1)
    assert member.is_settled
    assert len(broker.planned) == 1


def test_a_member_that_waits_for_partitions_is_settled_with_none() -> None:
    """The first answer may hold an empty assignment: there is nothing to acknowledge."""
    broker = Broker()
    member = new_member(broker)
    member.join()
    broker.answer(2, {})
    assert member.is_settled
    assert len(broker.requests) == 1


def test_only_the_last_planned_heartbeat_is_sent() -> None:
    broker, laps = Broker(), list[float]()
    member = new_member(broker, laps)
    member.join()
    broker.answer(1, {})
    stale = broker.planned[0]
    stale()
    assert len(broker.requests) == 2
    broker.answer(2, {TOPIC: (0,)})
    broker.answer(2)
    stale()
    assert len(broker.requests) == 3
    # Neither the join nor the acknowledgement is a plain heartbeat.
    assert len(laps) == 1


def test_a_fenced_member_joins_again_with_nothing() -> None:
    broker = Broker()
    member = new_member(broker)
    member.join()
    broker.answer(1, {TOPIC: (0,)})
    broker.answer(0, error=110)
    assert (broker.requests[2].member_epoch, broker.requests[2].topic_partitions) == (0, [])
    assert (member.owned, member.joins) == ({}, 2)


def test_a_member_that_left_says_nothing_more() -> None:
    broker = Broker()
    member = new_member(broker)
    member.join()
    broker.answer(1, {})
    member.leave()
    assert broker.requests[1].member_epoch == -1
    broker.planned[0]()
    broker.answer(-1)
    assert len(broker.requests) == 2


def test_balanced_is_one_epoch_and_one_owner_each() -> None:
    def member(epoch: int, *partitions: int, **changed: bool) -> Any:
        state = {"is_settled": True, "has_left": False, **changed}
        return SimpleNamespace(epoch=epoch, owned={TOPIC: partitions}, **state)

    assert is_balanced([member(3, 0, 1), member(3, 2), member(1, 9, has_left=True)], 3)
    assert not is_balanced([member(3, 0, 1), member(2, 2)], 3)
    assert not is_balanced([member(3, 0, 1), member(3, 1)], 3)
    assert not is_balanced([member(3, 0, 1), member(3)], 3)
    assert not is_balanced([member(3, 0, 1), member(3, 2, is_settled=False)], 3)
