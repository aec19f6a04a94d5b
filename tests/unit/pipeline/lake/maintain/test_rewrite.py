"""Rows of some files in one: all of them, in order, or an error."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.files.data_file import CompactedNames, DataFile, FileNames
from pipeline.lake.files.file_writer import FileWriter, WriterOptions
from pipeline.lake.maintain.rewrite import RewriteSpec, RewriteTask, RowsLostError, rewrite
from pipeline.lake.maintain.sort_order import SortBy
from pipeline.lake.settings.config import parse_partition_field
from pipeline.lake.sinks.base import TableFile
from pipeline.lake.stores.directory_store import DirectoryStore
from pipeline.lake.work.task import TableTarget
from tests.fakes.lake.numbers_log import TOPIC_ID
from tests.fakes.lake.tables import OpenDirectory, open_directory

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.string()),
    ]
)
HOUR_US = 3_600_000_000

FIELDS = ("day(timestamp)", "partition")


def options(parted: bool) -> WriterOptions:
    fields = tuple(parse_partition_field(one) for one in FIELDS) if parted else ()
    return WriterOptions(fields, keeps_partition_columns=False)


def write(
    root: Path, partition: int, start: int, end: int, *, schema: pa.Schema = SCHEMA, parted: bool
) -> list[DataFile]:
    offsets = list(range(start, end))
    columns = {
        "topic": ["orders"] * len(offsets),
        "partition": [partition] * len(offsets),
        "offset": offsets,
        "timestamp": [-offset * HOUR_US for offset in offsets],
        "key": [b"%d" % (offset % 3) for offset in offsets],
        "value": [f"v{offset}" for offset in offsets],
    }
    rows = pa.record_batch([pa.array(columns[f.name], f.type) for f in schema], schema=schema)
    names = FileNames("", "orders", TOPIC_ID, partition, start, end, "0a1b2c3d")
    writer = FileWriter(open_directory(str(root)), names, options(parted))
    writer.write(rows, rows.nbytes)
    return list(writer.finish())


def table_file(file: DataFile) -> TableFile:
    return TableFile(
        file.key, file.size, file.rows, file.values, file.first_offset, file.min_timestamp_us
    )


def task(files: list[DataFile]) -> RewriteTask:
    names = CompactedNames("", "orders", TOPIC_ID.hex[:8], "a" * 32)
    return RewriteTask(names, files[0].values, tuple(table_file(one) for one in files))


def spec(root: Path, *, parted: bool = False, sort_by: SortBy = "timestamp") -> RewriteSpec:
    target = TableTarget(OpenDirectory(str(root)), "", options(parted))
    return RewriteSpec(target, SCHEMA, sort_by)


def read(root: Path, key: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.ParquetFile(root / key).read().to_pylist()
    return rows


def test_rows_are_in_order_and_what_a_commit_needs_is_told(tmp_path: Path) -> None:
    files = write(tmp_path, 0, 0, 5, parted=False) + write(tmp_path, 1, 2, 4, parted=False)
    found = rewrite(task(files), spec(tmp_path))
    assert found.done == tuple(file.key for file in files)
    (made,) = found.files
    rows = read(tmp_path, made.key)
    assert [(row["partition"], row["offset"]) for row in rows] == [
        (0, 4),
        (0, 3),
        (1, 3),
        (0, 2),
        (1, 2),
        (0, 1),
        (0, 0),
    ]
    assert (made.rows, made.partition, made.first_offset, made.last_offset) == (7, -1, 0, 4)
    assert (made.min_timestamp_us, made.max_timestamp_us) == (-4 * HOUR_US, 0)
    assert made.size == (tmp_path / made.key).stat().st_size


def test_a_file_of_one_partition_says_which(tmp_path: Path) -> None:
    files = write(tmp_path, 3, 0, 5, parted=False) + write(tmp_path, 3, 5, 9, parted=False)
    assert [file.partition for file in rewrite(task(files), spec(tmp_path)).files] == [3]


def test_rows_are_sorted_by_key(tmp_path: Path) -> None:
    files = write(tmp_path, 0, 0, 5, parted=False) + write(tmp_path, 0, 5, 8, parted=False)
    (made,) = rewrite(task(files), spec(tmp_path, sort_by="key")).files
    found = [(row["key"], row["offset"]) for row in read(tmp_path, made.key)]
    assert found == sorted(found)
    assert len(found) == 8


def test_columns_that_a_folder_stands_for_are_known_again(tmp_path: Path) -> None:
    """Files of a parted Delta table do not hold them; the new one does not either."""
    files = write(tmp_path, 3, 1, 5, parted=True) + write(tmp_path, 3, 5, 9, parted=True)
    (made,) = rewrite(task(files), spec(tmp_path, parted=True)).files
    assert made.key.startswith("timestamp_day=1969-12-31/partition=3/compact-orders-")
    assert made.values == (("timestamp_day", "1969-12-31"), ("partition", "3"))
    assert made.partition == 3
    assert "partition" not in read(tmp_path, made.key)[0]


def test_rows_of_another_part_of_the_table_are_an_error(tmp_path: Path) -> None:
    files = write(tmp_path, 3, 1, 5, parted=True) + write(tmp_path, 3, 30, 32, parted=True)
    with pytest.raises(RowsLostError, match="more than one part"):
        rewrite(task(files), spec(tmp_path, parted=True))


def test_files_that_are_not_what_the_table_says_are_left_out(tmp_path: Path) -> None:
    """A column that was renamed, another count of rows, a file that is gone: all others go on."""
    good = write(tmp_path, 0, 0, 5, parted=False) + write(tmp_path, 0, 5, 8, parted=False)
    renamed = SCHEMA.set(5, pa.field("wert", pa.string()))
    old = pa.Table.from_pylist(read(tmp_path, good[0].key), SCHEMA).rename_columns(renamed.names)
    strange = good[0]._replace(key="part-strange.parquet")
    pq.write_table(old, tmp_path / strange.key)
    counted = write(tmp_path, 0, 8, 9, parted=False)[0]._replace(rows=7)
    gone = good[0]._replace(key="part-gone.parquet")
    found = rewrite(task([*good, strange, counted, gone]), spec(tmp_path))
    assert found.done == (good[0].key, good[1].key)
    assert sum(file.rows for file in found.files) == 8
    assert [text.split(" ", 1)[1] for text in found.left_out] == [
        "has wert, as the table has not",
        "has 1 rows, the table says 7",
        "is not there",
    ]


@pytest.mark.parametrize("where", ["footer", "rows"])
def test_a_damaged_file_stays_and_is_told(tmp_path: Path, where: str) -> None:
    """Also where its first rows were read already: they must not be there twice."""
    good = write(tmp_path, 0, 0, 5, parted=False) + write(tmp_path, 0, 5, 8, parted=False)
    (bad,) = write(tmp_path, 0, 8, 20_000, parted=False)
    path = tmp_path / bad.key
    data = bytearray(path.read_bytes())
    if where == "footer":
        data[-8:] = b"no parqu"
    else:
        middle = len(data) // 2
        data[middle : middle + 5000] = bytes(5000)
    path.write_bytes(data)
    found = rewrite(task([good[0], bad, good[1]]), spec(tmp_path))
    assert found.done == (good[0].key, good[1].key)
    assert [file.rows for file in found.files] == [8]
    (told,) = found.left_out
    assert told.startswith(f"{bad.key} cannot be read: ")


def test_who_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write(tmp_path, 0, 0, 5, parted=False) + write(tmp_path, 0, 5, 8, parted=False)
    before = sorted(path.name for path in tmp_path.rglob("*"))

    def fails(*_: object) -> int:
        raise TableUnavailableError("away")

    monkeypatch.setattr(DirectoryStore, "publish", fails)
    with pytest.raises(TableUnavailableError):
        rewrite(task(files), spec(tmp_path))
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
