"""Whom a raw client asks, by what its request is about."""

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.messages.offset_commit import OffsetCommitRequest
from tests.checker.clients import routes
from tests.checker.clients.routes import (
    GROUP,
    TRANSACTION,
    Connection,
    Routes,
    places_of,
    target_of,
)

FETCH = FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=3)])])
END = EndTxnRequest(transactional_id="x")


def test_what_a_request_is_about() -> None:
    assert target_of(FETCH, ApiKey.FETCH) == ("t", 3)
    assert target_of(END, ApiKey.END_TXN) == (TRANSACTION, "x")
    commit = OffsetCommitRequest(group_id="g")
    assert target_of(commit, ApiKey.OFFSET_COMMIT) == (GROUP, "g")
    assert target_of(FindCoordinatorRequest(), ApiKey.FIND_COORDINATOR) is None


def test_places() -> None:
    assert places_of("a:1,b:2") == [("a", 1), ("b", 2)]
    assert places_of(("a", 1)) == [("a", 1)]


async def test_one_broker_is_asked_everything() -> None:
    one = Routes("a:1", "c", 1.0)
    found = {
        await one.connection_for(FETCH, ApiKey.FETCH),
        await one.connection_for(END, ApiKey.END_TXN),
    }
    assert len(found) == 1
    assert not one.is_needed


async def test_several_are_asked_who_it_is_and_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int]] = []
    leader = 2

    async def call(connection: Connection, request: object, api: ApiKey, *_: object) -> object:
        asked.append(connection._place)
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(
                coordinators=[Coordinator(key="x", node_id=2, host="b", port=2)]
            )
        partition = MetadataResponsePartition(partition_index=3, leader_id=leader)
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=1, host="a", port=1),
                MetadataResponseBroker(node_id=2, host="b", port=2),
            ],
            topics=[MetadataResponseTopic(name="t", partitions=[partition])],
        )

    monkeypatch.setattr(routes.Connection, "call", call)
    several = Routes("a:1,b:2", "c", 1.0)
    assert several.is_needed
    first = await several.connection_for(FETCH, ApiKey.FETCH)
    assert await several.connection_for(FETCH, ApiKey.FETCH) is first
    assert (first._place, asked) == (("b", 2), [("a", 1)])
    assert await several.connection_for(END, ApiKey.END_TXN) is first
    leader = 1
    several.forget(FETCH, ApiKey.FETCH)
    again = await several.connection_for(FETCH, ApiKey.FETCH)
    assert (again._place, asked[-1]) == (("a", 1), ("b", 2)), "by another one, too"
    leader = -1
    several.forget(FETCH, ApiKey.FETCH)
    with pytest.raises(ConnectionError, match="no leader of t-3"):
        await several.connection_for(FETCH, ApiKey.FETCH)
    several.close()
