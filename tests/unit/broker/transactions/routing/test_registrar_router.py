"""Verification at the transaction coordinator, wherever it is."""

from collections.abc import Mapping
from typing import Any

import pytest

from broker.transactions.interfaces import PartitionErrors, ProducerIdAndEpoch
from broker.transactions.routing import registrar_router
from broker.transactions.routing.registrar_router import RegistrarRouter
from protocol.error_codes import ErrorCode as E
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from storage.types.topic_partition import TopicPartition
from tests.fakes.broker.peers import Sent
from tests.fakes.broker.registrar import FakeRegistrar
from tests.unit.broker.transactions.routing.conftest import Cluster

A, B, C = (TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0))
P = ProducerIdAndEpoch(7, 3)
HERE, AWAY, THIRD, NOBODY = "0", "1", "2", "3"
"""Transactional ids; the number is the partition's."""


class World:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.local = FakeRegistrar()
        cluster.lead(txns=[1, 2, 3, -1])
        self.router = RegistrarRouter(
            self.local,
            topic="txns",
            partition_for=int,
            routes=cluster.routes,
            peers=cluster.peers,
            soon=cluster.turns.append,
        )

    def ask(
        self,
        transactional_id: str,
        *partitions: TopicPartition,
        producer: ProducerIdAndEpoch = P,
        add: bool = True,
    ) -> list[PartitionErrors]:
        answers: list[PartitionErrors] = []
        self.router.add_or_verify(
            transactional_id, producer, partitions, add=add, done=answers.append
        )
        return answers


@pytest.fixture
def w(cluster: Cluster) -> World:
    return World(cluster)


def asked(request: Sent) -> list[tuple[Any, ...]]:
    return [
        (
            t.transactional_id,
            t.producer_id,
            t.producer_epoch,
            t.verify_only,
            {topic.name: topic.partitions for topic in t.topics},
        )
        for t in request.message.transactions
    ]


def response(results: Mapping[str, PartitionErrors]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=name,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=partition.topic,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=partition.partition, partition_error_code=code
                            )
                        ],
                    )
                    for partition, code in errors.items()
                ],
            )
            for name, errors in results.items()
        ]
    )


@pytest.mark.parametrize("add", [True, False])
def test_the_coordinator_of_this_broker_is_asked_at_once(w: World, add: bool) -> None:
    assert w.ask(HERE, A, add=add) == [{A: E.NONE}]
    (question,) = w.local.asked
    assert (question.transactional_id, question.producer, question.add) == (HERE, P, add)
    assert not w.cluster.turns


async def test_without_a_coordinator(w: World) -> None:
    assert w.ask(NOBODY, A, B) == [dict.fromkeys((A, B), E.COORDINATOR_NOT_AVAILABLE)]
    w.cluster.lead(t=[1])
    assert w.ask(AWAY, A) == [{A: E.COORDINATOR_NOT_AVAILABLE}], "its topic is not there yet"


async def test_questions_of_a_turn_go_together_and_are_answered_each(w: World) -> None:
    first, second = w.ask(AWAY, A, C), w.ask(THIRD, B, add=False)
    assert not w.cluster.peers.sent
    w.cluster.end_turn()
    one, other = w.cluster.peers.sent
    assert (one.node_id, one.version, asked(one)) == (
        2,
        5,
        [(AWAY, 7, 3, False, {"t": [0], "u": [0]})],
    )
    assert (other.node_id, asked(other)) == (3, [(THIRD, 7, 3, True, {"t": [1]})])
    one.answer(response({AWAY: {A: E.NONE, C: E.UNKNOWN_TOPIC_OR_PARTITION}}))
    other.answer(response({THIRD: {B: E.TRANSACTION_ABORTABLE}}))
    await w.cluster.settle()
    assert first == [{A: E.NONE, C: E.UNKNOWN_TOPIC_OR_PARTITION}]
    assert second == [{B: E.TRANSACTION_ABORTABLE}]


async def test_what_is_asked_twice_of_a_transaction_is_one_question(w: World) -> None:
    """The coordinator would take the last one only."""
    first, second = w.ask(AWAY, A), w.ask(AWAY, A, B)
    w.cluster.end_turn()
    request = w.cluster.peers.take()
    assert asked(request) == [(AWAY, 7, 3, False, {"t": [0, 1]})]
    request.answer(response({AWAY: {A: E.NONE, B: E.CONCURRENT_TRANSACTIONS}}))
    await w.cluster.settle()
    assert first == [{A: E.NONE}]
    assert second == [{A: E.NONE, B: E.CONCURRENT_TRANSACTIONS}]


async def test_different_questions_of_one_transaction_go_one_after_the_other(w: World) -> None:
    answers = [
        w.ask(AWAY, A),
        w.ask(AWAY, A, producer=P._replace(epoch=4)),
        w.ask(AWAY, A, producer=P._replace(epoch=4), add=False),
    ]
    w.cluster.end_turn()
    assert [asked(request)[0][2:4] for request in w.cluster.peers.sent] == [
        (3, False),
        (4, False),
        (4, True),
    ]
    codes = (E.PRODUCER_FENCED, E.NONE, E.NONE)
    for request, code in zip(w.cluster.peers.sent, codes, strict=True):
        request.answer(response({AWAY: {A: code}}))
    await w.cluster.settle()
    assert answers == [[{A: code}] for code in codes]


async def test_a_request_has_only_so_many_transactions(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registrar_router, "TRANSACTIONS_PER_REQUEST", 2)
    for name in ("1", " 1", "1 "):
        w.ask(name, A)
    w.cluster.end_turn()
    assert [len(asked(request)) for request in w.cluster.peers.sent] == [2, 1]


@pytest.mark.parametrize("sent", [True, False])
async def test_a_coordinator_that_is_away(w: World, sent: bool) -> None:
    answers = w.ask(AWAY, A, B)
    w.cluster.end_turn()
    w.cluster.peers.take().fail(sent=sent)
    await w.cluster.settle()
    assert answers == [dict.fromkeys((A, B), E.NETWORK_EXCEPTION)]


async def test_a_coordinator_that_refuses_brokers(w: World) -> None:
    answers = w.ask(AWAY, A)
    w.cluster.end_turn()
    w.cluster.peers.take().answer(
        AddPartitionsToTxnResponse(error_code=E.CLUSTER_AUTHORIZATION_FAILED)
    )
    await w.cluster.settle()
    assert answers == [{A: E.CLUSTER_AUTHORIZATION_FAILED}]


async def test_an_answer_that_lacks_what_was_asked(w: World) -> None:
    answers = [w.ask(AWAY, A, B), w.ask(" 1", A)]
    w.cluster.end_turn()
    w.cluster.peers.take().answer(response({AWAY: {A: E.NONE}}))
    await w.cluster.settle()
    assert answers == [[{A: E.NONE, B: E.UNKNOWN_SERVER_ERROR}], [{A: E.UNKNOWN_SERVER_ERROR}]]


async def test_one_that_is_told_and_fails_harms_nobody(
    w: World, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_errors: PartitionErrors) -> None:
        raise RuntimeError("a bug")

    w.router.add_or_verify(AWAY, P, [A], add=True, done=fail)
    answers = w.ask(" 1", A)
    w.cluster.end_turn()
    w.cluster.peers.take().answer(response({AWAY: {A: E.NONE}, " 1": {A: E.NONE}}))
    await w.cluster.settle()
    assert answers == [{A: E.NONE}]
    assert f"caller of a verification failed transactional_id={AWAY}" in caplog.text
