r"""`java/ExactlyOnceJob.java` over again with librdkafka, as a program.

python -m tests.interop.libraries.exactly_once_job \
    ADDRESS PROTOCOL GROUP TRANSACTIONAL_ID SOURCE SINK N
"""

import faulthandler
import random
import sys
import uuid
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

# After a broker's restart a call may wait for a connection that librdkafka makes no more; then this
# process ends, and is started again.
CALL_S = 5.0

QUICK = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "log_level": 0,
}


def poll(consumer: Consumer, count: int) -> list[Message]:
    """What is there, at most so many; waits for the first.

    One by one: a batch `consume` can wait for ever when there is a rebalance at the same time.
    """
    found: list[Message] = []
    while len(found) < count:
        message = consumer.poll(0.0 if found else 0.1)
        if message is None:
            break
        if message.error() is None:
            found.append(message)
    return found


def rewind(consumer: Consumer) -> None:
    """Back to what is committed."""
    assigned = consumer.assignment()
    if not assigned:
        return
    for at in consumer.committed(assigned, timeout=CALL_S):
        at.offset = max(at.offset, 0)
        consumer.seek(at)


def process(producer: Producer, sink: str, partitions: int, values: list[bytes]) -> None:
    """Two outputs for each input; the key is the transaction's, and says how many it has."""
    tag = f"{uuid.uuid4()}/{2 * len(values)}"
    for value in values:
        number = int(value)
        for half in range(2):
            at = (number + half) % partitions
            producer.produce(sink, f"{number}/{half}", key=tag, partition=at)


def commit(producer: Producer) -> None:
    """Commit, again as long as the library says that this is right."""
    for attempt in range(3):
        try:
            producer.commit_transaction(CALL_S)
        except KafkaException as error:
            if attempt == 2 or not error.args[0].retriable():
                raise
        else:
            return


def run(
    address: str, protocol: str, group: str, identity: str, source: str, sink: str, count: str
) -> None:
    """The job, until something fails that only new clients can mend."""
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": group,
        "group.protocol": protocol,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **QUICK,
    }
    if protocol == "classic":
        settings |= {
            "session.timeout.ms": 3000,
            "heartbeat.interval.ms": 300,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    consumer = Consumer(settings)
    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": identity,
            "transaction.timeout.ms": 8000,
            "linger.ms": 2,
            **QUICK,
        }
    )
    producer.init_transactions(60)
    consumer.subscribe([source])
    while True:
        # Some of its calls know no timeout: the traceback goes to the log, the process ends.
        faulthandler.dump_traceback_later(2 * CALL_S, exit=True)
        messages = poll(consumer, 100)
        if not messages:
            continue
        try:
            producer.begin_transaction()
            process(producer, sink, int(count), [m.value() or b"" for m in messages])
            positions = {(m.topic(), m.partition()): (m.offset() or 0) + 1 for m in messages}
            producer.send_offsets_to_transaction(
                [TopicPartition(str(t), p or 0, o) for (t, p), o in positions.items()],
                consumer.consumer_group_metadata(),
                CALL_S,
            )
            if random.randrange(10) == 0:
                producer.abort_transaction(CALL_S)
                rewind(consumer)
            else:
                commit(producer)
        except KafkaException as error:
            sys.stderr.write(f"aborts: {error}\n")
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(CALL_S)
            rewind(consumer)


if __name__ == "__main__":
    try:
        run(*sys.argv[1:])
    except KafkaException as error:
        sys.stderr.write(f"ends: {error}\n")
        sys.exit(3)
