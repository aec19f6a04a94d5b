"""What every table promises a job: files and offsets in one step, or nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.files.data_file import DataFile, FileNames
from pipeline.lake.files.file_writer import FileWriter, WriterOptions
from pipeline.lake.settings.config import parse_partition_field
from pipeline.lake.sinks.base import Sink, offsets_of
from tests.fakes.lake.tables import KINDS, coordinates, open_catalog, open_sink, read_table

TOPIC_ID = UUID("6f2b5a52-7b9b-4d6c-8d36-0b57f0d2a111")
OTHER_ID = UUID("00000000-7b9b-4d6c-8d36-0b57f0d2a111")
BEGUN = Progress("orders-lake", "orders", TOPIC_ID, 0, {})
PARTED = ("day(timestamp)", "partition")

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("value", pa.binary()),
    ]
)

Open = Callable[..., Sink]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def opened(kind: str, tmp_path: Path) -> Open:
    def again(**options: object) -> Sink:
        return open_sink(kind, tmp_path, **options)  # type: ignore[arg-type]  # the test's own names

    return again


def rows(partition: int, start: int, end: int, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    offsets = list(range(start, end))
    columns = {
        "topic": ["orders"] * len(offsets),
        "partition": [partition] * len(offsets),
        "offset": offsets,
        "timestamp": [offset * 3_600_000_000 for offset in offsets],
        "value": [b"v%d" % offset for offset in offsets],
        "extra": offsets,
    }
    return pa.record_batch([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def write(
    sink: Sink,
    partition: int,
    start: int,
    end: int,
    *,
    schema: pa.Schema = SCHEMA,
    parted: tuple[str, ...] = (),
) -> tuple[DataFile, ...]:
    names = FileNames(sink.folder, "orders", TOPIC_ID, partition, start, end, "0a1b2c3d")
    fields = tuple(parse_partition_field(one) for one in parted)
    options = WriterOptions(fields, sink.keeps_partition_columns)
    writer = FileWriter(sink.store, names, options)
    writer.write(rows(partition, start, end, schema), 100)
    return writer.finish()


def begun(sink: Sink) -> Sink:
    sink.create(SCHEMA, BEGUN)
    return sink


def test_a_table_that_is_not_there_has_nothing(opened: Open) -> None:
    view = opened().view()
    assert (view.progress, view.schema) == (None, None)


def test_a_new_table_is_empty_and_knows_its_topic(opened: Open) -> None:
    begun(opened())
    view = opened().view()
    assert view.progress == BEGUN
    assert view.schema is not None
    assert view.schema.names == SCHEMA.names
    assert view.schema.types == SCHEMA.types


def test_made_twice_it_is_one_table(opened: Open) -> None:
    """Who was killed behind the making makes it again."""
    begun(opened())
    begun(opened())
    assert opened().view().progress == BEGUN


def test_rows_and_offsets_come_together(opened: Open, kind: str, tmp_path: Path) -> None:
    sink = begun(opened())
    after = BEGUN.advanced({0: 10, 1: 3})
    files = write(sink, 0, 0, 10) + write(sink, 1, 0, 3)
    assert read_table(kind, tmp_path).num_rows == 0
    sink.commit(sink.view(), SCHEMA, files, after)
    assert opened().view().progress == after
    table = read_table(kind, tmp_path)
    assert coordinates(table) == [(0, o) for o in range(10)] + [(1, o) for o in range(3)]
    assert sorted(table.column("value").to_pylist())[0] == b"v0"


def test_an_offset_of_0_is_an_offset(opened: Open) -> None:
    """And not the absence of one: 0 is false in Python."""
    sink = begun(opened())
    after = BEGUN._replace(batch=0, offsets={0: 0})
    sink.commit(sink.view(), SCHEMA, (), after)
    progress = opened().view().progress
    assert progress is not None
    assert progress.offsets == {0: 0}


def test_offsets_without_rows_are_kept(opened: Open, kind: str, tmp_path: Path) -> None:
    """A range may hold nothing but markers and aborted records."""
    sink = begun(opened())
    sink.commit(sink.view(), SCHEMA, (), BEGUN.advanced({0: 7}))
    assert opened().view().progress == BEGUN.advanced({0: 7})
    assert read_table(kind, tmp_path).num_rows == 0


def test_a_commit_on_an_old_look_is_refused(opened: Open, kind: str, tmp_path: Path) -> None:
    """Two jobs at once: the second one's rows would be there twice."""
    first, second = begun(opened()), opened()
    mine, yours = first.view(), second.view()
    files = write(first, 0, 0, 10)
    first.commit(mine, SCHEMA, files, BEGUN.advanced({0: 10}))
    with pytest.raises(CommitConflictError):
        second.commit(yours, SCHEMA, files, BEGUN.advanced({0: 10}))
    with pytest.raises(CommitConflictError):
        first.commit(mine, SCHEMA, files, BEGUN.advanced({0: 10}))
    assert coordinates(read_table(kind, tmp_path)) == [(0, o) for o in range(10)]
    assert second.view().progress == BEGUN.advanced({0: 10})


def test_a_table_goes_on_batch_by_batch(opened: Open, kind: str, tmp_path: Path) -> None:
    """Also over the checkpoints that a table makes of its log."""
    progress = BEGUN
    sink = begun(opened())
    for batch in range(12):
        files = write(sink, 0, batch * 5, batch * 5 + 5)
        progress = progress.advanced({0: batch * 5 + 5})
        sink.commit(sink.view(), SCHEMA, files, progress)
        sink = opened() if batch % 3 == 0 else sink
        assert sink.view().progress == progress
    assert coordinates(read_table(kind, tmp_path)) == [(0, o) for o in range(60)]
    assert len(sink.keys(sink.view())) == 12


def test_columns_are_added_with_the_rows_that_have_them(
    opened: Open, kind: str, tmp_path: Path
) -> None:
    sink = begun(opened())
    sink.commit(sink.view(), SCHEMA, write(sink, 0, 0, 2), BEGUN.advanced({0: 2}))
    wider = SCHEMA.append(pa.field("extra", pa.int64()))
    files = write(sink, 0, 2, 4, schema=wider)
    sink.commit(sink.view(), wider, files, BEGUN.advanced({0: 2}).advanced({0: 4}))
    schema = opened().view().schema
    assert schema is not None
    assert schema.names == wider.names
    table = read_table(kind, tmp_path).sort_by("offset")
    assert table.column("extra").to_pylist() == [None, None, 2, 3]


def test_a_parted_table_has_all_columns_and_prunes(opened: Open, kind: str, tmp_path: Path) -> None:
    sink = begun(opened(partition_by=PARTED))
    files = write(sink, 3, 0, 30, parted=PARTED)
    assert len(files) == 2
    sink.commit(sink.view(), SCHEMA, files, BEGUN.advanced({3: 30}))
    assert opened(partition_by=PARTED).view().progress == BEGUN.advanced({3: 30})
    if kind != "parquet":
        assert coordinates(read_table(kind, tmp_path)) == [(3, o) for o in range(30)]
    view = opened(partition_by=PARTED).view()
    assert view.schema is not None
    assert "timestamp_day" not in view.schema.names


def test_a_job_does_not_touch_the_table_of_another(opened: Open) -> None:
    begun(opened())
    with pytest.raises(ForeignTableError, match="kept by the job orders-lake"):
        opened(job="other").view()


def test_a_topic_made_anew_begins_without_offsets(opened: Open, kind: str, tmp_path: Path) -> None:
    """The rows of the one before stay."""
    sink = begun(opened())
    sink.commit(sink.view(), SCHEMA, write(sink, 0, 0, 3), BEGUN.advanced({0: 3}))
    anew = BEGUN._replace(topic_id=OTHER_ID)
    sink.create(SCHEMA, anew)
    sink.create(SCHEMA, anew)
    assert opened().view().progress == anew
    assert read_table(kind, tmp_path).num_rows == 3


def test_a_file_leaves_in_the_step_in_which_another_comes(
    opened: Open, kind: str, tmp_path: Path
) -> None:
    """Compaction and keyed tables rely on it."""
    sink = begun(opened())
    old = write(sink, 0, 0, 3) + write(sink, 0, 3, 5)
    sink.commit(sink.view(), SCHEMA, old, BEGUN.advanced({0: 5}))
    new = write(sink, 0, 0, 5)
    progress = BEGUN.advanced({0: 5}).advanced({})
    sink.commit(sink.view(), SCHEMA, new, progress, remove=[file.key for file in old])
    assert coordinates(read_table(kind, tmp_path)) == [(0, o) for o in range(5)]
    assert list(sink.keys(sink.view())) == [file.key for file in new]
    assert opened().view().progress == progress


def test_files_are_replaced_and_rows_and_offsets_stay(
    opened: Open, kind: str, tmp_path: Path
) -> None:
    sink = begun(opened())
    old = write(sink, 0, 0, 3) + write(sink, 0, 3, 5)
    after = BEGUN.advanced({0: 5})
    sink.commit(sink.view(), SCHEMA, old, after)
    new = write(sink, 0, 0, 5)
    view = sink.view()
    sink.replace(view, new, [file.key for file in old])
    assert coordinates(read_table(kind, tmp_path)) == [(0, o) for o in range(5)]
    assert opened().view().progress == after
    with pytest.raises(CommitConflictError):
        sink.replace(view, new, [file.key for file in old])
    with pytest.raises(CommitConflictError):
        sink.commit(view, SCHEMA, write(sink, 0, 5, 7), after.advanced({0: 7}))
    sink.commit(sink.view(), SCHEMA, write(sink, 0, 5, 7), after.advanced({0: 7}))
    assert coordinates(read_table(kind, tmp_path)) == [(0, o) for o in range(7)]


def test_files_that_are_in_the_table_no_more_are_not_replaced(opened: Open, kind: str) -> None:
    """Somebody else has: their rows would be there twice."""
    sink = begun(opened())
    old = write(sink, 0, 0, 3)
    sink.commit(sink.view(), SCHEMA, old, BEGUN.advanced({0: 3}))
    with pytest.raises(CommitConflictError):
        sink.replace(sink.view(), write(sink, 0, 0, 4), [old[0].key, "part-gone.parquet"])


def test_whoever_reads_changes_sees_none_where_files_are_replaced(
    opened: Open, kind: str, tmp_path: Path
) -> None:
    """Streams over the table would otherwise have the rows twice, or stop."""
    sink = begun(opened())
    old = write(sink, 0, 0, 3)
    sink.commit(sink.view(), SCHEMA, old, BEGUN.advanced({0: 3}))
    sink.replace(sink.view(), write(sink, 0, 0, 4), [old[0].key])
    if kind == "delta":
        (log,) = sorted((tmp_path / "orders" / "_delta_log").glob("*.json"))[-1:]
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        changed = [one["dataChange"] for a in actions for k, one in a.items() if k != "commitInfo"]
        assert changed == [False, False]
    elif kind == "iceberg":
        snapshot = open_catalog(tmp_path).load_table("lake.orders").current_snapshot()
        assert snapshot.summary["operation"].value == "replace"
        assert (snapshot.summary["total-data-files"], snapshot.summary["total-records"]) == (
            "1",
            "4",
        )


def test_a_table_tells_its_files(opened: Open) -> None:
    sink = begun(opened(partition_by=PARTED))
    written = write(sink, 3, 0, 30, parted=PARTED)
    sink.commit(sink.view(), SCHEMA, written, BEGUN.advanced({3: 30}))
    found = {file.key: file for file in sink.files(sink.view())}
    assert set(found) == set(sink.keys(sink.view())) == {file.key for file in written}
    for file in written:
        told = found[file.key]
        assert (told.size, told.rows, told.first_offset) == (
            file.size,
            file.rows,
            file.first_offset,
        )
        assert [name for name, _ in told.values] == ["timestamp_day", "partition"]
        assert told.sealed == ""
    assert len({told.values for told in found.values()}) == 2


def test_a_table_tells_which_offsets_it_has(opened: Open) -> None:
    sink = begun(opened())
    files = write(sink, 0, 0, 3) + write(sink, 0, 5, 9) + write(sink, 1, 0, 9)
    sink.commit(sink.view(), SCHEMA, files, BEGUN.advanced({0: 9, 1: 9}))
    view = sink.view()
    assert offsets_of(sink, view, TOPIC_ID, 0, 1, 7) == (1, 2, 5, 6)
    assert offsets_of(sink, view, OTHER_ID, 0, 1, 7) == ()
