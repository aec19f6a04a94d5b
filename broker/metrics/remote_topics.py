"""Metrics of remote storage by topic."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from broker.metrics.families import counter, gauge

if TYPE_CHECKING:
    from tiered.fetch.reader import Reader
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


def of_topics(manager: "RemoteLogManager", reader: "Reader") -> Iterator[Metric]:
    """Families with the label `topic`; walks over the segments of each led partition."""
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
