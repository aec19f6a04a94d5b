"""Frames of transactional producers say what our own codec reads in them, and answers likewise."""

import pytest

from bench import flexible, transaction_wire
from bench.transaction_wire import TV1, TV2, Producer, Versions
from protocol.hot import produce as hot_produce
from protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from protocol.records.batch import read_header
from tests.harness.broker_headers import decode_request_header
from tests.unit.bench.test_group_wire import answer, read

PRODUCER = Producer("job", 7, 3)


def test_init_producer_id() -> None:
    request = read(init_producer_id, transaction_wire.init_producer_id_frame("job", 900, 5), 5)
    assert (request.transactional_id, request.transaction_timeout_ms) == ("job", 900)
    assert (request.producer_id, request.producer_epoch) == (-1, -1)
    response = init_producer_id.InitProducerIdResponse(
        error_code=1, producer_id=7, producer_epoch=3
    )
    found = transaction_wire.read_producer_id(answer(init_producer_id, response, 4))
    assert found == (1, 7, 3)


@pytest.mark.parametrize("versions", [TV1, TV2])
@pytest.mark.parametrize("commit", [True, False])
def test_end_txn(versions: Versions, *, commit: bool) -> None:
    frame = transaction_wire.end_txn_frame(PRODUCER, versions, 5, commit=commit)
    request = read(end_txn, frame, 5)
    assert (request.transactional_id, request.producer_id) == ("job", 7)
    assert (request.producer_epoch, request.committed) == (3, commit)


def test_end_txn_answers() -> None:
    """With transaction version 2 it brings the next epoch."""
    response = end_txn.EndTxnResponse(error_code=51, producer_id=7, producer_epoch=4)
    assert transaction_wire.read_producer_id(answer(end_txn, response, 5)) == (51, 7, 4)
    assert transaction_wire.error_after_throttle(answer(end_txn, response, 4)) == 51


@pytest.mark.parametrize("versions", [TV1, TV2])
def test_produce(versions: Versions) -> None:
    batches = {
        index: transaction_wire.transactional_batch([b"v" * 200], PRODUCER, 10, 1)
        for index in (0, 4)
    }
    frame = transaction_wire.produce_frame(PRODUCER, "topic", batches, versions, 5)
    header, position = decode_request_header(frame[4:])
    assert header.api_version == versions.produce
    request = hot_produce.decode_request(memoryview(frame)[4:], position, header.api_version)
    assert (request.transactional_id, request.acks) == ("job", -1)
    (topic,) = request.topics
    assert {index: bytes(data or b"") for index, data in topic.partitions} == batches
    batch = read_header(memoryview(batches[0]), 0)
    assert batch.is_transactional
    assert not transaction_wire.is_control(memoryview(batches[0]))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 10)


def test_produce_answer() -> None:
    results = [hot_produce.ProducePartitionResponse(*one) for one in ((0, 0, 9), (4, 51, 9))]
    body = hot_produce.encode_response([("topic", results)], 12)
    assert transaction_wire.produce_errors(bytes(4) + b"\x00" + bytes(body)) == {0: 0, 4: 51}


def test_registration_of_the_old_protocol() -> None:
    frame = transaction_wire.add_partitions_frame(PRODUCER, "topic", [0, 4], 5)
    request = read(add_partitions_to_txn, frame, 5)
    assert request.v3_and_below_transactional_id == "job"
    (topic,) = request.v3_and_below_topics
    assert (topic.name, topic.partitions) == ("topic", [0, 4])
    request = read(add_offsets_to_txn, transaction_wire.add_offsets_frame(PRODUCER, "g", 5), 5)
    assert (request.transactional_id, request.group_id) == ("job", "g")


def test_offsets_of_a_transaction() -> None:
    frame = transaction_wire.txn_offset_commit_frame(PRODUCER, "g", "topic", {2: 50}, TV2, 5)
    request = read(txn_offset_commit, frame, 5)
    assert (request.transactional_id, request.group_id, request.producer_id) == ("job", "g", 7)
    assert (request.generation_id, request.member_id, request.group_instance_id) == (-1, "", None)
    (topic,) = request.topics
    assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [(2, 50)]
    cls = txn_offset_commit
    partitions = [cls.TxnOffsetCommitResponsePartition(partition_index=2, error_code=51)]
    response = cls.TxnOffsetCommitResponse(
        topics=[cls.TxnOffsetCommitResponseTopic(name="topic", partitions=partitions)]
    )
    assert flexible.partition_codes(answer(cls, response, 5)) == {51}
