"""Released Kafka reads our `__transaction_state`.

No broker is needed: the log is ours, the tool is Kafka's.
"""

from pathlib import Path
from random import Random
from typing import Any

from protocol.internal.transaction_log import (
    TransactionLogValue,
    encode_transaction_log_key,
    encode_transaction_log_value,
)
from tests.interop.dumps.coordinator_log import KeyValue, dumped_records, write_topic
from tests.interop.tool_server import ToolServer

RECORDS = 200


def random_value(random: Random) -> TransactionLogValue:
    """Of every state, with and without each optional part."""
    state = random.randrange(6)
    topics = None
    if state:
        names = random.sample(["t", "some.topic_name-1", "__consumer_offsets", "n" * 249], 2)
        topics = {
            name: random.sample(range(1 << 20), random.choice([1, 2, 8, 9, 200])) for name in names
        }
    return TransactionLogValue(
        random.randrange(1 << 62),
        random.randrange(1 << 15),
        random.randrange(1 << 31),
        state,
        topics,
        random.randrange(1 << 42),
        random.choice([-1, random.randrange(1 << 42)]),
        random.choice([-1, random.randrange(1 << 62)]),
        random.choice([-1, random.randrange(1 << 62)]),
        random.randrange(3),
    )


def as_dumped(value: TransactionLogValue, version: int) -> dict[str, Any]:
    """As Kafka's JSON has it: fields that have their default are left out where tagged."""
    data: dict[str, Any] = {
        "producerId": value.producer_id,
        "producerEpoch": value.producer_epoch,
        "transactionTimeoutMs": value.transaction_timeout_ms,
        "transactionStatus": value.state,
        "transactionPartitions": None
        if value.partitions is None
        else [{"topic": t, "partitionIds": list(p)} for t, p in value.partitions.items()],
        "transactionLastUpdateTimestampMs": value.last_update_timestamp_ms,
        "transactionStartTimestampMs": value.start_timestamp_ms,
    }
    if version:
        if value.previous_producer_id != -1:
            data["previousProducerId"] = value.previous_producer_id
        if value.next_producer_id != -1:
            data["nextProducerId"] = value.next_producer_id
        if value.client_transaction_version:
            data["clientTransactionVersion"] = value.client_transaction_version
    return {"version": str(version), "data": data}


def test_kafka_dump_log_decodes_our_topic(kafka_tools: ToolServer, tmp_path: Path) -> None:
    """kafka-dump-log --transaction-log-decoder, record by record, in both versions."""
    random = Random(1)
    batches: list[list[KeyValue]] = []
    expected: list[tuple[Any, Any]] = []
    for number in range(RECORDS):
        name = f"transactional-id-{number}-ä"
        value, version = random_value(random), random.randrange(2)
        if number % 20 == 19:
            octets, dumped = None, None
        else:
            octets = encode_transaction_log_value(value, version)
            dumped = as_dumped(value, version)
        batches.append([(encode_transaction_log_key(name), octets)])
        expected.append(({"type": "0", "data": {"transactionalId": name}}, dumped))
    path = write_topic(tmp_path, "__transaction_state", batches)
    assert dumped_records(kafka_tools, path, "--transaction-log-decoder") == expected
