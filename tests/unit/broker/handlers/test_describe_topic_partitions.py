"""DescribeTopicPartitions: pages, cursors, errors."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from broker.controller.controller import Controller
from broker.controller.topics.topic_metadata import NO_LEADER
from broker.controller.topics.topics import NewTopic
from broker.handlers import describe_topic_partitions
from protocol.error_codes import ErrorCode
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.effort import examples
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call

COUNTS = {"a": 3, "b": 1, "c": 4}


async def filled(**options: object) -> Controller:
    controller = await open_controller(**options)  # type: ignore[arg-type]  # settings
    await controller.create_topics([NewTopic(name, n, 1) for name, n in COUNTS.items()])
    return controller


async def ask(
    controller: Controller,
    *names: str,
    limit: int = 2000,
    cursor: tuple[str, int] | None = None,
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit
    )
    if cursor is not None:
        request.cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=cursor[0], partition_index=cursor[1]
        )
    response = await call(describe_topic_partitions, services_of(controller), request, 0)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def found(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


def next_of(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def test_everything_on_one_page() -> None:
    """In order of name, with all that is known of a partition."""
    controller = await filled()
    response = await ask(controller)
    assert found(response) == [("a", [0, 1, 2]), ("b", [0]), ("c", [0, 1, 2, 3])]
    assert response.next_cursor is None
    topic = response.topics[0]
    assert topic.topic_id == controller.image.topics["a"].topic_id
    assert topic.topic_authorized_operations == 3576
    partition = topic.partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.offline_replicas) == (1, 0, [])
    assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


async def test_replicas_that_may_lead_next_are_told() -> None:
    """Of a partition without a leader: an operator has to know which broker to bring back."""
    controller = await filled()
    image = controller.image
    topic = image.topics["b"]
    (partition,) = topic.partitions
    offline = replace(
        partition, leader=NO_LEADER, replicas=(1, 2, 3), isr=(), elr=(3,), last_known_elr=(3, 2)
    )
    image = replace(image, topics={**image.topics, "b": replace(topic, partitions=[offline])})
    seen = cast("Controller", SimpleNamespace(image=image, settings=controller.settings))
    ((described,),) = [topic.partitions for topic in (await ask(seen, "b")).topics]
    assert (described.leader_id, described.isr_nodes) == (NO_LEADER, [])
    assert (described.eligible_leader_replicas, described.last_known_elr) == ([3], [3, 2])


async def test_topics_asked_for_are_sorted_and_missing_ones_told() -> None:
    response = await ask(await filled(), "c", "none", "b", "bad name")
    assert [(t.name, ErrorCode(t.error_code)) for t in response.topics] == [
        ("b", ErrorCode.NONE),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("c", ErrorCode.NONE),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


async def test_page_ends_inside_a_topic_or_between_two() -> None:
    controller = await filled()
    response = await ask(controller, limit=2)
    assert (found(response), next_of(response)) == ([("a", [0, 1])], ("a", 2))
    response = await ask(controller, limit=3)
    assert (found(response), next_of(response)) == ([("a", [0, 1, 2])], ("b", 0))
    response = await ask(controller, limit=8)
    assert next_of(response) is None


@examples(20)
@given(st.integers(1, 9), st.booleans())
def test_pages_together_are_everything_once(limit: int, named: bool) -> None:
    """Whatever the size of a page."""

    async def walk() -> list[tuple[str | None, int]]:
        controller = await filled()
        names = list(COUNTS) if named else []
        seen: list[tuple[str | None, int]] = []
        cursor: tuple[str, int] | None = None
        for _ in range(20):
            response = await ask(controller, *names, limit=limit, cursor=cursor)
            page = [(name, i) for name, indexes in found(response) for i in indexes]
            assert len(page) <= limit
            seen += page
            cursor = next_of(response)
            if cursor is None:
                return seen
        raise AssertionError("no end")

    assert asyncio.run(walk()) == [(name, i) for name, n in COUNTS.items() for i in range(n)]


async def test_limit_of_the_broker_counts_too() -> None:
    controller = await filled(max_request_partition_size_limit=2)
    assert found(await ask(controller, limit=100)) == [("a", [0, 1])]


async def test_limit_below_one_is_one() -> None:
    assert found(await ask(await filled(), limit=0)) == [("a", [0])]


async def test_cursor_on_a_topic_that_has_gone() -> None:
    """The next topic goes on, from its beginning."""
    controller = await filled()
    await controller.delete_topics([controller.image.topics["b"].topic_id])
    assert found(await ask(controller, cursor=("b", 3))) == [("c", [0, 1, 2, 3])]


async def test_cursor_outside_the_request_is_refused() -> None:
    """Also one with a negative partition; every topic asked for gets the error."""
    controller = await filled()
    for cursor in (("b", 0), ("a", -1)):
        response = await ask(controller, "a", "c", cursor=cursor)
        assert [(t.name, t.error_code) for t in response.topics] == [
            ("a", ErrorCode.INVALID_REQUEST),
            ("c", ErrorCode.INVALID_REQUEST),
        ]
