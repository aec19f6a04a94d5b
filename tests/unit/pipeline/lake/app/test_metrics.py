"""What Prometheus sees of a job."""

import urllib.request
from uuid import UUID

from bench.s3_server import free_port
from pipeline.lake.app.metrics import JobMetrics
from pipeline.lake.batch.batch_plan import Span
from pipeline.lake.batch.log_view import PartitionView, TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.job.job import Batch

TOPIC = TopicView("orders", UUID(int=1), {3: PartitionView(0, 50, (Span(0, 50, 500, 9),), 9)})
PROGRESS = Progress("job", "orders", UUID(int=1), 2, {3: 40})


def test_lag_and_sums_have_their_names() -> None:
    metrics = JobMetrics("job")
    metrics.behind(TOPIC, PROGRESS)
    metrics.committed(Batch(PROGRESS, 30, 2, 1, 4000, 1500.0, 120.0))
    metrics.committed(Batch(PROGRESS, 10, 0, 1, 1000, 1500.0, 120.0))
    metrics.failed()
    parted = {"job": "job", "topic": "orders", "partition": "3"}
    value = metrics.registry.get_sample_value
    assert value("varve_pipeline_lag_records", parted) == 10
    assert value("varve_pipeline_lag_bytes", parted) == 100
    assert value("varve_pipeline_offset", parted) == 40
    of_job = {"job": "job"}
    assert value("varve_pipeline_rows_total", of_job) == 40
    assert value("varve_pipeline_quarantined_total", of_job) == 2
    assert value("varve_pipeline_files_total", of_job) == 2
    assert value("varve_pipeline_read_bytes_total", of_job) == 5000
    assert value("varve_pipeline_batches_total", of_job) == 2
    assert value("varve_pipeline_failures_total", of_job) == 1
    assert value("varve_pipeline_commit_seconds_sum", of_job) == 0.24
    assert value("varve_pipeline_work_seconds_count", of_job) == 2


def test_a_port_answers_until_it_is_ended() -> None:
    metrics = JobMetrics("job")
    port = free_port()
    end = metrics.serve("127.0.0.1", port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b"varve_pipeline_rows_total" in answer.read()
    end()
    end = metrics.serve("127.0.0.1", port)
    end()
