"""Clients that go on writing numbered records, each in its library's own way.

A writer is a thread: it writes with acks=all until it is stopped, and notes what was acknowledged.
Its records are those of `bench.cluster.numbered`.
"""

import asyncio
import json
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from aiokafka import AIOKafkaProducer
from typing_extensions import override

from bench.cluster.numbered import NumberedProducer
from bench.kafka_release import VERIFIABLE_PRODUCER
from tests.interop.clients import Kcat
from tests.interop.tool_server import ToolServer

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated call, at import and again as messages load.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

RATE_PER_S = 200.0
DEADLINE_S = 90.0

Acknowledged = dict[int, dict[int, int | None]]
"""For each partition, numbers and their offsets; None where the client does not say."""


class Writer(Protocol):
    """What a test needs of a client that writes."""

    acknowledged: Acknowledged

    def start(self) -> None:
        """Begin."""

    def wait_for_acks(self, more: int, timeout_s: float = DEADLINE_S) -> None:
        """Until so many more records are acknowledged."""

    def finish(self) -> None:
        """Stop, wait for all that was sent; AssertionError when any of it failed."""


class ThreadWriter(threading.Thread):
    """A writer around one function that writes until it is told to stop."""

    def __init__(self, partitions: int) -> None:
        super().__init__(name=type(self).__name__, daemon=True)
        self.acknowledged: Acknowledged = {index: {} for index in range(partitions)}
        self.partitions = partitions
        self.stopping = threading.Event()
        self.failures: list[str] = []

    def write(self) -> None:
        """Write until `stopping` is set, and wait for what was sent."""
        raise NotImplementedError

    @override
    def run(self) -> None:
        try:
            self.write()
        except Exception as error:  # noqa: BLE001  because another thread is to see it
            self.failures.append(f"{type(error).__name__}: {error}")

    @property
    def acknowledged_count(self) -> int:
        """Records acknowledged so far."""
        return sum(map(len, self.acknowledged.values()))

    def wait_for_acks(self, more: int, timeout_s: float = DEADLINE_S) -> None:
        """Until so many more records are acknowledged."""
        wanted, deadline = self.acknowledged_count + more, time.monotonic() + timeout_s
        while self.acknowledged_count < wanted:
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, f"{more} acknowledgements took above {timeout_s} s"
            time.sleep(0.01)

    def finish(self) -> None:
        """Stop, wait for all that was sent; AssertionError when any of it failed."""
        self.stopping.set()
        self.join(2 * DEADLINE_S)
        assert not self.is_alive(), "not all that was sent was answered"
        assert not self.failures, self.failures


class KafkaPythonWriter(ThreadWriter):
    """kafka-python, idempotent as it is by default."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(partitions)
        self._addresses, self._topic = bootstrap, topic

    @override
    def write(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._addresses.split(","), acks="all")
        pending = []
        number = 0
        while not self.stopping.is_set():
            partition = number % self.partitions
            future = producer.send(self._topic, b"%d" % number, partition=partition)
            future.add_callback(
                lambda sent, number=number, partition=partition: self.acknowledged[
                    partition
                ].__setitem__(number, sent.offset)
            )
            pending.append(future)
            number += 1
            time.sleep(1 / RATE_PER_S)
        producer.flush(timeout=DEADLINE_S)
        for future in pending:
            future.get(timeout=DEADLINE_S)
        producer.close(timeout=10)


class AioKafkaWriter(ThreadWriter):
    """aiokafka, idempotent."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(partitions)
        self._addresses, self._topic = bootstrap, topic

    @override
    def write(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=self._addresses, acks="all", enable_idempotence=True
        ) as producer:
            pending = []
            number = 0
            while not self.stopping.is_set():
                partition = number % self.partitions
                sent = await producer.send(self._topic, b"%d" % number, partition=partition)
                sent.add_done_callback(self._noting(partition, number))
                pending.append(sent)
                number += 1
                await asyncio.sleep(1 / RATE_PER_S)
            await asyncio.wait_for(asyncio.gather(*pending), DEADLINE_S)

    def _noting(self, partition: int, number: int) -> Callable[["asyncio.Future[object]"], None]:
        def note(sent: "asyncio.Future[object]") -> None:
            if not sent.cancelled() and sent.exception() is None:
                offset = sent.result().offset  # type: ignore[attr-defined]  # untyped library
                self.acknowledged[partition][number] = offset

        return note


class ConfluentWriter(NumberedProducer):
    """confluent-kafka, which is librdkafka, idempotent."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(bootstrap, topic, partitions=range(partitions), rate_per_s=RATE_PER_S)


class LinesWriter(ThreadWriter):
    """A program that writes the lines of its standard input, and ends well when all are written.

    Which lines are acknowledged is known at its end only.
    """

    def __init__(self, command: list[str]) -> None:
        super().__init__(1)
        self._command = command
        self.written = 0

    @override
    def write(self) -> None:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdin is not None
        try:
            while not self.stopping.is_set():
                process.stdin.write(b"%d\n" % self.written)
                process.stdin.flush()
                self.written += 1
                time.sleep(1 / RATE_PER_S)
            output, _ = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == 0, output.decode(errors="replace")[-3000:]
        self.acknowledged[0] = dict.fromkeys(range(self.written))

    @override
    def wait_for_acks(self, more: int, timeout_s: float = DEADLINE_S) -> None:
        """Until so many more lines are written: more is not known before the end."""
        wanted, deadline = self.written + more, time.monotonic() + timeout_s
        while self.written < wanted:
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, f"{more} lines took above {timeout_s} s"
            time.sleep(0.01)


def kcat_writer(bootstrap: str, topic: str, _partitions: int) -> LinesWriter:
    """Debian's kcat, an old librdkafka: to partition 0."""
    command = [Kcat.program(), "-b", bootstrap, "-P", "-t", topic, "-p", "0"]
    return LinesWriter([*command, "-X", "acks=all", "-X", "enable.idempotence=true"])


class JavaWriter(ThreadWriter):
    """Kafka's VerifiableProducer with the Java client's defaults, in the JVM of the tools.

    It writes a number of records that is given to it; what was acknowledged is known at its end.
    """

    SECONDS = 40

    def __init__(
        self, tools: ToolServer, directory: Path, bootstrap: str, topic: str, partitions: int
    ) -> None:
        super().__init__(partitions)
        self._tools, self._addresses, self._topic = tools, bootstrap, topic
        self._begin = 0.0
        # Without it the tool takes away the client's retries.
        self._config = directory / "java-producer.properties"
        self._config.write_text("retries=2147483647\nenable.idempotence=true\n")

    @override
    def write(self) -> None:
        self._begin = time.monotonic()
        told = self._tools.tool(
            VERIFIABLE_PRODUCER,
            *("--bootstrap-server", self._addresses, "--topic", self._topic, "--acks", "-1"),
            *("--max-messages", str(int(RATE_PER_S * self.SECONDS))),
            *("--throughput", str(int(RATE_PER_S)), "--command-config", str(self._config)),
        )
        for line in told.stdout.splitlines():
            event = json.loads(line)
            if event["name"] == "producer_send_success":
                self.acknowledged[event["partition"]][int(event["value"])] = event["offset"]
            elif event["name"] == "producer_send_error":
                self.failures.append(line)

    @override
    def wait_for_acks(self, more: int, timeout_s: float = DEADLINE_S) -> None:
        """For as long as that many take: more is not known before the end."""
        deadline = time.monotonic() + more / RATE_PER_S
        while time.monotonic() < deadline:
            assert not self.failures, self.failures
            time.sleep(0.01)
