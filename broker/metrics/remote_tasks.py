"""Metrics of copies, removals, histories, garbage collection and verification."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge
from broker.metrics.remote_reads import throttle

if TYPE_CHECKING:
    from tiered.tasks.history_keeper import HistoryKeeper
    from tiered.tasks.remote_log_manager import RemoteLogManager


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


def of_manager(manager: "RemoteLogManager") -> Iterator[Metric]:
    """Families of the tasks of partitions, and of the work on the bucket."""
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
    yield from throttle("copy", quota.throttled, quota.throttle_ms_total)
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
