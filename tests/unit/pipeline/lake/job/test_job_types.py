"""Every type that values have, in every kind of table, and back by a released reader."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pipeline.lake.reconcile.reconcile import Reconciler
from pipeline.lake.values.table_columns import FieldSettings, TableColumns
from pipeline.plan.piece import Piece
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, read_rows
from tests.fakes.lake.tables import KINDS, open_sink, read_table

DDL = """
b boolean, t tinyint, s smallint, i int, l bigint, f float, d double, st string, da date,
ts timestamp, tn timestamp_ntz, de decimal(10,2), o struct<x: tinyint, l: array<date>>,
a array<struct<y: smallint>>
"""

JSON_VALUE = {
    "b": True,
    "t": -128,
    "s": 32767,
    "i": 3,
    "l": 2**62,
    "f": 1.5,
    "d": 0.1,
    "st": "é",
    "da": "2024-02-29",
    "ts": "2024-01-02T03:04:05.123456Z",
    "tn": "2024-01-02T03:04:05",
    "de": 1.25,
    "o": {"x": 1, "l": ["2024-01-01", None]},
    "a": [{"y": 5}, {}],
}

JSON_ROW = {
    **JSON_VALUE,
    "da": date(2024, 2, 29),
    "ts": datetime(2024, 1, 2, 3, 4, 5, 123456, UTC),
    "tn": datetime(2024, 1, 2, 3, 4, 5),  # noqa: DTZ001 - a time without a zone is what is tried
    "de": Decimal("1.25"),
    "o": {"x": 1, "l": [date(2024, 1, 1), None]},
    "a": [{"y": 5}, {"y": None}],
}

AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "m", "type": {"type": "map", "values": "long"}},
        {"name": "u", "type": ["null", "string", "int"]},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "x", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "y", "type": "bytes"},
    ],
}

AVRO_VALUE = {"m": {"k": 1}, "u": 5, "e": "B", "x": b"ab", "y": b"\xff"}

AVRO_ROW = {**AVRO_VALUE, "m": [("k", 1)], "u": {"member0": None, "member1": 5}}


def _avro() -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), AVRO_VALUE)
    return out.getvalue()


def _reader(value: bytes) -> Callable[[Piece], Iterator[pa.RecordBatch]]:
    def read(piece: Piece) -> Iterator[pa.RecordBatch]:
        for batch in read_rows(piece):
            values = pa.array([value] * batch.num_rows, pa.binary())
            yield batch.set_column(batch.schema.get_field_index("value"), "value", values)

    return read


CASES = [
    (FieldSettings("json", definition=DDL.encode()), json.dumps(JSON_VALUE).encode(), JSON_ROW),
    (FieldSettings("avro", definition=json.dumps(AVRO).encode()), _avro(), AVRO_ROW),
]


@pytest.mark.parametrize(("given", "value", "row"), CASES, ids=["json", "avro"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_type_is_kept(
    kind: str, given: FieldSettings, value: bytes, row: dict[str, Any], tmp_path: Path
) -> None:
    """Also when the job is started again and looks at the columns that the table has made of it."""
    log = FakeLog({0: (0, 12)})
    read = _reader(value)
    columns = TableColumns(given, FieldSettings())
    run(lake_job(kind, tmp_path, log, read_piece=read, columns=columns))
    log.partitions[0] = (0, 24)
    run(lake_job(kind, tmp_path, log, read_piece=read, columns=columns))
    table = read_table(kind, tmp_path)
    assert table.num_rows == 22
    assert all(found == row for found in table.select(list(row)).to_pylist())

    sink, bad = open_sink(kind, tmp_path), open_sink(kind, tmp_path, name="orders_quarantine")
    progress = sink.view().progress
    assert progress is not None
    bad.view()
    found = Reconciler(log, sink, bad, columns, read).run(log.view(), progress)
    assert found.equal
    assert found.ranges[0].table_rows == 22
