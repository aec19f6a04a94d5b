"""A producer's transactions in order, with the next epoch, and again after a retriable error."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.generator import GeneratorError
from bench.pipeline import OnAnswer
from bench.transaction_wire import TV1, TV2, Versions
from bench.transactions import TransactionalProducer, TransactionLoad
from protocol.hot import produce as hot_produce
from protocol.messages import add_partitions_to_txn, end_txn, find_coordinator, init_producer_id
from protocol.records.batch import read_header
from tests.harness.broker_headers import decode_request_header

PRODUCE, FIND, INIT, ADD, END = 0, 10, 22, 24, 26


class Broker:
    """Stands for loop and connection: keeps requests until they are answered."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        self.last = b""
        self.planned: list[Callable[[], None]] = []
        self._waiting: OnAnswer | None = None

    def connect(self, _host: str, _port: int, on_connected: Callable[[], None]) -> "Broker":
        self.planned.append(on_connected)
        return self

    def call_at(self, _moment: float, call: Callable[[], None]) -> None:
        self.planned.append(call)

    def send(self, frame: bytes, on_answer: OnAnswer) -> None:
        self.keys.append(decode_request_header(frame[4:])[0].api_key)
        self.last, self._waiting = frame[4:], on_answer

    def answer(self, body: bytes, *, flexible: bool = True) -> None:
        assert self._waiting is not None
        self._waiting(bytes(4) + (b"\x00" if flexible else b"") + body)

    def answer_message(self, module: Any, message: object) -> None:
        version = decode_request_header(self.last)[0].api_version
        self.answer(bytes(module.encode_response(message, version)))

    def answer_produce(self, *codes: int) -> None:
        results = [hot_produce.ProducePartitionResponse(*one, 0) for one in enumerate(codes)]
        self.answer(bytes(hot_produce.encode_response([("t", results)], 12)))

    def batch(self) -> Any:
        header, position = decode_request_header(self.last)
        request = hot_produce.decode_request(memoryview(self.last), position, header.api_version)
        data = request.topics[0].partitions[0][1]
        assert data is not None
        return read_header(data, 0)


def ready(broker: Broker, versions: Versions) -> TransactionalProducer:
    loop: Any = broker
    load = TransactionLoad(0, 0, "t", 1, (0, 1), 60.0, versions=versions)
    producer = TransactionalProducer(loop, load, 0)
    broker.planned.pop()()
    body = find_coordinator.encode_response(find_coordinator.FindCoordinatorResponse(), 2)
    broker.answer(bytes(body), flexible=False)
    response = init_producer_id.InitProducerIdResponse(producer_id=7, producer_epoch=0)
    broker.answer_message(init_producer_id, response)
    assert producer.is_ready
    producer.run(0.0, float("inf"))
    return producer


def test_version_2_takes_the_epoch_that_comes_with_a_commit() -> None:
    broker = Broker()
    producer = ready(broker, TV2)
    assert (broker.batch().producer_epoch, broker.batch().base_sequence) == (0, 0)
    broker.answer_produce(0, 0)
    broker.answer_message(end_txn, end_txn.EndTxnResponse(producer_id=7, producer_epoch=1))
    assert broker.keys == [FIND, INIT, PRODUCE, END, PRODUCE]
    assert (broker.batch().producer_epoch, broker.batch().base_sequence) == (1, 0)
    assert producer.committed == 1


def test_version_1_registers_and_goes_on_with_the_sequence() -> None:
    broker = Broker()
    producer = ready(broker, TV1)
    for _ in range(2):
        broker.answer_message(
            add_partitions_to_txn, add_partitions_to_txn.AddPartitionsToTxnResponse()
        )
        last = broker.batch()
        broker.answer_produce(0, 0)
        broker.answer_message(end_txn, end_txn.EndTxnResponse())
    assert broker.keys == [FIND, INIT, *(ADD, PRODUCE, END) * 2, ADD]
    assert (last.producer_epoch, last.base_sequence) == (0, 1)
    assert producer.committed == 2


def test_a_transaction_that_is_not_over_is_waited_for() -> None:
    broker = Broker()
    producer = ready(broker, TV2)
    broker.answer_produce(51, 0)
    assert broker.keys == [FIND, INIT, PRODUCE]
    broker.planned.pop()()
    assert broker.keys == [FIND, INIT, PRODUCE, PRODUCE]
    assert producer.retries == 1


def test_another_error_ends_the_measurement() -> None:
    broker = Broker()
    ready(broker, TV2)
    with pytest.raises(GeneratorError, match=r"Produce: errors \{47\}"):
        broker.answer_produce(0, 47)


def test_end_of_the_time() -> None:
    broker = Broker()
    producer = ready(broker, TV2)
    broker.answer_produce(0, 0)
    producer._end_s = 0.0
    broker.answer_message(end_txn, end_txn.EndTxnResponse(producer_id=7, producer_epoch=1))
    assert producer.is_idle
    assert broker.keys[-1] == END
