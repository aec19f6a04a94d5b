"""Who is refused is sent to the leader (KIP-951)."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.controller.images.broker_records import BrokerEndpoint, BrokerImage
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.partition_image import PartitionImage
from broker.replicas.leader_hints import FETCH_CODES, PRODUCE_CODES, LeaderHints
from protocol.error_codes import ErrorCode
from protocol.hot.produce import ProducePartitionResponse

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
TOPIC_ID = UUID(int=7)


def image_of(*leaders: int) -> ClusterImage:
    """A topic `t` with a leader per partition, in epochs from 10 on; brokers 1 to 3."""
    partitions = tuple(
        PartitionImage(index, leader, 10 + index, 0, (1, 2, 3), (1, 2, 3))
        for index, leader in enumerate(leaders)
    )
    topic = TopicImage("t", TOPIC_ID, partitions, {}, internal=False)
    brokers = {
        node_id: BrokerImage(node_id, {"CLIENTS": BrokerEndpoint("h", 9000 + node_id)}, "rack")
        for node_id in (1, 2, 3)
    }
    return replace(
        ClusterImage.empty(), topics={"t": topic}, topics_by_id={TOPIC_ID: topic}, brokers=brokers
    )


def refused(*codes: int) -> list[ProducePartitionResponse]:
    return [ProducePartitionResponse(index, code, -1) for index, code in enumerate(codes)]


def leaders(responses: list[ProducePartitionResponse]) -> list[tuple[int, int] | None]:
    return [one.current_leader for one in responses]


def test_the_leader_and_its_address_come_with_the_refusal() -> None:
    """Each broker once; who was served gets none."""
    hints = LeaderHints(lambda: image_of(2, 3, 2))
    responses = refused(NOT_LEADER, 0, NOT_LEADER)
    endpoints = hints.add([("t", responses)], PRODUCE_CODES, "CLIENTS")
    assert leaders(responses) == [(2, 10), None, (2, 12)]
    assert endpoints == [(2, "h", 9002, "rack")]


def test_topics_are_found_by_id_too() -> None:
    hints = LeaderHints(lambda: image_of(3))
    responses = refused(NOT_LEADER)
    assert hints.add([(TOPIC_ID.bytes, responses)], PRODUCE_CODES, "CLIENTS")
    assert leaders(responses) == [(3, 10)]


def test_other_errors_and_unknown_partitions_have_no_leader() -> None:
    """FENCED_LEADER_EPOCH is a Fetch's alone; without a leader there is nobody to go to."""
    hints = LeaderHints(lambda: image_of(-1, 2))
    fenced: Any = refused(NOT_LEADER, ErrorCode.FENCED_LEADER_EPOCH, NOT_LEADER)
    unknown = refused(NOT_LEADER)
    answer: Any = [("t", fenced), ("absent", unknown), (UUID(int=9).bytes, unknown)]
    assert hints.add(answer, PRODUCE_CODES, "CLIENTS") == []
    assert leaders(fenced) == [None, None, None]
    assert hints.add(answer, FETCH_CODES, "CLIENTS") == [(2, "h", 9002, "rack")]
    assert leaders(fenced) == [None, (2, 11), None]
    assert leaders(unknown) == [None]


def test_a_leader_without_the_clients_listener_has_no_address() -> None:
    """The client asks for metadata then, as before."""
    hints = LeaderHints(lambda: image_of(2))
    responses = refused(NOT_LEADER)
    assert hints.add([("t", responses)], PRODUCE_CODES, "OTHER") == []
    assert leaders(responses) == [(2, 10)]
