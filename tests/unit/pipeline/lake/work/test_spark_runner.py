"""What an attempt at a task on Spark gives back; Spark itself is in `tests/spark`."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.lake.errors import LakeError, TableUnavailableError
from pipeline.lake.files.data_file import FileNames
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.work.spark_runner import _reason, attempt
from pipeline.lake.work.task import TableTarget, Task, TaskResult, TaskSpec
from pipeline.plan.piece import BrokerPiece, PartitionName, Piece
from pipeline.read.read_errors import LostOffsetsError
from tests.fakes.lake.jobs import SPEC
from tests.fakes.lake.numbers_log import TOPIC_ID, read_rows
from tests.fakes.lake.tables import OpenDirectory

NAMES = FileNames("", "orders", TOPIC_ID, 0, 0, 20, "0a1b2c3d")
PARTITION = PartitionName("orders", TOPIC_ID, 0)
TASK = Task(NAMES, NAMES, (BrokerPiece(PARTITION, -1, 0, 20),))


def spec(root: Path) -> TaskSpec:
    return TaskSpec(TableTarget(OpenDirectory(str(root)), "", WriterOptions()), None, SPEC)


def failing(error: Exception) -> Iterator[pa.RecordBatch]:
    yield from read_rows(TASK.pieces[0])
    raise error


def test_what_repeating_does_not_mend_is_a_result(tmp_path: Path) -> None:
    """Spark would run it four times, and then tell a page of Java."""
    found = pickle.loads(attempt(TASK, spec(tmp_path), read_rows))
    assert isinstance(found, LakeError)
    assert "orders-0 at offset 3" in str(found)

    def lost(_: Piece) -> Iterator[pa.RecordBatch]:
        return failing(LostOffsetsError(PARTITION, 3, 5, "gone"))

    assert isinstance(pickle.loads(attempt(TASK, spec(tmp_path), lost)), Exception)


def test_what_another_attempt_may_mend_is_raised(tmp_path: Path) -> None:
    def away(_: Piece) -> Iterator[pa.RecordBatch]:
        return failing(TableUnavailableError("away"))

    with pytest.raises(TableUnavailableError):
        attempt(TASK, spec(tmp_path), away)


def test_a_task_that_is_done_tells_its_files(tmp_path: Path) -> None:
    good = TASK._replace(pieces=(BrokerPiece(PARTITION, -1, 0, 3),))
    found = pickle.loads(attempt(good, spec(tmp_path), read_rows))
    assert isinstance(found, TaskResult)
    assert found.rows == 3


def test_of_sparks_pages_the_line_that_counts_is_told() -> None:
    text = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times
  File "worker.py", line 3, in main
pipeline.lake.errors.TableUnavailableError: s3://b/t: away
    at org.apache.spark.api.python"""
    assert _reason(text) == (
        "Spark gave up on a task: pipeline.lake.errors.TableUnavailableError: s3://b/t: away"
    )
    assert _reason("") == "Spark gave up on a task: no reason is given"
