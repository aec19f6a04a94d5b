"""A file's rows with all columns of the table."""

import pyarrow as pa
import pytest

from pipeline.lake.files.table_rows import shaped, without_place

TABLE = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("count", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("at", pa.struct([("x", pa.int64()), ("y", pa.string())])),
    ]
)


def test_older_files_lack_columns_and_have_narrower_ones() -> None:
    old = pa.record_batch(
        {
            "at": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())])),
            "count": pa.array([7, None], pa.int8()),
        }
    )
    found = shaped(old, TABLE, {"partition": "3"})
    assert found.schema == TABLE
    assert found.to_pylist() == [
        {"partition": 3, "count": 7, "name": None, "at": {"x": 1, "y": None}},
        {"partition": 3, "count": None, "name": None, "at": None},
    ]


def test_what_a_file_holds_itself_counts() -> None:
    rows = pa.record_batch({"partition": pa.array([5], pa.int32())})
    assert shaped(rows, TABLE, {"partition": "3"}).column("partition").to_pylist() == [5]


@pytest.mark.parametrize(
    ("file", "stranger"),
    [
        (pa.schema([("count", pa.int16()), ("name", pa.string())]), None),
        (pa.schema([("count", pa.int64()), ("renamed", pa.string())]), "renamed"),
        (pa.schema([("count", pa.float64())]), "count"),
        (pa.schema([("at", pa.struct([("z", pa.int64())]))]), "at"),
    ],
)
def test_a_column_that_the_table_has_no_place_for_is_told(
    file: pa.Schema, stranger: str | None
) -> None:
    """Somebody has renamed or dropped it; what is in it must not be lost."""
    assert without_place(file, TABLE) == stranger
