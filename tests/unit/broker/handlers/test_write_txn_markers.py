"""WriteTxnMarkers: an outcome for every partition of every marker."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.handlers import write_txn_markers
from broker.requests.answer import Answer
from config.broker import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages import write_txn_markers as messages
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from storage.types.append_origin import AppendOrigin
from tests.fakes.broker.controller import brokers_apart, context_of
from tests.unit.broker.transactions.partitions.test_markers import FakeGroups
from tests.unit.broker.world import World, batch


def ask(
    world: World,
    version: int,
    *markers: WritableTxnMarker,
    settings: BrokerConfig | None = None,
) -> WriteTxnMarkersResponse:
    request = messages.decode_request(
        messages.encode_request(WriteTxnMarkersRequest(markers=list(markers)), version), version
    )
    services: Any = SimpleNamespace(
        settings=settings or BrokerConfig(), replica_manager=world.replicas, groups=FakeGroups()
    )
    answer = write_txn_markers.handle(
        services, context_of(ApiKey.WRITE_TXN_MARKERS, version), request
    )
    assert not isinstance(answer, Answer)
    return messages.decode_response(messages.encode_response(answer, version), version)


def marker(pid: int, *indexes: int, **options: Any) -> WritableTxnMarker:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=list(indexes))
    return WritableTxnMarker(producer_id=pid, topics=[topic], **options)


def outcomes(response: WriteTxnMarkersResponse) -> list[tuple[int, str, int, ErrorCode]]:
    return [
        (one.producer_id, topic.name, partition.partition_index, ErrorCode(partition.error_code))
        for one in response.markers
        for topic in one.topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", [1, 2])
async def test_every_partition_is_answered(world: World, version: int) -> None:
    """In the order asked."""
    partition = world.add("t")
    for pid in (7, 8):
        records = batch(
            b"a", producer_id=pid, producer_epoch=0, base_sequence=0, transactional=True
        )
        partition.append(memoryview(records), world.clock.now_ms(), AppendOrigin.COORDINATOR)
    answer = ask(
        world, version, marker(8, 0, 5, transaction_result=True), marker(7, 0, coordinator_epoch=2)
    )
    assert outcomes(answer) == [
        (8, "t", 0, ErrorCode.NONE),
        (8, "t", 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (7, "t", 0, ErrorCode.NONE),
    ]
    assert partition.log.last_stable_offset == 4
    assert partition.log.reader.aborted_transactions(0, 4) == [(7, 0)]


async def test_the_transaction_version_counts(world: World) -> None:
    """From version 2 on an equal epoch is late; an administrator's abort has none."""
    partition = world.add("t")
    records = batch(b"a", producer_id=7, producer_epoch=3, base_sequence=0, transactional=True)
    partition.append(memoryview(records), world.clock.now_ms(), AppendOrigin.COORDINATOR)
    late = marker(7, 0, producer_epoch=3, transaction_version=2)
    assert outcomes(ask(world, 2, late))[0][3] is ErrorCode.INVALID_PRODUCER_EPOCH
    abort = marker(7, 0, producer_epoch=3)
    assert outcomes(ask(world, 2, abort))[0][3] is ErrorCode.NONE


async def test_no_markers(world: World) -> None:
    """Nothing to answer."""
    assert ask(world, 1).markers == []


async def test_markers_of_no_partition_are_not_answered(world: World) -> None:
    world.add("t")
    nothing = WritableTxnMarker(producer_id=7, topics=[])
    assert ask(world, 1, nothing, marker(8)).markers == []
    (one,) = ask(world, 1, nothing, marker(9, 3)).markers
    assert one.producer_id == 9


async def test_clients_write_no_markers_where_brokers_have_a_listener_of_their_own(
    world: World,
) -> None:
    log = world.add("t").log
    answer = ask(world, 2, marker(7, 0, 1), settings=brokers_apart())
    assert outcomes(answer) == [
        (7, "t", index, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) for index in (0, 1)
    ]
    assert log.log_end_offset == 0
