"""One client process of the workload: `python -m tests.checker.worker JSON`.

It works until SIGTERM, then finishes what it is at; it may be killed at any moment. The kinds:

    send       idempotent producer, many sends in flight                      librdkafka
    txn        transactions that read assigned keys and write                 librdkafka
    read       reader with assigned keys, from their beginning again and again librdkafka
    subscribe  group member that commits what it has read                     librdkafka
    job        consume-transform-produce in a group                           librdkafka
    rawtxn     transactions of version 2                                      ours
    rawjob     consume-transform-produce of version 2, offsets included       ours
    ask        asks for the offsets of all groups                             ours

An operation that did not end as planned is `fail` only where the broker or the library says that
it is so; a client that does not know goes on as a new one.
"""

import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.checker.history import Recorder
from tests.checker.raw import (
    CommittedReader,
    GaveUpError,
    Partition,
    RefusedError,
    RetryPolicy,
    TransactionalProducer,
)

KEYS: Final = {"jepsen": 4, "in": 2, "out": 2, "rawout": 2}
"""Topics and their partitions; `in` has the inputs of both jobs."""

WRITABLE: Final = [(t, i) for t in ("jepsen", "in") for i in range(KEYS[t])]
SUBSCRIBE_GROUP: Final = "subscribers"
JOB_GROUP: Final = "job"
RAW_JOB_GROUP: Final = "rawjob"
TRANSACTION_TIMEOUT_MS: Final = 10_000
CLIENT_PATIENCE_S: Final = 15.0
HANG_S: Final = 40


@dataclass(slots=True)
class WorkerOptions:
    """What a process is told."""

    kind: str
    slot: int
    proc: str
    history: str
    address: str
    seed: int
    rate_per_s: float = 40.0
    topics: dict[str, int] = field(default_factory=lambda: dict(KEYS))

    def as_argument(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


def name(partition: Partition) -> str:
    """The key's name in histories."""
    return f"{partition[0]}-{partition[1]}"


class Worker:
    """What all kinds share."""

    def __init__(self, options: WorkerOptions) -> None:
        self.options = options
        self.random = random.Random(options.seed)
        self.recorder = Recorder(Path(options.history), options.proc)
        self.stopping = False
        self._values = itertools.count()
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def step(self) -> None:
        """Say that the client is alive; one that says nothing for `HANG_S` is ended by SIGALRM.

        librdkafka 2.16 may wait for ever in send_offsets_to_transaction when the connection was
        lost while it looked for the group's coordinator: it never asks again.
        """
        signal.alarm(HANG_S)

    def value(self) -> str:
        """One that nobody else sends."""
        return f"{self.options.proc}:{next(self._values)}"

    def pause(self) -> None:
        """Keep to the rate."""
        time.sleep(self.random.expovariate(self.options.rate_per_s))

    def client(self, **more: Any) -> dict[str, Any]:
        """Settings of every librdkafka client."""
        return {
            "bootstrap.servers": self.options.address,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 500,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 300,
            "error_cb": _ignore,
            **self._logging(),
            **more,
        }

    @staticmethod
    def _logging() -> dict[str, Any]:
        """Silence, or what `VARVE_CHECKER_DEBUG=eos,cgrp` asks librdkafka to tell."""
        contexts = os.environ.get("VARVE_CHECKER_DEBUG")
        return {"debug": contexts} if contexts else {"log_level": 0}

    def consumer(self, **more: Any) -> Consumer:
        """A read_committed one without automatic commits."""
        return Consumer(
            self.client(
                **{
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "fetch.wait.max.ms": 100,
                    "group.id": f"none-{self.options.proc}",
                    **more,
                }
            )
        )

    def transactional(self, transactional_id: str) -> Producer:
        """A producer that has its producer id; None is never returned, it is tried for ever."""
        while True:
            producer = Producer(
                self.client(
                    **{
                        "transactional.id": transactional_id,
                        "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                        "linger.ms": 1,
                    }
                )
            )
            self.step()
            try:
                producer.init_transactions(CLIENT_PATIENCE_S)
            except KafkaException:
                if self.stopping:
                    raise SystemExit(0) from None
                continue
            return producer


def _ignore(_: object) -> None:
    """Refused connections are what the workload is about."""


def read(messages: list[Message]) -> dict[str, list[tuple[int, str]]]:
    """Messages as polls; what is an error is none."""
    polls: dict[str, list[tuple[int, str]]] = {}
    for message in messages:
        if message.error() is None:
            key = f"{message.topic()}-{message.partition()}"
            offset, value = message.offset(), message.value()
            assert offset is not None
            assert value is not None
            polls.setdefault(key, []).append((offset, value.decode()))
    return polls


# -- librdkafka ----------------------------------------------------------------------------------


def send(worker: Worker) -> None:
    """Idempotent sends, answered out of the order of their operations."""
    producer = Producer(
        worker.client(**{"enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 120_000})
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
        worker.pause()
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
    """Transactions over several keys, some with a poll inside."""
    draw, recorder = worker.random, worker.recorder
    producer = worker.transactional(f"txn-{worker.options.slot}")
    consumer = worker.consumer()
    keys = draw.sample(WRITABLE, 3)
    consumer.assign([TopicPartition(t, i, OFFSET_BEGINNING) for t, i in keys])
    recorder.note("assign", keys=[name(key) for key in keys])
    while not worker.stopping:
        worker.step()
        polls = read(consumer.consume(20, timeout=0.05)) if draw.random() < 0.7 else {}
        planned = [(draw.choice(WRITABLE), worker.value()) for _ in range(draw.randint(1, 4))]
        sends: list[list[Any]] = [[name(key), value, None] for key, value in planned]
        i = recorder.invoke("txn", polls=polls, sends=sends)
        try:
            transaction = Transaction(producer)
            for key, value in planned:
                transaction.produce(key, value)
        except (KafkaException, BufferError):
            outcome, alive = "fail", False
        else:
            outcome, alive = transaction.end(commit=draw.random() < 0.8)
            for one in sends:
                one[2] = transaction.offsets.get(one[1])
        recorder.complete(i, outcome, "txn", sends=sends)
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
            polls = read(consumer.consume(200, timeout=0.2))
            if polls:
                recorder.note("poll", polls=polls)
        consumer.close()


def _joined(worker: Worker, group: str, topics: list[str]) -> Consumer:
    def moved(_: Consumer, partitions: list[TopicPartition]) -> None:
        worker.recorder.note("seek", keys=[f"{one.topic}-{one.partition}" for one in partitions])

    consumer = worker.consumer(
        **{"group.id": group, "session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
    )
    consumer.subscribe(topics, on_assign=moved, on_revoke=moved, on_lost=moved)
    return consumer


def subscribe(worker: Worker) -> None:
    """A member that commits after every poll."""
    draw, recorder = worker.random, worker.recorder
    while not worker.stopping:
        consumer = _joined(worker, SUBSCRIBE_GROUP, ["jepsen"])
        until = time.monotonic() + draw.uniform(10, 40)
        while time.monotonic() < until and not worker.stopping:
            messages = consumer.consume(100, timeout=0.2)
            polls = read(messages)
            if not polls:
                continue
            recorder.note("poll", polls=polls)
            offsets = {key: found[-1][0] + 1 for key, found in polls.items()}
            i = recorder.invoke("commit", group=SUBSCRIBE_GROUP, offsets=offsets)
            try:
                consumer.commit(offsets=_positions(offsets), asynchronous=False)
            except KafkaException as error:
                refused = error.args[0].code() in (
                    KafkaError.ILLEGAL_GENERATION,
                    KafkaError.UNKNOWN_MEMBER_ID,
                    KafkaError.REBALANCE_IN_PROGRESS,
                )
                recorder.complete(i, "fail" if refused else "info", "commit", error=str(error))
                break
            recorder.complete(i, "ok", "commit")
        consumer.close()


def _positions(offsets: dict[str, int]) -> list[TopicPartition]:
    return [
        TopicPartition(key.rpartition("-")[0], int(key.rpartition("-")[2]), offset)
        for key, offset in offsets.items()
    ]


def job(worker: Worker) -> None:
    """Each input makes one output, and its offset is committed with it."""
    recorder, draw = worker.recorder, worker.random
    recorder.note("pipeline", group=JOB_GROUP, inputs=["in-0", "in-1"], outputs=["out-0", "out-1"])
    while not worker.stopping:
        producer = worker.transactional(f"job-{worker.options.slot}")
        consumer = _joined(worker, JOB_GROUP, ["in"])
        alive = True
        while alive and not worker.stopping:
            worker.step()
            polls = read(consumer.consume(20, timeout=0.2))
            if not polls:
                continue
            alive = _job_step(worker, producer, consumer, polls, commit=draw.random() < 0.85)
        consumer.close()


def _job_step(
    worker: Worker,
    producer: Producer,
    consumer: Consumer,
    polls: dict[str, list[tuple[int, str]]],
    *,
    commit: bool,
) -> bool:
    recorder = worker.recorder
    inputs = [value for found in polls.values() for _, value in found]
    planned = [
        (("out", worker.random.randrange(KEYS["out"])), f"{worker.value()}|{value}")
        for value in inputs
    ]
    sends: list[list[Any]] = [[name(key), value, None] for key, value in planned]
    offsets = {key: found[-1][0] + 1 for key, found in polls.items()}
    i = recorder.invoke("txn", polls=polls, sends=sends, group=JOB_GROUP, offsets=offsets)
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


# -- ours ----------------------------------------------------------------------------------------


def _address(worker: Worker) -> tuple[str, int]:
    host, _, port = worker.options.address.rpartition(":")
    return host, int(port)


async def _raw_transaction(
    worker: Worker,
    producer: TransactionalProducer,
    planned: list[tuple[Partition, str]],
    committing: tuple[str, dict[Partition, int]] | None,
    **value: Any,
) -> tuple[str, bool]:
    """One transaction of version 2: its outcome, and whether the producer can go on."""
    draw = worker.random
    sends: list[list[Any]] = [[name(key), sent, None] for key, sent in planned]
    i = worker.recorder.invoke("txn", sends=sends, **value)
    commit, asked, outcome = draw.random() < 0.8, False, "fail"
    try:
        by_key: dict[Partition, list[int]] = {}
        for place, (key, _) in enumerate(planned):
            by_key.setdefault(key, []).append(place)
        offsets = await producer.produce(
            {key: [planned[place][1] for place in places] for key, places in by_key.items()}
        )
        for key, places in by_key.items():
            for delta, place in enumerate(places):
                sends[place][2] = offsets[key] + delta
        if committing is not None:
            await producer.commit_offsets(*committing)
        asked = commit
        await producer.end(commit=commit)
        outcome, alive = ("ok" if commit else "fail"), True
    except (RefusedError, GaveUpError) as error:
        outcome, alive = ("info" if asked else "fail"), False
        value = {"error": str(error)}
    worker.recorder.complete(i, outcome, "txn", sends=sends, **value)
    return outcome, alive


async def _raw_producer(worker: Worker, transactional_id: str) -> TransactionalProducer:
    while True:
        producer = TransactionalProducer(
            _address(worker),
            transactional_id,
            version=2,
            policy=RetryPolicy(8.0, CLIENT_PATIENCE_S, 0.05),
            timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        try:
            await producer.init()
        except (RefusedError, GaveUpError):
            producer.close()
            if worker.stopping:
                raise SystemExit(0) from None
            await asyncio.sleep(0.2)
            continue
        return producer


async def rawtxn(worker: Worker) -> None:
    """As `txn`, with the new protocol, and without polls."""
    draw = worker.random
    producer = await _raw_producer(worker, f"rawtxn-{worker.options.slot}")
    while not worker.stopping:
        planned = [(draw.choice(WRITABLE), worker.value()) for _ in range(draw.randint(1, 4))]
        _, alive = await _raw_transaction(worker, producer, planned, None)
        if not alive:
            producer.close()
            producer = await _raw_producer(worker, f"rawtxn-{worker.options.slot}")
        await asyncio.sleep(draw.expovariate(worker.options.rate_per_s))
    producer.close()


async def rawjob(worker: Worker) -> None:
    """As `job`, with the new protocol; its one member owns the inputs by its transactional id."""
    draw, recorder = worker.random, worker.recorder
    inputs: list[Partition] = [("in", 0), ("in", 1)]
    recorder.note(
        "pipeline",
        group=RAW_JOB_GROUP,
        inputs=[name(key) for key in inputs],
        outputs=["rawout-0", "rawout-1"],
    )
    reader = CommittedReader(_address(worker), RetryPolicy(8.0, 600.0, 0.05))
    while not worker.stopping:
        # The producer first: it fences and ends what another one has pending.
        producer = await _raw_producer(worker, f"rawjob-{worker.options.slot}")
        committed = await reader.committed(RAW_JOB_GROUP, "in", KEYS["in"])
        positions = {key: max(committed[key[1]], 0) for key in inputs}
        recorder.note("seek", keys=[name(key) for key in inputs])
        alive = True
        while alive and not worker.stopping:
            polls = {}
            after = dict(positions)
            for key in inputs:
                fetched = await reader.fetch(key, positions[key], max_wait_ms=50)
                found = [one for one in fetched.records if one[0] >= positions[key]][:20]
                if found:
                    polls[name(key)] = found
                    after[key] = found[-1][0] + 1
                elif fetched.next_offset > positions[key]:
                    positions[key] = after[key] = fetched.next_offset
            if not polls:
                continue
            planned = [
                (("rawout", draw.randrange(KEYS["rawout"])), f"{worker.value()}|{value}")
                for found in polls.values()
                for _, value in found
            ]
            offsets = {key: after[key] for key in inputs if name(key) in polls}
            outcome, alive = await _raw_transaction(
                worker,
                producer,
                planned,
                (RAW_JOB_GROUP, offsets),
                polls=polls,
                group=RAW_JOB_GROUP,
                offsets={name(key): offset for key, offset in offsets.items()},
            )
            if outcome == "ok":
                positions = after
            elif alive:
                recorder.note("seek", keys=[name(key) for key in inputs])
        producer.close()
    reader.close()


async def ask(worker: Worker) -> None:
    """What the groups have committed, as the broker says."""
    reader = CommittedReader(_address(worker), RetryPolicy(8.0, 30.0, 0.05))
    groups = {SUBSCRIBE_GROUP: "jepsen", JOB_GROUP: "in", RAW_JOB_GROUP: "in"}
    while not worker.stopping:
        for group, topic in groups.items():
            i = worker.recorder.invoke("committed", group=group, offsets={})
            try:
                found = await reader.committed(group, topic, KEYS[topic])
            except (RefusedError, GaveUpError) as error:
                worker.recorder.complete(i, "info", "committed", error=str(error))
                continue
            offsets = {f"{topic}-{index}": offset for index, offset in found.items()}
            worker.recorder.complete(i, "ok", "committed", offsets=offsets)
        if worker.random.random() < 0.3:
            await _commit_as_zombie(worker, reader)
        await asyncio.sleep(0.3)


async def _commit_as_zombie(worker: Worker, reader: CommittedReader) -> None:
    """What a member does that was thrown out long ago and has not noticed."""
    offsets = {"jepsen-0": 0}
    i = worker.recorder.invoke("commit", group=SUBSCRIBE_GROUP, offsets=offsets)
    outcome = "ok"
    try:
        await reader.commit_as_member(
            SUBSCRIBE_GROUP, ("jepsen", 0), 0, member_id="gone", generation=1
        )
    except RefusedError:
        outcome = "fail"
    except GaveUpError:
        outcome = "info"
    worker.recorder.complete(i, outcome, "commit")


KINDS: Final[dict[str, Callable[[Worker], Any]]] = {
    "send": send,
    "txn": txn,
    "read": read_assigned,
    "subscribe": subscribe,
    "job": job,
    "rawtxn": rawtxn,
    "rawjob": rawjob,
    "ask": ask,
}


def main() -> None:
    """Work as told."""
    worker = Worker(WorkerOptions(**json.loads(sys.argv[1])))
    work = KINDS[worker.options.kind](worker)
    if work is not None:
        asyncio.run(work)


if __name__ == "__main__":
    main()
