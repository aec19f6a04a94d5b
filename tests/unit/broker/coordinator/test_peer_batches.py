"""Requests to other brokers: together by broker and turn, to whom the image names."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from broker.coordinator.peer_batches import (
    NO_LEADER,
    NO_PARTITION,
    PeerBatches,
    Routes,
    code_of_peer,
    when_answered,
)
from broker.peers.errors import PeerUnavailableError
from protocol.error_codes import ErrorCode
from protocol.message import Message
from tests.fakes.broker.offsets_partition import FakeController, topic_image


def test_one_call_a_broker_and_turn_in_the_order_of_the_items() -> None:
    turns: list[Callable[[], None]] = []
    sent: list[tuple[int, list[str]]] = []
    batches: PeerBatches[str] = PeerBatches(
        lambda node_id, items: sent.append((node_id, items)), turns.append
    )
    for node_id, item in ((2, "a"), (3, "b"), (2, "c")):
        batches.add(node_id, item)
    assert sent == []
    (turn,) = turns
    turn()
    assert sent == [(2, ["a", "c"]), (3, ["b"])]
    batches.add(2, "d")
    turns[-1]()
    assert sent[2:] == [(2, ["d"])]


def test_a_broker_whose_request_cannot_be_made_keeps_no_other_from_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns: list[Callable[[], None]] = []
    sent: list[int] = []

    def send(node_id: int, _items: list[str]) -> None:
        if node_id == 2:
            raise ValueError("a bug")
        sent.append(node_id)

    batches: PeerBatches[str] = PeerBatches(send, turns.append)
    batches.add(2, "a")
    batches.add(3, "b")
    turns[0]()
    assert sent == [3]
    assert "requests to a broker could not be made node_id=2" in caplog.text


def test_the_leader_is_the_images_word() -> None:
    controller = FakeController(topic_image("t", 5, 3))
    topic = controller.image.topics["t"]
    partitions = [
        topic.partitions[0],
        replace(topic.partitions[1], leader=-1),
        replace(topic.partitions[2], leader=9),
    ]
    controller.image = replace(
        controller.image, topics={"t": replace(topic, partitions=partitions)}
    )
    routes = Routes(1, lambda: controller.image)
    assert routes.leader("t", 0) == 1
    assert routes.leader("t", 1) == routes.leader("t", 2) == NO_LEADER, "9 is not in the image"
    assert routes.leader("t", 3) == routes.leader("u", 0) == NO_PARTITION
    assert [routes.has(topic.topic_id, index) for index in (-1, 0, 2, 3)] == [
        False,
        True,
        True,
        False,
    ]
    assert not routes.has(UUID(int=6), 0)


def test_codes_of_a_newer_release() -> None:
    assert code_of_peer(16) is ErrorCode.NOT_COORDINATOR
    assert code_of_peer(31_000) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    "error", [None, PeerUnavailableError(2, sent=False, reason="x"), OSError()]
)
async def test_an_outcome_comes_once(error: Exception | None) -> None:
    answered: list[Message] = []
    failed: list[PeerUnavailableError] = []
    future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    when_answered(future, answered.append, failed.append)
    if error is None:
        future.set_result(Message())
    else:
        future.set_exception(error)
    await asyncio.sleep(0)
    assert (len(answered), len(failed)) == ((1, 0) if error is None else (0, 1))
    if isinstance(error, OSError) and not isinstance(error, PeerUnavailableError):
        assert failed[0].sent, "what a bug has done is not known"


async def test_a_request_that_was_given_up_has_no_outcome() -> None:
    future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    when_answered(future, lambda _: pytest.fail("answered"), lambda _: pytest.fail("failed"))
    future.cancel()
    await asyncio.sleep(0)
