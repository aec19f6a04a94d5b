"""Metrics of remote storage: Kafka's names (KIP-405, KIP-963), and what Kafka has no name for.

Before the first topic has needed remote storage only the totals are there, as zeros.

Source: Kafka, RemoteStorageMetrics.java, BrokerTopicMetrics.java; docs/ops.html, Tiered Storage
Monitoring.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge, histogram
from tiered.object_store.statistics import LATENCY_BOUNDS_MS

if TYPE_CHECKING:
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.lookups import Lookups
    from broker.replicas.replica_manager import ReplicaManager
    from tiered.fetch.reader import Reader
    from tiered.tasks.history_keeper import HistoryKeeper
    from tiered.tasks.partition_gauges import PartitionGauges
    from tiered.tasks.remote_log_manager import RemoteLogManager

TOPIC = ("topic",)

FETCHES = (
    ("remotefetchbytes", "bytes", "Bytes read from remote segments for clients."),
    ("remotefetchrequests", "requests", "Reads of remote segments."),
    ("remotefetcherrors", "errors", "Reads of remote segments that failed."),
)

TASKS = (
    ("remotecopybytes", "copy_bytes", "Bytes of segments copied to remote storage."),
    ("remotecopyrequests", "copy_requests", "Copies of segments to remote storage begun."),
    ("remotecopyerrors", "copy_errors", "Copies of segments to remote storage that failed."),
    ("remotedeleterequests", "delete_requests", "Removals of remote segments begun."),
    ("remotedeleteerrors", "delete_errors", "Removals of remote segments that failed."),
    ("buildremotelogauxstaterequests", "build_aux_requests", "Followers built from remote state."),
    (
        "buildremotelogauxstateerrors",
        "build_aux_errors",
        "Followers that could not be built from remote state.",
    ),
)

LAGS = (
    ("remotecopylagbytes", "copy_lag_bytes", "Bytes closed and not yet copied."),
    ("remotecopylagsegments", "copy_lag_segments", "Segments closed and not yet copied."),
    ("remotedeletelagbytes", "delete_lag_bytes", "Bytes expired and not yet removed."),
    ("remotedeletelagsegments", "delete_lag_segments", "Segments expired and not yet removed."),
    ("remotelogmetadatacount", "metadata_count", "Segments that metadata knows."),
    ("remotelogsizebytes", "remote_bytes", "Bytes in remote storage."),
    (
        "remotelogsizecomputationtime",
        "size_computation_ms",
        "Milliseconds it took to compute RemoteLogSizeBytes.",
    ),
)

UNUSUAL = (
    ("corrupt_segments", "Local segments that were refused a copy, as their bytes are wrong."),
    ("rebuilt_indexes", "Local indexes made again before a copy."),
    (
        "adopted_segments",
        "Copies found complete whose COPY_SEGMENT_FINISHED had not been published.",
    ),
    ("lost_segments", "Copies that were found incomplete, of offsets that are nowhere else."),
)


class RemoteMetrics:
    """See the module."""

    def __init__(
        self, remote: "RemoteStorage", replicas: "ReplicaManager", lookups: "Lookups"
    ) -> None:
        self._remote = remote
        self._replicas = replicas
        self._lookups = lookups

    async def collect(self) -> AsyncIterator[Metric]:
        """Families of this part."""
        waiting = self._replicas.delayed_remote_fetch
        yield counter(
            "kafka_server_delayedremotefetchmetrics_expires",
            "Remote fetches that expired.",
            (),
            [((), waiting.expired)],
        )
        yield counter(
            "kafka_server_delayedremotelistoffsetsmetrics_expires",
            "Remote ListOffsets requests that expired.",
            (),
            [((), self._lookups.expired)],
        )
        remote = self._remote
        if remote.manager is None or remote.reader is None or remote.tier is None:
            return
        for family in (
            *_of_topics(remote.manager, remote.reader),
            *_of_reader(remote.reader),
            *_of_manager(remote.manager),
            *_of_tier(remote.tier.statistics()),
        ):
            yield family
        if remote.metadata is not None:
            stats = remote.metadata.stats
            for name, value, text in (
                ("events_read", stats.events_read, "Events read."),
                (
                    "events_refused",
                    stats.events_refused + stats.events_undecodable,
                    "Events passed over: not allowed in the segment's state, or not readable.",
                ),
                ("tell_failures", stats.publish_failures, "Events not written, or not read back."),
                ("gaps", stats.gaps, "Times events were lost before they were read."),
                ("read_failures", stats.read_failures, "Reads interrupted, and tried again."),
                ("snapshots_written", stats.snapshots_written, "Snapshots written."),
                ("snapshot_failures", stats.snapshot_failures, "Snapshots that failed."),
                (
                    "snapshots_ignored",
                    stats.snapshots_ignored,
                    "Snapshots passed over: damaged, of another topic, or ahead of its end.",
                ),
            ):
                yield counter(
                    f"varve_remote_metadata_{name}",
                    f"__remote_log_metadata: {text}",
                    (),
                    [((), value)],
                )


def _of_topics(manager: "RemoteLogManager", reader: "Reader") -> Iterator[Metric]:
    reads = list(reader.topics.items())
    for name, attribute, text in FETCHES:
        yield counter(
            f"kafka_server_brokertopicmetrics_{name}",
            text,
            TOPIC,
            [((topic,), getattr(row, attribute)) for topic, row in reads],
        )
    rows = list(manager.counters.topics.items())
    for name, attribute, text in TASKS:
        yield counter(
            f"kafka_server_brokertopicmetrics_{name}",
            text,
            TOPIC,
            [((topic,), getattr(row, attribute)) for topic, row in rows],
        )
    for attribute, text in UNUSUAL:
        yield counter(
            f"varve_remote_{attribute}",
            text,
            TOPIC,
            [((topic,), getattr(row, attribute)) for topic, row in rows],
        )
    by_topic: dict[str, list[PartitionGauges]] = {}
    for one in manager.gauges():
        by_topic.setdefault(one.partition.topic, []).append(one)
    for name, attribute, text in LAGS:
        yield gauge(
            f"kafka_server_brokertopicmetrics_{name}",
            text,
            TOPIC,
            [
                ((topic,), sum(getattr(one, attribute) for one in gauges))
                for topic, gauges in by_topic.items()
            ],
        )
    yield gauge(
        "varve_remote_blocked_partitions",
        "Partitions whose copying to remote storage is blocked, by a segment that "
        "must not be copied or after failures.",
        TOPIC,
        [
            ((topic,), sum(one.is_blocked or one.stopped_copying for one in gauges))
            for topic, gauges in by_topic.items()
        ],
    )
    yield gauge(
        "varve_remote_unreferenced_segments",
        "Remote segments of another lineage that are kept until retention reaches them.",
        TOPIC,
        [
            ((topic,), sum(one.unreferenced_segments for one in gauges))
            for topic, gauges in by_topic.items()
        ],
    )


def _of_reader(reader: "Reader") -> Iterator[Metric]:
    queue, quota, chunks, indexes = reader.queue, reader.quota, reader.chunks, reader.indexes
    yield gauge(
        "kafka_log_remote_remotestoragethreadpool_remotelogreadertaskqueuesize",
        "Downloads from remote storage that wait for a remote log reader.",
        (),
        [((), queue.waiting)],
    )
    yield gauge(
        "kafka_log_remote_remotestoragethreadpool_remotelogreaderavgidlepercent",
        "Share of the remote log readers that are idle, 0 to 1.",
        (),
        [((), queue.idle_ratio())],
    )
    yield from _throttle("fetch", quota.throttled, quota.throttle_ms_total)
    yield counter(
        "varve_remote_client_throttled",
        "Reads answered empty because of a client's quota.",
        (),
        [((), quota.client_throttled)],
    )
    yield counter(
        "varve_remote_reader_rejected",
        "Downloads refused because too many waited (remote.log.reader.max.pending.tasks).",
        (),
        [((), queue.rejected)],
    )
    yield counter(
        "varve_remote_reads_behind_gaps",
        "Reads that continued behind a gap: offsets that neither remote storage nor "
        "the local log has.",
        (),
        [((), reader.gaps_passed)],
    )
    yield gauge(
        "varve_remote_reads_pending", "Remote reads that wait.", (), [((), len(reader.pending))]
    )
    caches = (("chunk", chunks), ("index", indexes))
    yield gauge(
        "varve_remote_cache_bytes",
        "Bytes of files in the cache.",
        ("cache",),
        [((name,), cache.bytes) for name, cache in caches],
    )
    yield gauge(
        "varve_remote_cache_limit_bytes",
        "Most bytes the cache may hold.",
        ("cache",),
        [((name,), cache.limit_bytes) for name, cache in caches],
    )
    yield gauge(
        "varve_remote_cache_entries",
        "Chunks, and sets of indexes, in the cache.",
        ("cache",),
        [((name,), len(cache)) for name, cache in caches],
    )
    for what, text in (
        ("hits", "Look-ups in the cache that found the entry."),
        ("misses", "Look-ups in the cache that had to fetch the entry."),
        ("evicted", "Entries that gave way to others."),
        ("damaged", "Files dropped because their checksum was wrong."),
    ):
        yield counter(
            f"varve_remote_cache_{what}",
            text,
            ("cache",),
            [((name,), getattr(cache, what)) for name, cache in caches],
        )
    yield counter(
        "varve_remote_cache_fetches",
        "Fetches from remote storage into the cache.",
        ("cache",),
        [(("chunk",), chunks.downloads), (("index",), indexes.fetched)],
    )
    yield counter(
        "varve_remote_prefetched_bytes",
        "Bytes fetched ahead of a reader, and what became of them.",
        ("outcome",),
        [
            (("fetched",), chunks.prefetched_bytes),
            (("used",), chunks.prefetch_used_bytes),
            (("unused",), chunks.prefetch_unused_bytes),
        ],
    )
    yield counter(
        "varve_remote_fetch_wasted_bytes",
        "Bytes downloaded but never read: the client left, or they were evicted first.",
        (),
        [((), chunks.wasted_bytes)],
    )


def _throttle(what: str, count: int, total_ms: float) -> Iterator[Metric]:
    yield gauge(
        f"kafka_server_remotelogmanager_remote_{what}_throttle_time_avg",
        "Average throttle time in milliseconds.",
        (),
        [((), total_ms / count if count else 0.0)],
    )
    yield counter(
        f"varve_remote_{what}_throttled", "How often the quota was exceeded.", (), [((), count)]
    )


def _of_history(history: "HistoryKeeper") -> Iterator[Metric]:
    yield gauge(
        "varve_remote_history_partitions",
        "Partitions led by this broker whose varve-history object it writes.",
        (),
        [((), history.kept)],
    )
    yield gauge(
        "varve_remote_history_partitions_behind",
        "Partitions whose varve-history object is out of date: readers of the bucket "
        "see less than there is, or records that DeleteRecords has removed.",
        (),
        [((), history.behind)],
    )
    yield gauge(
        "varve_remote_history_oldest_behind_seconds",
        "Age of the oldest overdue varve-history update; a few "
        "tier.history.interval.ms are normal.",
        (),
        [((), history.oldest_behind_ms / 1000)],
    )
    yield counter(
        "varve_remote_history_writes", "varve-history objects written.", (), [((), history.writes)]
    )
    yield counter(
        "varve_remote_history_bytes",
        "Bytes of varve-history objects written.",
        (),
        [((), history.written_bytes)],
    )
    yield counter(
        "varve_remote_history_failures",
        "Failed writes of varve-history objects; each is retried. Remote segments "
        "are not deleted meanwhile.",
        (),
        [((), history.failures)],
    )
    yield counter(
        "varve_remote_history_late_answers",
        "DeleteRecords requests answered before varve-history was updated.",
        (),
        [((), history.late_answers)],
    )


def _of_manager(manager: "RemoteLogManager") -> Iterator[Metric]:
    history = manager.history
    pools = (
        manager.copier_pool,
        manager.expiration_pool,
        manager.follower_pool,
        history.pool,
        history.urgent_pool,
    )
    yield gauge(
        "kafka_log_remote_remotelogmanager_remotelogmanagertasksavgidlepercent",
        "Share of the copier threads that are idle, 0 to 1.",
        (),
        [((), manager.copier_pool.idle_ratio)],
    )
    yield gauge(
        "varve_remote_pool_idle",
        "Share of a pool's threads that are idle, 0 to 1.",
        ("pool",),
        [((pool.name,), pool.idle_ratio) for pool in pools],
    )
    yield gauge(
        "varve_remote_pool_queued",
        "Tasks that wait in a pool's queue.",
        ("pool",),
        [((pool.name,), pool.queued) for pool in pools],
    )
    quota = manager.copy_quota
    yield from _throttle("copy", quota.throttled, quota.throttle_ms_total)
    yield gauge(
        "kafka_server_remotelogmanager_remote_copy_throttle_time_max",
        "Longest throttle time of copies, in milliseconds.",
        (),
        [((), quota.throttle_ms_max)],
    )
    yield gauge(
        "varve_remote_partitions",
        "Partitions with remote storage.",
        ("state",),
        [((state.name,), count) for state, count in manager.partition_states().items()],
    )
    yield gauge(
        "varve_remote_copies_stalled",
        "Copies without progress for tier.stalled.copy.ms.",
        (),
        [((), manager.stalled_copies)],
    )
    yield counter(
        "varve_remote_copy_stalls", "Copies that have stalled.", (), [((), manager.stalls)]
    )
    yield gauge(
        "varve_remote_doubtful_removals",
        "Deletions of remote segments that were started and are not finished.",
        (),
        [((), manager.doubtful_removals)],
    )
    yield from _of_history(history)
    scrubber, verifier = manager.scrubber, manager.verifier
    missing = scrubber.last.missing_segments if scrubber.last is not None else 0
    yield gauge(
        "varve_remote_missing_segments",
        "Segments that are missing from the bucket, by its last listing.",
        (),
        [((), missing)],
    )
    unknown = scrubber.last.unknown_copies if scrubber.last is not None else 0
    yield gauge(
        "varve_remote_unknown_copies",
        "Complete segments in the bucket that __remote_log_metadata does not know: "
        "it has lost events.",
        (),
        [((), unknown)],
    )
    yield gauge(
        "varve_remote_held_back_partitions",
        "Partitions whose metadata is lost: their remote offsets are not served.",
        (),
        [((), len(manager.held_back))],
    )
    for name, value, text in (
        ("gc_runs", scrubber.runs, "Passes of garbage collection over the bucket."),
        (
            "gc_removed_objects",
            scrubber.removed_objects,
            "Orphaned objects removed by garbage collection.",
        ),
        (
            "gc_removed_bytes",
            scrubber.removed_bytes,
            "Bytes of orphaned objects removed by garbage collection.",
        ),
        (
            "gc_aborted_uploads",
            scrubber.aborted_uploads,
            "Unfinished uploads ended by garbage collection.",
        ),
        (
            "verified_segments",
            verifier.verified_segments,
            "Remote segments read again and compared.",
        ),
        (
            "verified_bytes",
            verifier.verified_bytes,
            "Bytes of remote segments read again and compared.",
        ),
        (
            "verify_faults",
            verifier.faulty_segments,
            "Remote segments that verification found damaged.",
        ),
    ):
        yield counter(f"varve_remote_{name}", text, (), [((), value)])


def _of_tier(statistics: Mapping[str, Any]) -> Iterator[Metric]:
    worker = statistics.get("worker", {})
    for name, text in (
        ("starts", "Starts of the tier process."),
        ("losses", "Times the tier process was lost: killed, or without an answer."),
        ("calls_refused", "Calls to the tier process refused because too many waited."),
    ):
        yield counter(f"varve_tier_{name}", text, (), [((), worker.get(name) or 0)])
    for name, text in (
        ("calls_in_flight", "Calls the tier process is working on."),
        ("calls_waiting", "Calls that wait for a place in the tier process."),
        ("resident_bytes", "Memory of the tier process."),
        ("cpu_seconds", "CPU time of the tier process that runs now."),
    ):
        yield gauge(f"varve_tier_{name}", text, (), [((), worker.get(name) or 0)])
    calls: Mapping[str, Any] = statistics.get("store", {}).get("calls", {})
    for field, text in (
        ("calls", "Calls to the object store."),
        ("bytes", "Bytes of payload moved by calls to the object store."),
        ("retries", "Repeated attempts of calls to the object store."),
    ):
        yield counter(
            f"varve_tier_store_{field}",
            text,
            ("call",),
            [((call,), row[field]) for call, row in calls.items()],
        )
    yield counter(
        "varve_tier_store_errors",
        "Calls to the object store that failed.",
        ("call", "kind"),
        [
            ((call, kind), count)
            for call, row in calls.items()
            for kind, count in row["errors"].items()
        ],
    )
    yield histogram(
        "varve_tier_store_seconds",
        "How long calls to the object store took, retries included.",
        ("call",),
        [bound / 1000 for bound in LATENCY_BOUNDS_MS],
        [((call,), row["latency_counts"], row["seconds"]) for call, row in calls.items()],
    )
