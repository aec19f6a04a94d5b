"""Metrics of reads of remote segments, and of the caches they fill."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from tiered.fetch.reader import Reader


def of_reader(reader: "Reader") -> Iterator[Metric]:
    """Families of the reader, its quota, its caches and what it reads ahead."""
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
    yield from throttle("fetch", quota.throttled, quota.throttle_ms_total)
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


def throttle(what: str, count: int, total_ms: float) -> Iterator[Metric]:
    """Of the quota of reads (`fetch`) or copies (`copy`): how often, and how long in all."""
    yield gauge(
        f"kafka_server_remotelogmanager_remote_{what}_throttle_time_avg",
        "Average throttle time in milliseconds.",
        (),
        [((), total_ms / count if count else 0.0)],
    )
    yield counter(
        f"varve_remote_{what}_throttled", "How often the quota was exceeded.", (), [((), count)]
    )
