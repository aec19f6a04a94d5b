"""A really tiered topic: a broker process of ours, real producers, and a bucket that fills.

broker = TieredBroker(directory)
broker.start()
broker.create("orders", partitions=3)
broker.fill("orders", rounds=2)              all codecs, transactions, odd records
broker.restart(compressed=True)              later segments are stored in another way
broker.wait_until_tiered("orders", 3)
"""

import itertools
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bench import wire
from bench.node import VarveNode
from pipeline.plan.errors import PlanError
from pipeline.source.options.options import parse_options
from pipeline.source.planner import Planner
from protocol.records.batch import update_crc
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.types.topic_partition import TopicPartition

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "100",
    "log.retention.check.interval.ms": "200",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "rsm.config.chunk.size": "16384",
}
TOPIC = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "65536",
    "index.interval.bytes": "4096",
    "retention.ms": "-1",
}


class TieredBroker:
    """See the module; the bucket is the directory `bucket` unless settings say otherwise."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.bucket = directory / "bucket"
        self.private_key = directory / "keys" / "private.pem"
        self._settings = {
            **SETTINGS,
            **(settings or {"rsm.config.storage.root": str(self.bucket)}),
        }
        self._write_keys()
        self.node = VarveNode(directory / "broker", self._settings)
        self._names = itertools.count()

    @property
    def location(self) -> str:
        """For `load(...)`."""
        return f"file://{self.bucket}"

    @property
    def options(self) -> dict[str, str]:
        """Where the bucket is and what opens it, for readers."""
        settings = self._settings
        options = {"path": self.location, "keyPairs": f"pair={self.private_key}"}
        if "rsm.config.storage.s3.bucket.name" in settings:
            options |= {
                "path": f"s3://{settings['rsm.config.storage.s3.bucket.name']}",
                "store.endpoint": settings["rsm.config.storage.s3.endpoint.url"],
                "store.region": settings["rsm.config.storage.s3.region"],
                "store.pathStyle": "true",
                "store.accessKeyId": settings["rsm.config.storage.aws.access.key.id"],
                "store.secretAccessKey": settings["rsm.config.storage.aws.secret.access.key"],
            }
        return options

    def start(self) -> None:
        self.node.start()

    def stop(self) -> None:
        self.node.stop()

    def restart(
        self, *, compressed: bool = False, encrypted: bool = False, killed: bool = False
    ) -> None:
        """Leader epochs go up; later segments are stored as told."""
        if killed:
            self.node.kill()
        else:
            self.node.stop()
        self.node.properties = dict(self._settings)
        if compressed:
            self.node.properties["rsm.config.compression.enabled"] = "true"
        if encrypted:
            self.node.properties |= {
                "rsm.config.encryption.enabled": "true",
                "rsm.config.encryption.key.pair.id": "pair",
                "rsm.config.encryption.key.pairs": "pair",
                "rsm.config.encryption.key.pairs.pair.public.key.file": str(
                    self.private_key.with_name("public.pem")
                ),
                "rsm.config.encryption.key.pairs.pair.private.key.file": str(self.private_key),
            }
        self.node.start()

    def create(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        with self.node.connect() as connection:
            wire.create_topic(connection, topic, partitions, {**TOPIC, **(configs or {})})

    def add_partitions(self, topic: str, count: int) -> None:
        """Until the topic has so many."""
        with self.node.connect() as connection:
            wire.call(
                connection,
                wire.CREATE_PARTITIONS,
                1,
                wire.create_partitions_body(topic, count),
            )
            wire.wait_until_led(connection, topic, count)

    def fill(self, topic: str, partitions: int, *, records: int = 300, size: int = 100) -> None:
        """Every codec, transactions of several producers among them, and odd records."""
        for codec in CODECS:
            self._plain(topic, partitions, codec, records, size)
        self._transactions(topic, partitions, records, size)
        for partition in range(partitions):
            self._odd(topic, partition)

    def _producer(self, **settings: object) -> Producer:
        return Producer({"bootstrap.servers": self.node.address, "linger.ms": 5, **settings})

    def _plain(self, topic: str, partitions: int, codec: str, records: int, size: int) -> None:
        producer = self._producer(**{"compression.type": codec, "batch.size": 8192})
        for number in range(records):
            self._produce(producer, topic, number % partitions, codec, number, size)
        assert producer.flush(30) == 0

    def _transactions(self, topic: str, partitions: int, records: int, size: int) -> None:
        """Three producers take turns; of their transactions every third is aborted."""
        producers = [
            self._producer(
                **{"transactional.id": f"{topic}-{next(self._names)}", "batch.size": 4096}
            )
            for _ in range(3)
        ]
        for producer in producers:
            producer.init_transactions(30)
        for turn in range(3):
            for producer in producers:
                producer.begin_transaction()
            for number in range(records):
                producer = producers[number % 3]
                self._produce(producer, topic, number % partitions, f"turn{turn}", number, size)
            for index, producer in enumerate(producers):
                if (turn + index) % 3 == 0:
                    assert producer.flush(30) == 0
                    producer.abort_transaction(30)
                else:
                    producer.commit_transaction(30)
            self._plain(topic, partitions, "none", partitions * 2, size)

    @staticmethod
    def _produce(
        producer: Producer, topic: str, partition: int, label: str, number: int, size: int
    ) -> None:
        key = None if number % 7 == 0 else f"{label}-{number}".encode()
        value = None if number % 11 == 0 else (b"%d:" % number) * (size // (len(str(number)) + 1))
        headers: list[tuple[str, str | bytes | None]] | None = None
        if number % 3 == 0:
            headers = [("trace", f"{number}".encode()), ("empty", b""), ("null", None)]
        producer.produce(
            topic,
            key=key,
            value=value,
            headers=headers,
            partition=partition,
            timestamp=1_700_000_000_000 + number * 37,
        )
        producer.poll(0)

    def _odd(self, topic: str, partition: int) -> None:
        """What client libraries cannot be talked into: see the keys."""
        placeholder = "PLACEHOLDER"
        for codec in (Codec.NONE, Codec.ZSTD):
            records = [
                (b"timestamp -1", b"v", (), -1),
                (b"timestamp 0", b"v", (("a", None), ("a", b"again")), -1),
                (b"", b"", (), -1),
                (None, None, (), -1),
            ]
            self._send(topic, partition, build_batch(records, codec=codec))
        batch = build_batch(
            [(b"header key that is no UTF-8", b"v", ((placeholder, b"x"),), 1_700_000_000_123)]
        )
        at = batch.find(placeholder.encode())
        batch[at : at + len(placeholder)] = b"a\xff\xfe\xc3(\xed\xa0\x80bc"[
            : len(placeholder)
        ].ljust(len(placeholder), b"\x80")
        update_crc(memoryview(batch), 0, len(batch))
        self._send(topic, partition, batch)

    def _send(self, topic: str, partition: int, batch: bytearray) -> None:
        with self.node.connect() as connection:
            wire.produce(connection, topic, partition, bytes(batch))

    def wait_until_tiered(self, topic: str, partitions: int, timeout_s: float = 300.0) -> None:
        """Until all but the active segment is in the bucket."""
        deadline = time.monotonic() + timeout_s
        while not self._is_tiered(topic, partitions):
            assert time.monotonic() < deadline, f"{topic} is not tiered"
            time.sleep(0.2)

    def _is_tiered(self, topic: str, partitions: int) -> bool:
        ends = self.bucket_ends(topic, "read_uncommitted")
        for number in range(partitions):
            folder = self.node.data_directory / f"{topic}-{number}"
            active = max(int(path.stem) for path in folder.glob("*.log"))
            if ends.get(TopicPartition(topic, number), 0) < active:
                return False
        return True

    def bucket_ends(self, topic: str, level: str) -> dict[TopicPartition, int]:
        """Where the bucket's rows end; nothing where it has none."""
        given = {**self.options, "subscribe": topic, "isolationLevel": level}
        with Planner(parse_options(given)) as planner:
            try:
                views = planner.view()
            except PlanError:
                return {}
        return {partition: view.end for partition, view in views.items()}

    def metrics(self) -> str:
        """The page that Prometheus scrapes."""
        url = f"http://{self.node.admin_address}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read(), "utf-8")

    def _write_keys(self) -> None:
        self.private_key.parent.mkdir(parents=True, exist_ok=True)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.private_key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        self.private_key.with_name("public.pem").write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
