"""Markers to the leaders of partitions, wherever they are."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from broker.transactions.interfaces import PartitionErrors
from broker.transactions.routing import marker_router
from broker.transactions.routing.marker_router import MarkerRouter
from protocol.error_codes import ErrorCode as E
from protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker
from tests.fakes.broker.peers import Sent
from tests.unit.broker.transactions.routing.conftest import Cluster

HERE, AWAY, THIRD, NOBODY, GONE = (TopicPartition("t", index) for index in range(5))
ALSO_AWAY = TopicPartition("u", 0)
M = TransactionMarker(7, 3, True, 12, 2)


class FakeWriter:
    """The writer of this broker; answers at once, or not."""

    def __init__(self) -> None:
        self.written: list[tuple[TransactionMarker, list[TopicPartition]]] = []
        self.hold = False
        self.held: list[Callable[[], None]] = []

    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        done: Callable[[PartitionErrors], None],
    ) -> None:
        self.written.append((marker, list(partitions)))
        errors = dict.fromkeys(partitions, E.NONE)
        if self.hold:
            self.held.append(lambda: done(errors))
        else:
            done(errors)


class World:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.local = FakeWriter()
        cluster.lead(t=[1, 2, 3, -1], u=[2])
        self.router = MarkerRouter(
            self.local, routes=cluster.routes, peers=cluster.peers, soon=cluster.turns.append
        )

    def write(
        self, *partitions: TopicPartition, marker: TransactionMarker = M
    ) -> list[PartitionErrors]:
        outcomes: list[PartitionErrors] = []
        self.router.write(marker, partitions, outcomes.append)
        return outcomes


@pytest.fixture
def w(cluster: Cluster) -> World:
    return World(cluster)


def asked(request: Sent) -> list[tuple[Any, ...]]:
    return [
        (m.producer_id, {topic.name: topic.partition_indexes for topic in m.topics})
        for m in request.message.markers
    ]


def response(results: Mapping[int, PartitionErrors]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=partition.topic,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=partition.partition, error_code=code
                            )
                        ],
                    )
                    for partition, code in errors.items()
                ],
            )
            for producer_id, errors in results.items()
        ]
    )


def test_what_is_led_here_is_written_here(w: World) -> None:
    assert w.write(HERE) == [{HERE: E.NONE}]
    assert w.local.written == [(M, [HERE])]
    assert w.write() == [{}]
    assert not w.cluster.turns


async def test_each_leader_gets_its_partitions_and_the_outcome_is_of_all(w: World) -> None:
    outcomes = w.write(HERE, AWAY, THIRD, ALSO_AWAY)
    assert w.local.written == [(M, [HERE])]
    w.cluster.end_turn()
    one, other = w.cluster.peers.sent
    assert (one.node_id, one.version, one.use) == (2, 2, "markers")
    assert (other.node_id, asked(other)) == (3, [(7, {"t": [2]})])
    (sent,) = one.message.markers
    assert (sent.producer_id, sent.producer_epoch, sent.transaction_result) == (7, 3, True)
    assert (sent.coordinator_epoch, sent.transaction_version) == (12, 2)
    assert asked(one) == [(7, {"t": [1], "u": [0]})]
    one.answer(response({7: {AWAY: E.NONE, ALSO_AWAY: E.INVALID_PRODUCER_EPOCH}}))
    await w.cluster.settle()
    assert outcomes == []
    other.answer(response({7: {THIRD: E.TRANSACTION_COORDINATOR_FENCED}}))
    await w.cluster.settle()
    assert outcomes == [
        {
            HERE: E.NONE,
            AWAY: E.NONE,
            ALSO_AWAY: E.INVALID_PRODUCER_EPOCH,
            THIRD: E.TRANSACTION_COORDINATOR_FENCED,
        }
    ]


async def test_this_broker_may_be_the_last_to_answer(w: World) -> None:
    w.local.hold = True
    outcomes = w.write(HERE, AWAY)
    w.cluster.end_turn()
    w.cluster.peers.take().answer(response({7: {AWAY: E.NONE}}))
    await w.cluster.settle()
    assert outcomes == []
    w.local.held.pop()()
    assert outcomes == [{HERE: E.NONE, AWAY: E.NONE}]


def test_nobody_leads_and_nobody_ever_will(w: World) -> None:
    """Only what this broker's own image lacks was deleted."""
    assert w.write(NOBODY, GONE) == [
        {NOBODY: E.NOT_LEADER_OR_FOLLOWER, GONE: E.UNKNOWN_TOPIC_OR_PARTITION}
    ]
    assert not w.cluster.turns


async def test_a_leader_that_has_not_heard_of_the_topic_yet_is_asked_again(w: World) -> None:
    """It is no proof that the topic was deleted: its image is behind."""
    outcomes = w.write(AWAY)
    w.cluster.end_turn()
    w.cluster.peers.take().answer(response({7: {AWAY: E.UNKNOWN_TOPIC_OR_PARTITION}}))
    await w.cluster.settle()
    assert outcomes == [{AWAY: E.NOT_LEADER_OR_FOLLOWER}]


@pytest.mark.parametrize(
    ("sent", "code"), [(True, E.REQUEST_TIMED_OUT), (False, E.NOT_LEADER_OR_FOLLOWER)]
)
async def test_a_leader_that_is_away(w: World, sent: bool, code: E) -> None:
    outcomes = w.write(HERE, AWAY, ALSO_AWAY)
    w.cluster.end_turn()
    w.cluster.peers.take().fail(sent=sent)
    await w.cluster.settle()
    assert outcomes == [{HERE: E.NONE, AWAY: code, ALSO_AWAY: code}]


async def test_the_next_attempt_goes_to_the_new_leader(w: World) -> None:
    w.write(AWAY)
    w.cluster.end_turn()
    w.cluster.peers.take().fail(sent=True)
    w.cluster.lead(t=[1, 3])
    w.write(AWAY)
    w.cluster.end_turn()
    assert w.cluster.peers.take().node_id == 3


async def test_markers_of_a_turn_share_a_request_but_not_those_of_one_producer(w: World) -> None:
    """The second one of a producer must find the first in the log."""
    other = M._replace(producer_id=8, commit=False)
    outcomes = [w.write(AWAY), w.write(AWAY, marker=other), w.write(ALSO_AWAY)]
    w.cluster.end_turn()
    first, second = w.cluster.peers.sent
    assert asked(first) == [(7, {"t": [1]}), (8, {"t": [1]})]
    assert [m.transaction_result for m in first.message.markers] == [True, False]
    assert asked(second) == [(7, {"u": [0]})]
    first.answer(response({8: {AWAY: E.NOT_ENOUGH_REPLICAS}, 7: {AWAY: E.NONE}}))
    second.answer(response({7: {ALSO_AWAY: E.NONE}}))
    await w.cluster.settle()
    assert outcomes == [[{AWAY: E.NONE}], [{AWAY: E.NOT_ENOUGH_REPLICAS}], [{ALSO_AWAY: E.NONE}]]


async def test_a_request_has_only_so_many_partitions(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marker_router, "PARTITIONS_PER_REQUEST", 2)
    w.cluster.lead(t=[2] * 5)
    outcomes = w.write(*(TopicPartition("t", index) for index in range(5)))
    w.cluster.end_turn()
    assert [asked(request)[0][1]["t"] for request in w.cluster.peers.sent] == [[0, 1], [2, 3], [4]]
    for request in w.cluster.peers.sent:
        ((_, topics),) = asked(request)
        request.answer(response({7: {TopicPartition("t", i): E.NONE for i in topics["t"]}}))
    await w.cluster.settle()
    assert outcomes == [{TopicPartition("t", index): E.NONE for index in range(5)}]


async def test_an_answer_that_lacks_what_was_written(w: World) -> None:
    outcomes = [w.write(AWAY, ALSO_AWAY), w.write(AWAY, marker=M._replace(producer_id=8))]
    w.cluster.end_turn()
    w.cluster.peers.take().answer(response({7: {AWAY: E.NONE}}))
    await w.cluster.settle()
    assert outcomes == [
        [{AWAY: E.NONE, ALSO_AWAY: E.UNKNOWN_SERVER_ERROR}],
        [{AWAY: E.UNKNOWN_SERVER_ERROR}],
    ]


async def test_one_that_is_told_and_fails_harms_nobody(
    w: World, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_errors: PartitionErrors) -> None:
        raise RuntimeError("a bug")

    w.router.write(M, [AWAY], fail)
    outcomes = w.write(AWAY, marker=M._replace(producer_id=8))
    w.cluster.end_turn()
    w.cluster.peers.take().answer(response({7: {AWAY: E.NONE}, 8: {AWAY: E.NONE}}))
    await w.cluster.settle()
    assert outcomes == [{AWAY: E.NONE}]
    assert "caller of a transaction marker failed producer_id=7" in caplog.text
