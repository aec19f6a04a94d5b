"""FindCoordinator: every served version, end to end."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.images.cluster_image import BrokerEndpoint, BrokerImage
from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.groups.coordinator import OFFSETS_TOPIC
from broker.handlers import (
    find_coordinator,
)
from protocol.error_codes import ErrorCode
from protocol.messages import find_coordinator as find_messages
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    versions,
)
from tests.unit.broker.handlers.transactions_fixture import Transactions


def find(groups: Groups, version: int, key: str = "g", key_type: int = 0) -> Any:
    if version >= 4:
        request = find_messages.FindCoordinatorRequest(coordinator_keys=[key])
    else:
        request = find_messages.FindCoordinatorRequest(key=key)
    if version >= 1:
        request.key_type = key_type
    return groups.send(find_coordinator, find_messages, request, version)


def place(answer: Any, version: int) -> tuple[int, int, str, int]:
    one = answer.coordinators[0] if version >= 4 else answer
    return one.error_code, one.node_id, one.host, one.port


@pytest.mark.parametrize("version", versions(find_coordinator))
async def test_coordinator_is_found_in_every_version(groups: Groups, version: int) -> None:
    """By what the listener of the request is advertised as."""
    assert place(find(groups, version), version) == (ErrorCode.NONE, 1, "broker.test", 9092)


@pytest.mark.parametrize("version", versions(find_coordinator))
async def test_first_request_creates_the_topic(version: int) -> None:
    groups = Groups(with_offsets_topic=False)
    groups.controller.on_created = lambda: groups.coordinator.on_elected(0, 0)
    await groups.start(elect=False)
    answer = await find(groups, version)
    assert place(answer, version) == (ErrorCode.NONE, 1, "broker.test", 9092)
    await groups.coordinator.stop()


async def test_topic_that_cannot_be_created_is_tried_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    groups = Groups(with_offsets_topic=False)
    groups.controller.refuse_with = ErrorCode.INVALID_REPLICATION_FACTOR
    await groups.start(elect=False)
    answer = await find(groups, 4)
    assert place(answer, 4) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
    assert "cannot be created" in caplog.text
    await groups.coordinator.stop()


@pytest.mark.parametrize(
    ("leader", "answer"),
    [
        (2, (ErrorCode.NONE, 2, "other.test", 9093)),
        (3, (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)),
        (4, (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)),
        (-1, (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)),
    ],
)
async def test_the_leader_of_the_partition_is_named_by_the_clients_listener(
    groups: Groups, leader: int, answer: tuple[int, int, str, int]
) -> None:
    """3 does not listen there, 4 is not in the image."""
    image = groups.controller.image
    topic = image.topics[OFFSETS_TOPIC]
    partitions = [replace(partition, leader=leader) for partition in topic.partitions]
    brokers = {
        **image.brokers,
        2: BrokerImage(
            2,
            {
                "INTERNAL": BrokerEndpoint("internal.test", 1),
                "PLAINTEXT": BrokerEndpoint("other.test", 9093),
            },
        ),
        3: BrokerImage(3, {"INTERNAL": BrokerEndpoint("internal.test", 2)}),
    }
    groups.controller.image = replace(
        image, brokers=brokers, topics={OFFSETS_TOPIC: replace(topic, partitions=partitions)}
    )
    for version in versions(find_coordinator):
        assert place(find(groups, version), version) == answer


async def test_other_kinds_of_coordinators(groups: Groups) -> None:
    for key_type, code in (
        (2, ErrorCode.INVALID_REQUEST),
        (9, ErrorCode.INVALID_REQUEST),
    ):
        answer = find(groups, 6, "k", key_type)
        assert place(answer, 6) == (code, -1, "", -1)
        assert answer.coordinators[0].key == "k"
        assert answer.coordinators[0].error_message


# -- of share-partitions --


@pytest.mark.parametrize(
    ("version", "key", "code"),
    [
        (6, "g:AAAAAAAAAAAAAAAAAAAABQ:7", ErrorCode.NONE),
        (6, "a:b:AAAAAAAAAAAAAAAAAAAABQ:0", ErrorCode.NONE),
        (5, "g:AAAAAAAAAAAAAAAAAAAABQ:7", ErrorCode.INVALID_REQUEST),
        (6, ":AAAAAAAAAAAAAAAAAAAABQ:7", ErrorCode.INVALID_REQUEST),
        (6, "g:AAAA:7", ErrorCode.INVALID_REQUEST),
        (6, "g:AAAAAAAAAAAAAAAAAAAABQ:-1", ErrorCode.INVALID_REQUEST),
        (6, "g:AAAAAAAAAAAAAAAAAAAABQ", ErrorCode.INVALID_REQUEST),
        (6, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_keys_of_share_partitions(version: int, key: str, code: ErrorCode) -> None:
    controller = FakeController(topic_image(SHARE_GROUP_STATE, 99, 4))
    services: Any = SimpleNamespace(
        controller=controller,
        share_coordinator=SimpleNamespace(partition_for=lambda text: len(text) % 4),
    )
    context: Any = SimpleNamespace(
        api_version=version, connection=SimpleNamespace(listener_name="PLAINTEXT")
    )
    request = find_messages.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    answer: Any = find_coordinator.handle(services, context, request)
    assert place(answer, 4)[0] == code


# -- of transactional ids --


def find_transaction(t: Transactions, version: int, *keys: str) -> Any:
    if version >= 4:
        request = find_messages.FindCoordinatorRequest(coordinator_keys=list(keys))
    else:
        request = find_messages.FindCoordinatorRequest(key=keys[0])
    request.key_type = 1
    return t.send(find_coordinator, request, version)


@pytest.mark.parametrize("version", range(1, 7))
def test_coordinator_of_a_transactional_id(transactions: Transactions, version: int) -> None:
    answer = find_transaction(transactions, version, "tx")
    assert place(answer, version) == (ErrorCode.NONE, 1, "broker.test", 9092)


@pytest.mark.parametrize("version", range(1, 7))
def test_first_transactional_producer_creates_the_topic(
    transactions: Transactions, version: int
) -> None:
    transactions.run(transactions.controller.set_topics())
    answer = find_transaction(transactions, version, "tx")
    assert place(answer, version) == (ErrorCode.NONE, 1, "broker.test", 9092)


def test_topic_of_transactions_that_cannot_be_created(
    transactions: Transactions, caplog: pytest.LogCaptureFixture
) -> None:
    transactions.run(transactions.controller.set_topics())
    transactions.controller.refuse_with = ErrorCode.INVALID_REPLICATION_FACTOR
    answer = find_transaction(transactions, 6, "a", "b")
    assert [one.error_code for one in answer.coordinators] == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE
    ] * 2
    assert "internal topic cannot be created topic=__transaction_state" in caplog.text
