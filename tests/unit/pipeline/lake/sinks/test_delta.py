"""Delta tables: where offsets are, and what outlives the cleaning of the log."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError, TableUnavailableError
from pipeline.lake.files.data_file import DataFile, range_of
from pipeline.lake.settings.config import StoreConfig, parse_partition_field
from pipeline.lake.sinks.delta import DeltaSink, partition_column
from pipeline.lake.sinks.delta_store import storage_options
from tests.fakes.lake.jobs import lake_job
from tests.fakes.lake.numbers_log import FakeLog
from tests.fakes.lake.tables import open_directory, open_sink

TOPIC_ID = UUID(int=7)
BEGUN = Progress("orders-lake", "orders", TOPIC_ID, 0, {})
SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64())])


def test_offsets_outlive_the_log_that_committed_them(tmp_path: Path) -> None:
    """A commit's metadata is gone with its log file; transactions are in every checkpoint."""
    from deltalake import DeltaTable

    sink = open_sink("delta", tmp_path)
    sink.create(SCHEMA, BEGUN)
    after = BEGUN.advanced({0: 0, 5: 120})
    sink.commit(sink.view(), SCHEMA, (), after)
    table = DeltaTable(str(tmp_path / "orders"))
    table.create_checkpoint()
    for old in (tmp_path / "orders" / "_delta_log").glob("*.json"):
        old.unlink()
    assert open_sink("delta", tmp_path).view().progress == after


def test_a_table_that_nobody_keeps_is_taken_on(tmp_path: Path) -> None:
    """Its rows stay; its columns must be what the job writes, or are added."""
    from deltalake import write_deltalake

    rows = pa.table({"partition": pa.array([9], pa.int32()), "offset": [1]})
    write_deltalake(str(tmp_path / "orders"), rows)
    sink = open_sink("delta", tmp_path)
    assert sink.view().progress is None
    sink.create(SCHEMA, BEGUN)
    assert sink.view().progress == BEGUN


def test_other_partition_columns_are_refused(tmp_path: Path) -> None:
    sink = open_sink("delta", tmp_path)
    sink.create(SCHEMA, BEGUN)
    other = open_sink("delta", tmp_path, partition_by=["partition"])
    with pytest.raises(ForeignTableError, match="is partitioned by"):
        other.commit(other.view(), SCHEMA, (), BEGUN.advanced({0: 1}))


def test_a_log_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    sink = open_sink("delta", tmp_path)
    sink.create(SCHEMA, BEGUN)
    (tmp_path / "orders" / "_delta_log" / f"{0:020d}.json").write_text("{no json")
    with pytest.raises(TableUnavailableError):
        open_sink("delta", tmp_path).view()


def test_a_time_has_a_column_of_its_own() -> None:
    assert partition_column(parse_partition_field("partition")) is None
    assert partition_column(parse_partition_field("day(timestamp)")) == pa.field(
        "timestamp_day", pa.date32()
    )
    assert partition_column(parse_partition_field("hour(timestamp)")) == pa.field(
        "timestamp_hour", pa.string()
    )


def test_a_store_is_reached_as_the_settings_say(tmp_path: Path) -> None:
    options = StoreConfig.model_validate(
        {
            "endpoint": "http://localhost:9000",
            "path_style": True,
            "access_key_id": "a",
            "secret_access_key": "b",
        }
    )
    assert storage_options("file:///x", options) == {}
    found = storage_options("s3://b/t", options)
    assert found["AWS_ENDPOINT_URL"] == "http://localhost:9000"
    assert found["AWS_ALLOW_HTTP"] == "true"
    assert (found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"]) == ("a", "b")
    credentials = tmp_path / "credentials"
    credentials.write_text("[lake]\naws_access_key_id = c\naws_secret_access_key = d\n")
    file = StoreConfig(credentials_file=str(credentials), profile="lake")
    assert storage_options("s3://b/t", file)["AWS_SECRET_ACCESS_KEY"] == "d"


def test_secrets_are_in_no_text_of_a_sink(tmp_path: Path) -> None:
    sink = DeltaSink(
        open_directory(str(tmp_path)), "job", (), lambda: {"AWS_SECRET_ACCESS_KEY": "hush"}
    )
    assert "hush" not in repr(sink)
    assert "hush" not in sink.name


def test_times_of_a_file_are_told_so_that_readers_pass_it_over(tmp_path: Path) -> None:
    """Rounded outward: a reader that looks for a microsecond must not miss it."""
    from deltalake import DeltaTable

    schema = SCHEMA.append(pa.field("timestamp", pa.timestamp("us", tz="UTC")))
    sink = open_sink("delta", tmp_path)
    sink.create(schema, BEGUN)
    rows = pa.table({"partition": [0], "offset": [0], "timestamp": [1_767_225_600_000_001]}, schema)
    for name in ("a", "b"):
        pq.write_table(rows, tmp_path / "orders" / f"{name}.parquet")
    known = DataFile("a.parquet", 1, 1, 0, 0, 0, 1_767_225_600_000_001, 1_767_225_600_000_001)
    # 1969-12-31T23:59:59.999, as a record without a time has it, and a year that has five digits.
    far = known._replace(key="b.parquet", min_timestamp_us=-1000, max_timestamp_us=1 << 62)
    sink.commit(sink.view(), schema, [known, far], BEGUN.advanced({0: 1}))
    table = DeltaTable(str(tmp_path / "orders"))
    adds = {add["path"]: add for add in pa.table(table.get_add_actions(flatten=True)).to_pylist()}
    told = [adds["a.parquet"][f"{bound}.timestamp"].isoformat() for bound in ("min", "max")]
    assert told == ["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00.001000+00:00"]
    assert adds["b.parquet"]["min.timestamp"] is None


def test_offsets_and_files_are_of_one_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library reads transactions as they are by then, not as of the version it opened."""
    job = lake_job("delta", tmp_path, FakeLog({0: (0, 60)}))
    job.step()
    progress_of = DeltaSink._progress
    overtaken: list[bool] = []

    def progress(self: DeltaSink, table: Any) -> Progress | None:
        if not overtaken:
            overtaken.append(True)
            job.step()
        return progress_of(self, table)

    monkeypatch.setattr(DeltaSink, "_progress", progress)
    sink = open_sink("delta", tmp_path)
    view = sink.view()
    assert view.progress is not None
    files = [range_of(key) for key in sink.keys(view)]
    assert max(file.end for file in files if file is not None) == view.progress.offsets[0]
    assert overtaken
