"""The kinds of work that librdkafka does; see `tests.checker.worker`."""

import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.checker.clients.client_process import (
    CLASSIC,
    CLIENT_PATIENCE_S,
    CONSUMER,
    INPUTS,
    KEYS,
    LASTING,
    WRITABLE,
    Worker,
    has_given_up,
    name,
    read,
)
from tests.checker.clients.raw import (
    Partition,
)

NEVER_MS: Final = 3_600_000
POLL_S: Final = 0.2
"""librdkafka's answer to a message that timed out is a new epoch for all that is in flight: what of
it had been appended is appended again (its issue 4953). Nobody can serve during some faults."""


def send(worker: Worker) -> None:
    """Idempotent sends, answered out of the order of their operations."""
    producer = Producer(
        worker.client(
            **{"enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": NEVER_MS}
        )
    )

    def delivered(i: int, key: str, value: str) -> Callable[[KafkaError | None, Message], None]:
        def callback(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                known = offset if offset is not None and offset >= 0 else None
                worker.recorder.complete(i, "ok", "send", sends=[[key, value, known]])
            else:
                worker.recorder.complete(i, "info", "send", error=str(error))

        return callback

    while not worker.stopping:
        topic, index = worker.random.choice(WRITABLE)
        key, value = f"{topic}-{index}", worker.value()
        i = worker.recorder.invoke("send", sends=[[key, value, None]])
        try:
            producer.produce(
                topic, value.encode(), partition=index, on_delivery=delivered(i, key, value)
            )
        except (BufferError, KafkaException) as error:
            worker.recorder.complete(i, "fail", "send", error=str(error))
        producer.poll(0)
        worker.step()
        worker.pause()
    signal.alarm(0)
    producer.flush(60)


class Transaction:
    """One transaction of librdkafka's, and what its end means."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.offsets: dict[str, int] = {}
        producer.begin_transaction()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value, offset = message.value(), message.offset()
        if error is None and value is not None and offset is not None and offset >= 0:
            self.offsets[value.decode()] = offset

    def produce(self, partition: Partition, value: str) -> None:
        """Send a value."""
        topic, index = partition
        self.producer.produce(topic, value.encode(), partition=index, on_delivery=self._delivered)
        self.producer.poll(0)

    def end(self, *, commit: bool) -> tuple[str, bool]:
        """Commit or abort; returns the outcome and whether the producer can go on."""
        if not commit:
            return ("fail", True) if self._abort() else ("fail", False)
        deadline = time.monotonic() + CLIENT_PATIENCE_S
        while True:
            try:
                self.producer.commit_transaction(CLIENT_PATIENCE_S)
            except KafkaException as error:
                reason = error.args[0]
                if reason.txn_requires_abort():
                    return ("fail", True) if self._abort() else ("info", False)
                if reason.retriable() and time.monotonic() < deadline:
                    continue
                return "info", False
            else:
                return "ok", True

    def _abort(self) -> bool:
        deadline = time.monotonic() + CLIENT_PATIENCE_S
        while time.monotonic() < deadline:
            try:
                self.producer.abort_transaction(CLIENT_PATIENCE_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    return False
            else:
                return True
        return False


def txn(worker: Worker) -> None:
    """Transactions over several keys: some sends, a poll, the other sends."""
    draw, recorder = worker.random, worker.recorder
    producer = worker.transactional(f"txn-{worker.options.slot}")
    consumer = worker.consumer()
    keys, at_end = draw.sample(WRITABLE, 3), draw.random() < 0.7
    start = OFFSET_END if at_end else OFFSET_BEGINNING
    consumer.assign([TopicPartition(t, i, start) for t, i in keys])
    recorder.note("seek" if at_end else "assign", keys=[name(key) for key in keys])
    while not worker.stopping:
        worker.step()
        planned = [(draw.choice(WRITABLE), worker.value()) for _ in range(draw.randint(1, 4))]
        sends: list[list[Any]] = [[name(key), value, None] for key, value in planned]
        first = draw.randint(1, len(planned))
        polls: dict[str, list[tuple[int, str]]] = {}
        i = recorder.invoke("txn", sends=sends)
        try:
            transaction = Transaction(producer)
            for key, value in planned[:first]:
                transaction.produce(key, value)
            dwell_s, is_early = worker.dwell_s(), draw.random() < 0.5
            if draw.random() < 0.7:
                # Between its sends: whoever reads first can be part of no cycle.
                producer.flush(0.5)
                time.sleep(dwell_s if is_early else 0.0)
                polls = read(consumer.consume(100, timeout=0.05))
            for key, value in planned[first:]:
                transaction.produce(key, value)
        except (KafkaException, BufferError):
            outcome, alive = "fail", False
        else:
            time.sleep(0.0 if is_early else dwell_s)
            outcome, alive = transaction.end(commit=draw.random() < 0.8)
            for one in sends:
                one[2] = transaction.offsets.get(one[1])
        recorder.complete(i, outcome, "txn", sends=sends, polls=polls)
        if not alive:
            producer = worker.transactional(f"txn-{worker.options.slot}")
        worker.pause()


def read_assigned(worker: Worker) -> None:
    """Keys from their beginning; after some time others."""
    draw, recorder = worker.random, worker.recorder
    everything = [(topic, index) for topic, count in KEYS.items() for index in range(count)]
    while not worker.stopping:
        keys = draw.sample(everything, draw.randint(2, len(everything)))
        consumer = worker.consumer()
        consumer.assign([TopicPartition(t, i, OFFSET_BEGINNING) for t, i in keys])
        recorder.note("assign", keys=[name(key) for key in keys])
        until = time.monotonic() + draw.uniform(5, 25)
        while time.monotonic() < until and not worker.stopping:
            worker.step()
            polls = read(consumer.consume(200, timeout=0.2))
            if polls:
                recorder.note("poll", polls=polls)
        consumer.close()


SESSIONS: Final[dict[str, dict[str, Any]]] = {
    CLASSIC: {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
    # The broker says how long its sessions are: `tests.checker.brokers`.
    CONSUMER: {},
}


def _joined(worker: Worker, group: str, protocol: str, topics: list[str]) -> Consumer:
    def moved(_: Consumer, partitions: list[TopicPartition]) -> None:
        worker.recorder.note("seek", keys=[f"{one.topic}-{one.partition}" for one in partitions])

    consumer = worker.consumer(
        **{"group.id": group, "group.protocol": protocol, **SESSIONS[protocol]}
    )
    consumer.subscribe(topics, on_assign=moved, on_revoke=moved, on_lost=moved)
    return consumer


def _polled(consumer: Consumer, count: int) -> list[Message]:
    """A member's next records, one by one: `consume` may wait for ever in a rebalance."""
    found: list[Message] = []
    message = consumer.poll(POLL_S)
    while message is not None:
        found.append(message)
        message = consumer.poll(0) if len(found) < count else None
    return found


def subscribe(worker: Worker, group: str, protocols: Sequence[str]) -> None:
    """A member that commits after every poll; each time it joins it draws a protocol."""
    draw, recorder = worker.random, worker.recorder
    while not worker.stopping:
        consumer = _joined(worker, group, draw.choice(protocols), ["jepsen"])
        until = time.monotonic() + draw.uniform(10, 40)
        while time.monotonic() < until and not worker.stopping:
            worker.step()
            messages = _polled(consumer, 100)
            if has_given_up(messages):
                break
            polls = read(messages)
            if not polls:
                continue
            recorder.note("poll", polls=polls)
            offsets = {key: found[-1][0] + 1 for key, found in polls.items()}
            i = recorder.invoke("commit", group=group, offsets=offsets)
            try:
                consumer.commit(offsets=_positions(offsets), asynchronous=False)
            except KafkaException as error:
                # Also of a refusal nobody knows what it means: the library repeats a commit
                # whose answer was lost, and the first one may have been done.
                recorder.complete(i, "info", "commit", error=str(error))
                break
            recorder.complete(i, "ok", "commit")
        consumer.close()


def _positions(offsets: dict[str, int]) -> list[TopicPartition]:
    return [
        TopicPartition(key.rpartition("-")[0], int(key.rpartition("-")[2]), offset)
        for key, offset in offsets.items()
    ]


def job(worker: Worker, group: str, protocol: str, sink: str) -> None:
    """Each input makes one output, and its offset is committed with it."""
    recorder, draw = worker.recorder, worker.random
    outputs = [f"{sink}-{index}" for index in range(KEYS[sink])]
    recorder.note("pipeline", group=group, inputs=INPUTS, outputs=outputs)
    while not worker.stopping:
        producer = worker.transactional(f"{group}-{worker.options.slot}", **LASTING)
        consumer = _joined(worker, group, protocol, ["in"])
        alive = True
        while alive and not worker.stopping:
            worker.step()
            messages = _polled(consumer, 20)
            if has_given_up(messages):
                break
            polls = read(messages)
            if not polls:
                continue
            planned = [
                ((sink, draw.randrange(KEYS[sink])), f"{worker.value()}|{value}")
                for found in polls.values()
                for _, value in found
            ]
            step = JobStep(group, polls, planned)
            alive = _job_step(worker, producer, consumer, step, commit=draw.random() < 0.85)
        consumer.close()


class JobStep(NamedTuple):
    """What one transaction of a job is to do."""

    group: str
    polls: dict[str, list[tuple[int, str]]]
    planned: list[tuple[Partition, str]]


def _job_step(
    worker: Worker, producer: Producer, consumer: Consumer, step: JobStep, *, commit: bool
) -> bool:
    recorder = worker.recorder
    group, polls, planned = step
    sends: list[list[Any]] = [[name(key), value, None] for key, value in planned]
    offsets = {key: found[-1][0] + 1 for key, found in polls.items()}
    i = recorder.invoke("txn", polls=polls, sends=sends, group=group, offsets=offsets)
    try:
        transaction = Transaction(producer)
        for key, value in planned:
            transaction.produce(key, value)
    except (KafkaException, BufferError):
        recorder.complete(i, "fail", "txn")
        return False
    try:
        producer.send_offsets_to_transaction(
            _positions(offsets), consumer.consumer_group_metadata(), CLIENT_PATIENCE_S
        )
    except KafkaException as error:
        commit = False
        if error.args[0].fatal():
            recorder.complete(i, "fail", "txn", sends=sends, error=str(error))
            return False
    outcome, alive = transaction.end(commit=commit)
    for one in sends:
        one[2] = transaction.offsets.get(one[1])
    recorder.complete(i, outcome, "txn", sends=sends)
    if outcome != "ok":
        # A new member goes on from what is committed, whatever became of this.
        return False
    return alive
