"""Prometheus metrics of a lake job, under `varve_pipeline_`."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from pipeline.lake.app.lag import partition_lag
from pipeline.lake.batch.log_view import TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.job.job import Batch
from pipeline.lake.maintain.shape import TableShape

COMMIT_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
WORK_BUCKETS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)


class JobMetrics:
    """Metrics of one job, in a registry of its own."""

    def __init__(self, job: str) -> None:
        self.registry = CollectorRegistry()
        labels = ("job",)
        by_partition = ("job", "topic", "partition")

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"varve_pipeline_{name}", text, by_partition, registry=self.registry)

        def counter(name: str, text: str) -> Counter:
            return Counter(f"varve_pipeline_{name}", text, labels, registry=self.registry)

        self._job = job
        self._lag_records = gauge(
            "lag_records", "Records (offsets) of the log that the table lacks."
        )
        self._lag_bytes = gauge(
            "lag_bytes", "Bytes of the records that the table lacks, estimated from segment sizes."
        )
        self._lag_seconds = gauge(
            "lag_seconds", "Seconds from the table's newest record to the log's."
        )
        self._offset = gauge("offset", "Next offset of the table.")
        self._rows = counter("rows_total", "Rows committed.").labels(job)
        self._quarantined = counter(
            "quarantined_total", "Records committed to the quarantine."
        ).labels(job)
        self._upserted = counter("upserted_total", "Rows upserted, for keyed tables.").labels(job)
        self._deleted = counter("deleted_total", "Rows deleted, for keyed tables.").labels(job)
        self._files = counter("files_total", "Files committed.").labels(job)
        self._bytes = counter("read_bytes_total", "Bytes of keys and values read.").labels(job)
        self._batches = counter("batches_total", "Batches committed.").labels(job)
        self._failures = counter("failures_total", "Attempts that failed.").labels(job)
        self._work = Histogram(
            "varve_pipeline_work_seconds",
            "Seconds from planning a batch to its commit.",
            labels,
            registry=self.registry,
            buckets=WORK_BUCKETS,
        ).labels(job)
        self._commit = Histogram(
            "varve_pipeline_commit_seconds",
            "Seconds that the commits of a batch take.",
            labels,
            registry=self.registry,
            buckets=COMMIT_BUCKETS,
        ).labels(job)

        def of_table(name: str, text: str) -> Gauge:
            return Gauge(
                f"varve_pipeline_table_{name}", text, labels, registry=self.registry
            ).labels(job)

        self._table_files = of_table("files", "Files of the table.")
        self._table_small = of_table(
            "small_files", "Small files of the table, which `varve pipeline maintain` compacts."
        )
        self._table_bytes = of_table("bytes", "Bytes of the table's files.")
        self._table_states = of_table(
            "states", "Versions, snapshots or commits of the table that can be read."
        )

    def shaped(self, shape: TableShape) -> None:
        """Set the metrics of the table's shape."""
        self._table_files.set(shape.files)
        self._table_small.set(shape.small_files)
        self._table_bytes.set(shape.size)
        self._table_states.set(shape.states)

    def behind(self, topic: TopicView, progress: Progress | None) -> None:
        """Set the metrics of the table's lag."""
        offsets = {} if progress is None else progress.offsets
        for number, partition in topic.partitions.items():
            labels = (self._job, topic.topic, str(number))
            lag = partition_lag(partition, offsets.get(number))
            self._lag_records.labels(*labels).set(lag.records)
            self._lag_bytes.labels(*labels).set(lag.size)
            self._lag_seconds.labels(*labels).set(lag.time_ms / 1000)
            self._offset.labels(*labels).set(offsets.get(number, 0))

    def committed(self, batch: Batch) -> None:
        """A batch is in the table."""
        self._rows.inc(batch.rows)
        self._quarantined.inc(batch.quarantined)
        self._upserted.inc(batch.upserted)
        self._deleted.inc(batch.deleted)
        self._files.inc(batch.files)
        self._bytes.inc(batch.read_bytes)
        self._batches.inc()
        self._work.observe(batch.work_ms / 1000)
        self._commit.observe(batch.commit_ms / 1000)

    def failed(self) -> None:
        """An attempt at a batch came to nothing."""
        self._failures.inc()

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Answer Prometheus; returns what ends it."""
        server, thread = start_http_server(port, host, self.registry)

        def end() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return end
