"""Sorted streams of rows become one: of each key the last record, whatever the blocks are."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.errors import ForeignTableError
from pipeline.lake.keyed.merge import merged
from pipeline.lake.runs.row_order import DELETES, KIND, NEW
from pipeline.lake.schemas.columns import ORDER_TIME, TIMESTAMP

Row = tuple[bytes, int, int, int, int]
"""Key, order time, partition, offset, kind."""

SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field(ORDER_TIME, TIMESTAMP),
        pa.field("key", pa.binary()),
        pa.field(KIND, pa.int8()),
    ]
)


def blocks(rows: Sequence[Row], size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        columns = [
            pa.array([row[2] for row in some], pa.int32()),
            pa.array([row[3] for row in some], pa.int64()),
            pa.array([row[1] for row in some], pa.int64()).cast(TIMESTAMP),
            pa.array([row[0] for row in some], pa.binary()),
            pa.array([row[4] for row in some], pa.int8()),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


keys = st.binary(max_size=3)
places = st.tuples(st.integers(0, 5), st.integers(0, 2))


@st.composite
def streams(draw: st.DrawFn) -> list[list[Row]]:
    """Each has a key once, ascending; the first is the table's.

    Within a partition the order time does not fall with the offset.
    """
    found = []
    number = 0
    for at in range(draw(st.integers(1, 5))):
        rows = []
        for key in sorted(draw(st.sets(keys, max_size=12))):
            time, partition = draw(places)
            kind = draw(st.sampled_from([0, DELETES] if at == 0 else [NEW, NEW | DELETES]))
            number += 1
            rows.append((key, time, partition, time * 1000 + number, kind))
        found.append(rows)
    return found


@given(streams(), st.integers(1, 5))
def test_the_last_record_of_each_key_is_kept(given_streams: list[list[Row]], size: int) -> None:
    parts = list(merged([blocks(rows, size) for rows in given_streams], "key"))
    last: dict[bytes, Row] = {}
    for rows in given_streams:
        for row in rows:
            if row[0] not in last or row[1:4] > last[row[0]][1:4]:
                last[row[0]] = row
    found = [
        (row["key"], row["partition"], row["offset"], row[KIND])
        for part in parts
        for row in part.rows.to_pylist()
    ]
    assert found == [(row[0], row[2], row[3], row[4]) for _, row in sorted(last.items())]
    assert sum(part.upserted for part in parts) == sum(r[4] == NEW for r in last.values())
    had = {row[0] for row in given_streams[0] if row[4] == 0}
    gone = sum(key in had and row[4] == NEW | DELETES for key, row in last.items())
    assert sum(part.deleted for part in parts) == gone


def test_a_block_of_each_stream_is_held_and_no_more() -> None:
    """Streams are read on only when what was read of them is needed."""
    rows = [(b"%04d" % n, 1, 0, n, 0) for n in range(1000)]
    read = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for block in blocks(rows, 10):
            read += block.num_rows
            yield block

    given_rows = 0
    for part in merged([counted(), blocks(rows[::7], 3)], "key"):
        given_rows += part.rows.num_rows
        assert read - given_rows <= 20
    assert given_rows == 1000


def test_a_stream_that_is_not_sorted_is_refused() -> None:
    for rows in (
        [(b"b", 1, 0, 1, 0), (b"a", 1, 0, 2, 0)],
        [(b"a", 1, 0, 1, 0), (b"a", 1, 0, 2, 0)],
    ):
        for size in (1, 2):
            with pytest.raises(ForeignTableError, match="not sorted"):
                list(merged([blocks(rows, size)], "key"))


def test_a_row_out_of_the_quarantine_is_behind_older_ones_of_its_partition() -> None:
    """Its own time is all that is known of it, and may be before theirs."""
    old, late = (b"a", 50, 0, 3, 0), (b"a", 10, 0, 7, NEW)
    (part,) = merged([blocks([old], 1), blocks([late], 1)], "key")
    assert part.rows.column("offset").to_pylist() == [7]
    other = (b"a", 20, 1, 1, 0)
    (part,) = merged([blocks([other], 1), blocks([late], 1)], "key")
    assert part.rows.column("partition").to_pylist() == [1]
