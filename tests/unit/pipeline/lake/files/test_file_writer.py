"""Rows into Parquet files: the same bytes for the same rows, and nothing half written."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.lake.files import file_writer
from pipeline.lake.files.data_file import DataFile, FileNames
from pipeline.lake.files.file_writer import FileWriter, WriterOptions, row_width
from pipeline.lake.settings.config import parse_partition_field
from tests.fakes.lake.tables import open_directory

NAMES = FileNames("", "orders", UUID(int=7), 0, 0, 1000, "0a1b2c3d")
HOUR_US = 3_600_000_000


def rows(first: int, last: int, text: str = "x" * 50) -> pa.RecordBatch:
    offsets = range(first, last)
    return pa.record_batch(
        {
            "topic": ["orders"] * len(offsets),
            "partition": pa.array([0] * len(offsets), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array([o * HOUR_US for o in offsets], pa.timestamp("us", "UTC")),
            "value": [f"{text}{o * 7919 % 10_007}" for o in offsets],
        }
    )


def write(
    path: Path, batches: Sequence[pa.RecordBatch], options: WriterOptions
) -> tuple[DataFile, ...]:
    writer = FileWriter(open_directory(str(path)), NAMES, options)
    for batch in batches:
        writer.write(batch, 60 * batch.num_rows)
    return writer.finish()


def test_a_task_is_one_file_with_all_rows(tmp_path: Path) -> None:
    (file,) = write(tmp_path, [rows(0, 10), rows(12, 20)], WriterOptions())
    table = pq.read_table(tmp_path / file.key)
    assert table.column("offset").to_pylist() == [*range(10), *range(12, 20)]
    assert (file.rows, file.first_offset, file.last_offset) == (18, 0, 19)
    assert (file.min_timestamp_us, file.max_timestamp_us) == (0, 19 * HOUR_US)
    assert file.size == (tmp_path / file.key).stat().st_size
    codec = pq.ParquetFile(tmp_path / file.key).metadata.row_group(0).column(0).compression
    assert codec == "ZSTD"


def test_a_file_ends_when_it_has_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "BUFFERED_BYTES", 3000)
    batches = [rows(n * 50, n * 50 + 50) for n in range(20)]
    files = write(tmp_path, batches, WriterOptions(target_file_bytes=4000))
    assert len(files) > 3
    assert [file.key[-11:-8] for file in files] == [f"{n:03d}" for n in range(len(files))]
    assert all(4000 <= file.size < 12_000 for file in files[:-1])
    assert sum(file.rows for file in files) == 1000


def test_what_is_repeated_has_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a plan may be written again while somebody reads it."""
    monkeypatch.setattr(file_writer, "BUFFERED_BYTES", 3000)
    options = WriterOptions((parse_partition_field("day(timestamp)"),), True, 4000)
    batches = [rows(n * 50, n * 50 + 50) for n in range(20)]
    first = write(tmp_path / "a", batches, options)
    second = write(tmp_path / "b", batches, options)
    assert first == second
    for file in first:
        assert (tmp_path / "a" / file.key).read_bytes() == (tmp_path / "b" / file.key).read_bytes()


@pytest.mark.parametrize("kept", [True, False])
def test_each_value_has_its_folder(tmp_path: Path, kept: bool) -> None:
    """A column that the table is partitioned by is left out where the folder stands for it."""
    fields = (parse_partition_field("day(timestamp)"), parse_partition_field("partition"))
    files = write(tmp_path, [rows(0, 30)], WriterOptions(fields, kept))
    assert [file.values for file in files] == [
        (("timestamp_day", "1970-01-01"), ("partition", "0")),
        (("timestamp_day", "1970-01-02"), ("partition", "0")),
    ]
    assert files[0].key.startswith("timestamp_day=1970-01-01/partition=0/part-orders-")
    columns = pq.ParquetFile(tmp_path / files[0].key).schema_arrow.names
    assert ("partition" in columns) == kept
    assert "timestamp_day" not in columns


def test_few_files_are_open_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backfill over years must not hold a file per day."""
    monkeypatch.setattr(file_writer, "OPEN_FILES_MAX", 3)
    monkeypatch.setattr(file_writer, "BUFFERED_BYTES", 100)
    options = WriterOptions((parse_partition_field("day(timestamp)"),))
    files = write(tmp_path, [rows(n * 20, n * 20 + 20) for n in range(20)], options)
    assert sum(file.rows for file in files) == 400
    assert len({file.key for file in files}) == len(files)


def test_other_columns_begin_another_file(tmp_path: Path) -> None:
    """A file has one schema; columns may be added in the middle of a task."""
    more = rows(10, 20).append_column("extra", pa.array([1] * 10))
    files = write(tmp_path, [rows(0, 10), more], WriterOptions())
    assert [file.rows for file in files] == [10, 10]


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "BUFFERED_BYTES", 100)
    writer = FileWriter(open_directory(str(tmp_path)), NAMES, WriterOptions())
    writer.write(rows(0, 10), 600)
    assert len(list(tmp_path.iterdir())) == 1
    writer.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_row_has_a_width_whatever_its_texts_are() -> None:
    schema = pa.schema(
        [("a", pa.int64()), ("b", pa.string()), ("c", pa.struct([("d", pa.int32())]))]
    )
    assert row_width(schema) == 8 + 8 + 4
