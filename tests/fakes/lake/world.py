"""A lake job's whole world, each part a process that can be killed: store, broker, driver, workers.

    producers (threads) ══> broker ══> store <══ tasks of the job, its commits
       transactions           tier       ^
                                         └══ watcher (a thread): reads the table all the time

The store is versitygw over a directory, which outlives its process; where it is not built, moto
behind a proxy that is a process: its death cuts requests anywhere, done or not. Everything is
started again where it was, by whoever killed it.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from bench import wire
from bench.node import VarveNode, free_ports
from bench.process import tree
from bench.s3_server import (
    ACCESS_KEY_ID,
    BINARIES,
    REGION,
    SECRET_ACCESS_KEY,
    SERVERS,
    broker_settings,
    is_built,
)
from tests.fakes.s3.moto_server import moto_server

TOPIC = "orders"
PARTITIONS = 2
TIER_BUCKET = "tier"
TABLE_BUCKET = "tables"

BROKER = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "200",
    "log.retention.check.interval.ms": "500",
    "tier.history.interval.ms": "1000",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "rsm.config.chunk.size": "16384",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
TOPIC_SETTINGS = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "32768",
    "local.retention.bytes": "65536",
    "retention.ms": "-1",
}

TRANSACTION_MS = 5_000
"""After which the broker aborts what a producer that was cut off has left open."""

START_S = 90.0

FINISH_S = 900.0
"""For all that the table lacks."""


class StoreProcess:
    """An S3 server at an address of its own, whatever becomes of its process."""

    def __init__(self, directory: Path, held: ExitStack) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.name = "versitygw" if is_built("versitygw") else "moto behind a proxy"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        if is_built("versitygw"):
            data = directory / "data"
            data.mkdir(exist_ok=True)
            kind = SERVERS["versitygw"]
            filled = {"port": self.port, "port2": 0, "data": data}
            self._command = [
                str(BINARIES / "versitygw"),
                *(argument.format(**filled) for argument in kind.arguments),
            ]
            self._environment = {**os.environ, **kind.environment, "HOME": str(directory)}
        else:
            behind = held.enter_context(moto_server()).removeprefix("http://")
            self._command = [
                *(sys.executable, "-m", "tests.fakes.network.tcp_proxy"),
                *(str(self.port), behind),
            ]
            self._environment = dict(os.environ)
        held.callback(self.kill)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with (self._directory / "store.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log
            )
        until("the store answers", self._answers)

    def _answers(self) -> bool:
        import socket

        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "store.log").read_text()
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def client(self) -> Any:
        from botocore.config import Config
        from botocore.session import Session

        return Session().create_client(
            "s3",
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=ACCESS_KEY_ID,
            aws_secret_access_key=SECRET_ACCESS_KEY,
            config=Config(s3={"addressing_style": "path"}),
        )

    def make_buckets(self) -> None:
        client = self.client()
        for bucket in (TIER_BUCKET, TABLE_BUCKET):
            client.create_bucket(Bucket=bucket)


class Producers:
    """Threads that write transactions, some of them aborted, for as long as they are let.

    What a broker's death leaves open is aborted by it; who wrote it begins again with a new
    producer. Values are JSON, but every 31st.
    """

    def __init__(self, address: str, seed: int, count: int = 2) -> None:
        self._address = address
        self._stopped = threading.Event()
        self.committed = 0
        self.aborted = 0
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(f"{seed} producer {n}"), n))
            for n in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self, chance: random.Random, number: int) -> None:
        from confluent_kafka import KafkaException

        sent = number
        while not self._stopped.is_set():
            try:
                producer = self._producer(number)
                producer.init_transactions(10)
                while not self._stopped.wait(chance.uniform(0.0, 0.3)):
                    sent = self._transaction(producer, chance, sent)
            except (KafkaException, BufferError):
                # Whether it was committed, the log tells; the next producer fences this one.
                self._stopped.wait(0.2)

    def _producer(self, number: int) -> Any:
        from confluent_kafka import Producer

        return Producer(
            {
                "bootstrap.servers": self._address,
                "transactional.id": f"orders-{number}",
                "transaction.timeout.ms": TRANSACTION_MS,
                "message.timeout.ms": TRANSACTION_MS - 500,
                "socket.timeout.ms": 3_000,
                "reconnect.backoff.max.ms": 300,
                "linger.ms": 2,
                "log_level": 0,
            }
        )

    def _transaction(self, producer: Any, chance: random.Random, sent: int) -> int:
        producer.begin_transaction()
        for _ in range(chance.randrange(1, 40)):
            sent += len(self._threads)
            producer.produce(
                TOPIC,
                key=f"k{sent % 97}".encode(),
                value=value_of(sent),
                partition=chance.randrange(PARTITIONS),
            )
        if chance.random() < 0.25:
            producer.flush(5)
            producer.abort_transaction(10)
            self.aborted += 1
        else:
            producer.commit_transaction(10)
            self.committed += 1
        return sent


def value_of(number: int) -> bytes:
    if number % 31 == 7:
        return b"{no json " + b"%d" % number
    return json.dumps({"id": number, "name": f"n{number}", "filling": "x" * 60}).encode()


class Row(NamedTuple):
    """Of a table; `id` tells whether it is the record that belongs there."""

    partition: int
    offset: int
    id: int


class Logged(NamedTuple):
    """What a consumer gets of the topic."""

    good: list[Row]
    bad: list[tuple[int, int]]


class World:
    """All of it but the watcher; a context manager."""

    def __init__(self, kind: str, directory: Path, seed: int) -> None:
        self.kind = kind
        self.directory = directory
        self.seed = seed
        self._held = ExitStack()
        self.store = StoreProcess(directory / "store", self._held)
        self.broker = VarveNode(
            directory / "broker", {**BROKER, **broker_settings(self.store.url, TIER_BUCKET)}
        )
        self.producers = Producers(self.broker.address, seed)
        self.job = directory / "job.yaml"
        self.write_job()
        self.drivers: list[Driver] = []
        self.disturbed = 0
        self.is_away = False

    def __enter__(self) -> "World":
        try:
            self.store.start()
            self.store.make_buckets()
            self._held.callback(self.broker.kill)
            self.broker.start()
            with self.broker.connect() as connection:
                wire.create_topic(connection, TOPIC, PARTITIONS, TOPIC_SETTINGS)
            self._held.callback(self.producers.stop)
            self._held.callback(self.end_drivers)
            self.producers.start()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def write_job(self, *, workers: int = 0, max_bytes: str = "48 KiB") -> None:
        """job.yaml; batches and files are small, so that there are many."""
        store = (
            f"{{endpoint: '{self.store.url}', region: {REGION}, path_style: true, "
            f"access_key_id: {ACCESS_KEY_ID}, secret_access_key: {SECRET_ACCESS_KEY}}}"
        )
        table = f"s3://{TABLE_BUCKET}/orders"
        sink = f"type: {self.kind}, table: '{table}'"
        if self.kind == "iceberg":
            uri = f"uri: 'sqlite:///{self.directory}/catalog.db'"
            sink = (
                "type: iceberg, table: lake.orders, "
                f"catalog: {{type: sql, {uri}, warehouse: 's3://{TABLE_BUCKET}/warehouse'}}"
            )
        self.job.write_text(
            f"source: {{location: 's3://{TIER_BUCKET}', topic: {TOPIC}, "
            f"bootstrap: '{self.broker.address}', store: {store}}}\n"
            "value: {format: json}\n"
            f"sink: {{{sink}, target_file_bytes: 256 KiB}}\n"
            f"batch: {{max_bytes: {max_bytes}, every: 500ms}}\n"
            f"runner: {{type: local, workers: {workers}}}\n"
        )

    # -- killing ---------------------------------------------------------------------------------

    def start_driver(self) -> "Driver":
        driver = Driver(self.job, self.directory / f"driver-{len(self.drivers)}.log")
        self.drivers.append(driver)
        return driver

    def end_drivers(self) -> None:
        for driver in self.drivers:
            driver.kill()

    def kill_broker(self, away_s: float) -> None:
        self.broker.kill()
        time.sleep(away_s)
        self.broker.start()

    def kill_store(self, away_s: float) -> None:
        self.disturbed += 1
        self.is_away = True
        self.store.kill()
        time.sleep(away_s)
        self.store.start()
        self.disturbed += 1
        self.is_away = False

    # -- the truth -------------------------------------------------------------------------------

    def logged(self) -> Logged:
        """What a consumer that reads committed records gets; producers have stopped."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.address,
                "group.id": "dump",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
        good: list[Row] = []
        bad: list[tuple[int, int]] = []
        try:
            consumer.assign([TopicPartition(TOPIC, p, 0) for p in range(PARTITIONS)])
            ended: set[int] = set()
            deadline = time.monotonic() + FINISH_S
            while len(ended) < PARTITIONS:
                assert time.monotonic() < deadline
                message = consumer.poll(1)
                if message is None:
                    continue
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                if message.error() is not None:
                    ended.add(partition)
                    continue
                value = message.value()
                assert value is not None
                if value.startswith(b"{no"):
                    bad.append((partition, offset))
                else:
                    good.append(Row(partition, offset, json.loads(value)["id"]))
        finally:
            consumer.close()
        return Logged(sorted(good), sorted(bad))

    def finish(self) -> tuple[int, str]:
        """The job once more, in larger batches, until it has all; its status and what it said."""
        self.write_job(max_bytes="4 MiB")
        done = self.run_cli("run", "--once")
        return done.returncode, done.stdout + done.stderr

    def run_cli(self, action: str, *more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "cli.main", "pipeline", action, str(self.job), *more],
            capture_output=True,
            text=True,
            timeout=FINISH_S,
            check=False,
        )


class Driver:
    """`varve pipeline run` as a process, with its workers."""

    def __init__(self, job: Path, log: Path) -> None:
        self.log = log
        # With the time at which each began: soon another process may have its number.
        self._family: set[tuple[int, str]] = set()
        with log.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cli.main", "pipeline", "run", str(job)],
                stdout=said,
                stderr=said,
            )
        self.pid = self._process.pid

    @property
    def status(self) -> int | None:
        """None: it runs."""
        return self._process.poll()

    def workers(self) -> list[int]:
        """Processes that run tasks."""
        found = []
        for pid in tree(self.pid)[1:]:
            with contextlib.suppress(OSError):
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        self._family.update((pid, began(pid)) for pid in tree(self.pid)[1:])
        return found

    def left(self) -> list[int]:
        """Processes of its that live though it is dead."""
        return [pid for pid, at in self._family if at and is_alive(pid) and began(pid) == at]

    def kill(self) -> None:
        """With all that it has started: what a machine does that goes down."""
        self.workers()
        self._process.kill()
        self._process.wait()
        for pid in self.left():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def die(self) -> None:
        """Alone."""
        self.workers()
        self._process.kill()
        self._process.wait()

    def batches(self) -> int:
        """That it has committed."""
        return self.said().count(" INFO batch ")

    def said(self) -> str:
        return self.log.read_text(errors="replace")


def is_alive(pid: int) -> bool:
    return _stat(pid)[:1] not in ([], ["Z"])


def began(pid: int) -> str:
    """When a process began, in ticks since the machine did; empty: it has ended."""
    return "".join(_stat(pid)[19:20])


def _stat(pid: int) -> list[str]:
    """Fields of a process from the third on, its state; none: it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def until(what: str, is_so: Callable[[], bool], timeout_s: float = START_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
