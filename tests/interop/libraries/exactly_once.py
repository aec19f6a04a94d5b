"""An exactly-once job under faults, and its books.

    feeder (idempotent) -> source -> jobs: read, process, write -> sink -> readers (read_committed)
                                     Java, librdkafka, one group

The broker is killed and started again on the same port, jobs are killed, or stopped until their
transactions have timed out and others have their partitions, and then go on as zombies. In the end

- every number of the source stands in the sink twice, as its two halves: none lost, none doubled;
- every transaction of which a record is seen is there whole: none torn;
- the group's committed positions are the ends of the source;
- who read the sink all along saw the same records at the same offsets as who reads it afterwards.
"""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.node import REPOSITORY, OwnedNode
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.interop.libraries.exactly_once_job import QUICK
from tests.interop.raw.dialogue import Dialogue

PARTITIONS = 4
SOURCE, SINK, GROUP = "source", "sink", "jobs"

PROPERTIES = {
    # Kafka waits for its own old session before it starts again.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.min.session.timeout.ms": "1000",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}

LOST_POSITION = {"_AUTO_OFFSET_RESET", "_LOG_TRUNCATION", "OFFSET_OUT_OF_RANGE"}

Seen = dict[tuple[int, int], tuple[str, str]]
"""Partition and offset to key and value."""


class Feeder(threading.Thread):
    """Sends numbers to the source until told to stop."""

    def __init__(self, address: str, per_second: int) -> None:
        super().__init__(name="feeder", daemon=True)
        self.sent = 0
        self.failures: list[str] = []
        self._per_second = per_second
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 300_000,
                **QUICK,
            }
        )

    def run(self) -> None:
        while not self._stopping.wait(0.02):
            for _ in range(max(1, self._per_second // 50)):
                self._producer.produce(
                    SOURCE,
                    str(self.sent),
                    partition=self.sent % PARTITIONS,
                    on_delivery=self._on_delivery,
                )
                self.sent += 1
            self._producer.poll(0)

    def _on_delivery(self, error: object, _: object) -> None:
        if error is not None:
            self.failures.append(str(error))

    def finish(self) -> None:
        """Stop; all that was sent is in the source, once."""
        self._stopping.set()
        self.join()
        left = self._producer.flush(120)
        assert not self.failures, self.failures[:3]
        assert left == 0, f"{left} inputs were never answered"


class Job:
    """A process that is started again when it ends."""

    def __init__(self, name: str, command: list[str], log_path: Path) -> None:
        self.name = name
        self.starts = 0
        self._command = command
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    def keep_running(self) -> None:
        """Start it unless it runs."""
        if self._process is None or self._process.poll() is not None:
            with self._log_path.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=REPOSITORY,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            self.starts += 1

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """As a crash would."""
        self.send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()


class Reader(threading.Thread):
    """Reads the committed part of the sink all along, through every restart of the broker."""

    def __init__(self, address: str) -> None:
        super().__init__(name="reader", daemon=True)
        self.seen: Seen = {}
        self.values: Counter[str] = Counter()
        self.rewritten: list[str] = []
        self.positions: dict[int, int] = {}
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                **QUICK,
            }
        )
        self._consumer.assign([TopicPartition(SINK, p, 0) for p in range(PARTITIONS)])

    def run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.1)
            for _ in range(1000):
                if message is None:
                    break
                self._note(message)
                message = self._consumer.poll(0.0)
            if message is not None:
                self._note(message)
            # Also past markers, which are no messages.
            at_now = self._consumer.position([TopicPartition(SINK, p) for p in range(PARTITIONS)])
            self.positions = {at.partition: at.offset for at in at_now}
        self._consumer.close()

    def _note(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.name() in LOST_POSITION:
                self.rewritten.append(str(error))
            return
        at = (message.partition() or 0, message.offset() or 0)
        found = ((message.key() or b"").decode(), (message.value() or b"").decode())
        if self.seen.setdefault(at, found) != found:
            self.rewritten.append(f"{at}: {self.seen[at]}, then {found}")
        self.values[found[1]] += 1

    def ends(self) -> dict[int, int]:
        """Ends of the sink; before the thread is started."""
        at = ((p, TopicPartition(SINK, p)) for p in range(PARTITIONS))
        return {p: self._consumer.get_watermark_offsets(one, timeout=30)[1] for p, one in at}

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self.join()


@dataclass
class Result:
    """What happened, for a line in the test's output."""

    inputs: int = 0
    transactions: int = 0
    broker_kills: int = 0
    job_kills: int = 0
    zombies: int = 0
    job_starts: int = 0
    seconds: float = 0.0
    anomalies: list[str] = field(default_factory=list)


def read_afresh(address: str) -> Seen:
    """All that is committed in the sink, by a client that was not there before."""
    reader = Reader(address)
    ends = reader.ends()
    reader.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if all(reader.positions.get(p, -1) >= end for p, end in ends.items()):
            break
        time.sleep(0.05)
    reader.stop()
    return reader.seen


def audit(inputs: int, seen: Seen) -> tuple[int, list[str]]:
    """Number of transactions, and what is wrong with the books."""
    found = Counter(value for _, value in seen.values())
    expected = {f"{n}/{half}" for n in range(inputs) for half in range(2)}
    lost = sorted(expected - found.keys())
    doubled = sorted(value for value, count in found.items() if count > 1)
    foreign = sorted(found.keys() - expected)
    sizes: defaultdict[str, int] = defaultdict(int)
    for key, _ in seen.values():
        sizes[key] += 1
    torn = [key for key, size in sizes.items() if int(key.partition("/")[2]) != size]
    anomalies = [
        f"{len(values)} {what}: {values[:5]}"
        for what, values in (
            ("lost", lost),
            ("doubled", doubled),
            ("out of nowhere", foreign),
            ("torn transactions", torn),
        )
        if values
    ]
    return len(sizes), anomalies


def positions_are_ends(address: str) -> list[str]:
    """Whether the group has committed all of the source."""
    admin = AdminClient({"bootstrap.servers": address})
    asked = ConsumerGroupTopicPartitions(GROUP)
    future = admin.list_consumer_group_offsets([asked], require_stable=True)[GROUP]
    committed = {at.partition: at.offset for at in future.result(30).topic_partitions}
    consumer = Consumer({"bootstrap.servers": address, "group.id": "ends"})
    wrong = []
    for p in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition(SOURCE, p), timeout=30)
        if committed.get(p) != end:
            wrong.append(f"position of {SOURCE}-{p} is {committed.get(p)}, not {end}")
    consumer.close()
    return wrong


def diagnosis(node: OwnedNode) -> str:
    """What the broker says of itself when nothing moves."""
    dialogue = Dialogue(node, "diagnosis")
    try:
        dialogue.ask("transactions", ListTransactionsRequest(), 1)
        for isolation in (0, 1):
            for topic in (SOURCE, SINK):
                at = [ListOffsetsPartition(partition_index=p, timestamp=-1) for p in range(4)]
                request = ListOffsetsRequest(
                    isolation_level=isolation, topics=[ListOffsetsTopic(name=topic, partitions=at)]
                )
                dialogue.ask(f"ends of {topic} at isolation {isolation}", request, 7)
        for stable in (False, True):
            groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=None)]
            request2 = OffsetFetchRequest(groups=groups, require_stable=stable)
            dialogue.ask(f"committed, stable {stable}", request2, 9)
        dialogue.ask("group", ConsumerGroupDescribeRequest(group_ids=[GROUP]))
    finally:
        dialogue.close()
    return "\n".join(dialogue.transcript)


class Experiment:
    """Broker, feeder, jobs, reader and what befalls them."""

    def __init__(
        self,
        node: OwnedNode,
        jobs: list[Job],
        *,
        seed: int,
        per_second: int,
    ) -> None:
        self.node = node
        self.jobs = jobs
        self.random = random.Random(seed)
        self.result = Result()
        self.per_second = per_second

    def run(self, faults: int) -> Result:
        """The whole experiment: so many faults, then quiet, then the books."""
        begin = time.monotonic()
        self.node.start()
        admin = AdminClient({"bootstrap.servers": self.node.address})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (SOURCE, SINK)]
        for future in admin.create_topics(topics).values():
            future.result(30)
        feeder = Feeder(self.node.address, self.per_second)
        reader = Reader(self.node.address)
        feeder.start()
        reader.start()
        try:
            # Each fault finds work going on: a few hundred outputs since the last one.
            self._wait(lambda: sum(reader.values.values()) >= 200, "the first outputs", reader)
            for number in range(faults):
                self._fault(number)
                before = sum(reader.values.values())
                self._wait(
                    lambda before=before: sum(reader.values.values()) >= before + 200,
                    f"outputs after fault {number}",
                    reader,
                )
            feeder.finish()
            self._wait(
                lambda: len(reader.values) >= 2 * feeder.sent, "all outputs", reader, strict=False
            )
        finally:
            for job in self.jobs:
                job.send(signal.SIGCONT)
                job.kill()
            feeder._stopping.set()
            reader.stop()
        result = self.result
        result.inputs = feeder.sent
        afresh = read_afresh(self.node.address)
        result.transactions, result.anomalies = audit(feeder.sent, afresh)
        result.anomalies += positions_are_ends(self.node.address)
        result.anomalies += reader.rewritten[:5]
        if reader.seen != afresh:
            differing = reader.seen.keys() ^ afresh.keys()
            result.anomalies.append(
                f"two readers differ in {len(differing)} records: {sorted(differing)[:5]}"
            )
        result.job_starts = sum(job.starts for job in self.jobs)
        result.seconds = time.monotonic() - begin
        return result

    def _fault(self, number: int) -> None:
        # In turn, so that a short run has all of them; moments and victims are random.
        victim = self.random.choice(self.jobs)
        match number % 4:
            case 0 | 2:
                time.sleep(self.random.uniform(0.0, 0.3))
                self.node.kill()
                self.node.start()
                self.result.broker_kills += 1
            case 1:
                victim.kill()
                victim.keep_running()
                self.result.job_kills += 1
            case _:
                # Longer than the session: when it wakes up its partitions are somebody else's.
                victim.send(signal.SIGSTOP)
                self._watch(4.0)
                victim.send(signal.SIGCONT)
                self.result.zombies += 1

    def _watch(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for job in self.jobs:
                job.keep_running()
            time.sleep(0.05)

    def _wait(self, is_so: Any, what: str, reader: Reader, *, strict: bool = True) -> None:
        """Wait as long as there is progress."""
        last, deadline = -1, time.monotonic() + 60
        while not is_so():
            if len(reader.values) != last:
                last, deadline = len(reader.values), time.monotonic() + 60
            if time.monotonic() > deadline:
                assert not strict, (
                    f"no progress for 60 s while waiting for {what}; "
                    f"the reader is at {reader.positions}\n{diagnosis(self.node)}"
                )
                return
            self._watch(0.05)


def librdkafka_command(address: str, protocol: str, index: int) -> list[str]:
    """The job with librdkafka."""
    program = [sys.executable, "-m", "tests.interop.libraries.exactly_once_job"]
    return [*program, *job_arguments(address, protocol, f"librdkafka-{index}")]


def job_arguments(address: str, protocol: str, transactional_id: str) -> list[str]:
    """What both programs are told."""
    return [address, protocol, GROUP, transactional_id, SOURCE, SINK, str(PARTITIONS)]
