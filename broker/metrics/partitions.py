"""Metrics of topics, logs, purgatories and fetch sessions."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric

from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.replicas.fetch_sessions import FetchSessionCache
    from broker.replicas.replica_manager import ReplicaManager
    from storage.manager.log_manager import LogManager

SLICE = 500
"""Partitions read before yielding to the event loop."""

PARTITION = ("topic", "partition")
TOPIC = ("topic",)

TOPIC_COUNTERS = (
    ("bytesin", "bytes_in", "Bytes of record batches written."),
    ("bytesout", "bytes_out", "Bytes of record batches sent to consumers."),
    (
        "replicationbytesin",
        "replication_bytes_in",
        "Bytes of record batches fetched from leaders and written.",
    ),
    (
        "reassignmentbytesin",
        "reassignment_bytes_in",
        "Bytes of record batches written by replicas that a reassignment adds.",
    ),
    (
        "reassignmentbytesout",
        "reassignment_bytes_out",
        "Bytes of record batches sent to replicas that a reassignment adds.",
    ),
    ("messagesin", "messages_in", "Records written."),
    ("totalproducerequests", "produces", "Partitions written to, a request and partition each."),
    ("totalfetchrequests", "fetches", "Partitions read from, a request and partition each."),
    ("failedproducerequests", "failed_produces", "Partition writes refused."),
    ("failedfetchrequests", "failed_fetches", "Partition reads refused."),
)


class PartitionMetrics:
    """See `collect`."""

    def __init__(
        self,
        replicas: "ReplicaManager",
        controller: "Controller",
        sessions: "FetchSessionCache",
        log_manager: "LogManager",
    ) -> None:
        self._log_manager = log_manager
        self._replicas = replicas
        self._controller = controller
        self._sessions = sessions

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        topics = list(self._replicas.stats.items())
        for name, attribute, text in TOPIC_COUNTERS:
            yield counter(
                f"kafka_server_brokertopicmetrics_{name}",
                text,
                TOPIC,
                [((topic,), getattr(stats, attribute)) for topic, stats in topics],
            )
        await asyncio.sleep(0)
        size = GaugeMetricFamily("kafka_log_log_size", "Bytes on local disk.", labels=PARTITION)
        start = GaugeMetricFamily(
            "kafka_log_log_logstartoffset", "Log start offset.", labels=PARTITION
        )
        end = GaugeMetricFamily("kafka_log_log_logendoffset", "Log end offset.", labels=PARTITION)
        local_start = GaugeMetricFamily(
            "varve_log_local_log_start_offset",
            "Local log start offset; below it remote storage is read.",
            labels=PARTITION,
        )
        segments = GaugeMetricFamily(
            "kafka_log_log_numlogsegments", "Segments on local disk.", labels=PARTITION
        )
        count = 0
        for partition in list(self._replicas.partitions()):
            topic, index = partition.topic_partition
            labels = (topic, str(index))
            count += 1
            if partition.is_truncating:  # a thread has its log
                continue
            log = partition.log
            size.add_metric(labels, log.size())
            start.add_metric(labels, log.log_start_offset)
            end.add_metric(labels, log.log_end_offset)
            local_start.add_metric(labels, log.local_log_start_offset)
            segments.add_metric(labels, len(log.segment_facts()))
            if count % SLICE == 0:
                await asyncio.sleep(0)
        for family in (size, start, end, local_start, segments):
            yield family
        image = self._controller.image
        node_id = self._controller.settings.node_id
        assigned = 0
        for found in image.topics.values():
            assigned += sum(node_id in state.replicas for state in found.partitions)
        missing = max(assigned - count, 0)
        for name, value, text in (
            ("kafka_server_replicamanager_partitioncount", count, "Partitions served here."),
            (
                "kafka_server_replicamanager_offlinereplicacount",
                missing,
                "Partitions of this broker that are not served: in recovery, or their disk failed.",
            ),
        ):
            yield gauge(name, text, (), [((), value)])
        purgatories = (
            self._replicas.delayed_produce,
            self._replicas.delayed_delete_records,
            self._replicas.delayed_fetch,
            self._replicas.delayed_cold_fetch,
            self._replicas.delayed_remote_fetch,
        )
        yield gauge(
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            "Delayed operations waiting in the purgatory.",
            ("delayedOperation",),
            [((p.name,), p.parked) for p in purgatories],
        )
        cold = self._replicas.cold_reads
        yield gauge(
            "varve_cold_reads",
            "Reads of uncached data that wait for a thread of their log directory, or run.",
            ("state",),
            [(("waiting",), cold.waiting), (("running",), cold.running)],
        )
        yield counter(
            "varve_cold_reads_done",
            "Reads of uncached data that have ended.",
            (),
            [((), cold.done)],
        )
        yield counter(
            "varve_cold_reads_refused",
            "Reads of uncached data refused because too many wait; their requests are "
            "answered when they expire.",
            (),
            [((), cold.refused)],
        )
        yield counter(
            "kafka_server_delayedoperationpurgatory_expires",
            "Delayed operations that expired.",
            ("delayedOperation",),
            [((p.name,), p.expired) for p in purgatories],
        )
        yield counter(
            "varve_polls_held_back",
            "Fetch requests answered early because the purgatory is full.",
            ("delayedOperation",),
            [((p.name,), p.held_back_total) for p in purgatories],
        )
        yield counter(
            "varve_waking_turns",
            "Event loop iterations that left delayed operations to the next iteration.",
            (),
            [((), self._replicas.waker.turns)],
        )
        yield gauge(
            "kafka_server_fetchsessioncache_numincrementalfetchsessions",
            "Incremental fetch sessions.",
            (),
            [((), len(self._sessions))],
        )
        yield gauge(
            "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
            "Partitions over all incremental fetch sessions.",
            (),
            [((), self._sessions.partition_count)],
        )
        yield counter(
            "kafka_server_fetchsessioncache_incrementalfetchsessionevictions",
            "Fetch sessions evicted for others.",
            (),
            [((), self._sessions.evicted)],
        )
        manager = self._log_manager
        yield gauge(
            "kafka_log_logmanager_offlinelogdirectorycount",
            "Log directories that are offline.",
            (),
            [((), len(manager.offline_directories))],
        )
        yield gauge(
            "varve_recovery_partitions",
            "Partitions found at the start, and those whose logs are loaded.",
            ("state",),
            [
                (("total",), manager.progress.partitions_total),
                (("done",), manager.progress.partitions_done),
            ],
        )
        yield gauge(
            "varve_recovery_bytes",
            "Bytes of log to recover after an unclean shutdown, and those recovered.",
            ("state",),
            [
                (("total",), manager.progress.bytes_total),
                (("done",), manager.progress.bytes_done),
            ],
        )
