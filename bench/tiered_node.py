"""Brokers with remote storage in a directory: Varve's own store, Kafka's LocalTieredStorage.

Both write closed segments to the same disk the local log is on, so neither pays for a network.
LocalTieredStorage is the test double in Kafka's published test jar: one file per segment and
index, copied whole, without checksums and without a manifest. It is what anybody can run, which
makes it the reference; it is also the cheapest remote storage there can be.

Source: Kafka, TieredStorageTestUtils.createPropsForRemoteStorage; KIP-405.
"""

from collections.abc import Mapping
from pathlib import Path

from bench.kafka_release import KAFKA_HEAP, KafkaRelease
from bench.node import KafkaNode, OwnedNode, VarveNode

TASK_INTERVAL_MS = 500
"""Both sides look for work as often as Kafka's own tests do."""

CHUNK_BYTES = 4 << 20
"""Of Varve's chunks: what one ranged GET brings."""

_BOTH = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": str(TASK_INTERVAL_MS),
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
}

_PACKAGE = "org.apache.kafka.server.log.remote"


class TieredVarveNode(VarveNode):
    """`varve serve` with the filesystem store below the node's directory.

    Another store is had by `properties`.
    """

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        cores: frozenset[int] | None = None,
    ) -> None:
        self.remote_directory = directory / "remote"
        settings = {
            **_BOTH,
            "rsm.config.storage.backend.class": "filesystem",
            "rsm.config.storage.root": str(self.remote_directory),
            "rsm.config.chunk.size": str(CHUNK_BYTES),
            **(properties or {}),
        }
        super().__init__(directory, settings, cores=cores)


class TieredKafkaNode(KafkaNode):
    """Released Kafka with LocalTieredStorage below the node's directory."""

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        cores: frozenset[int] | None = None,
        heap: tuple[str, ...] = KAFKA_HEAP,
    ) -> None:
        self.remote_directory = directory / "remote"
        settings = {
            **_BOTH,
            "remote.log.storage.manager.class.name": f"{_PACKAGE}.storage.LocalTieredStorage",
            "remote.log.metadata.manager.listener.name": "PLAINTEXT",
            "rsm.config.dir": str(self.remote_directory),
            "rlmm.config.remote.log.metadata.topic.num.partitions": "5",
            "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
            "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": "300",
            **(properties or {}),
        }
        release = KafkaRelease.resolve(with_test_jars=True)
        super().__init__(directory, settings, cores=cores, heap=heap, release=release)


TIERED_KINDS: dict[str, type[OwnedNode]] = {"varve": TieredVarveNode, "kafka": TieredKafkaNode}
