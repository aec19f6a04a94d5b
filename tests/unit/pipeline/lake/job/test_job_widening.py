"""Columns that become too narrow: widened where the table can be, and no value is cut anywhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.lake.schemas.evolution import SchemaChangeError
from pipeline.lake.values.table_columns import FieldSettings, TableColumns
from pipeline.plan.piece import Piece
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_marker, read_rows
from tests.fakes.lake.tables import KINDS, open_sink, read_table

NARROW = "id int, part float, price decimal(4,2), s struct<n: int>"
WIDE = "id bigint, part double, price decimal(9,2), s struct<n: bigint>"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def record(offset: int) -> dict[str, Any]:
    """From 100 on numbers are larger than narrow columns are."""
    large = offset if offset < 100 else offset * 10**9
    return {
        "id": large,
        "part": offset + 0.5,
        "price": f"{min(large, 10**6)}.25",
        "s": {"n": large},
    }


def read(piece: Piece) -> Iterator[pa.RecordBatch]:
    for batch in read_rows(piece):
        values = []
        for offset in batch.column("offset").to_pylist():
            told = record(offset)
            price = told.pop("price")
            values.append(f'{json.dumps(told)[:-1]}, "price": {price}}}'.encode())
        at = batch.schema.get_field_index("value")
        yield batch.set_column(at, "value", pa.array(values, pa.binary()))


def keep(kind: str, root: Path, end: int, ddl: str) -> None:
    columns = TableColumns(
        FieldSettings("json", definition=ddl.encode()), FieldSettings(), widen=kind != "delta"
    )
    log = FakeLog({0: (0, end)})
    run(lake_job(kind, root, log, columns=columns, read_piece=read))


def test_no_value_is_cut(kind: str, tmp_path: Path) -> None:
    """What does not fit is quarantined until the columns are wider."""
    keep(kind, tmp_path, 50, NARROW)
    keep(kind, tmp_path, 120, NARROW)
    wide = NARROW if kind == "delta" else WIDE
    keep(kind, tmp_path, 160, wide)
    rows = {row["offset"]: row for row in read_table(kind, tmp_path).to_pylist()}
    bad = read_table(kind, tmp_path, "orders_quarantine").column("offset").to_pylist()
    fits = [o for o in range(160) if not is_marker(o) and (o < 100 or (o >= 120 and wide == WIDE))]
    assert sorted(rows) == fits
    assert sorted([*rows, *bad]) == [o for o in range(160) if not is_marker(o)]
    for offset, row in rows.items():
        told = record(offset)
        assert row["id"] == told["id"] == row["s"]["n"]
        assert row["part"] == told["part"]
        assert str(row["price"]) == told["price"]
    schema = open_sink(kind, tmp_path).view().schema
    assert schema is not None
    assert schema.field("id").type == (pa.int32() if kind == "delta" else pa.int64())


def test_a_delta_table_takes_no_doubles_for_its_floats(tmp_path: Path) -> None:
    """A number of JSON becomes the nearest float: nobody would be told."""
    keep("delta", tmp_path, 50, NARROW)
    with pytest.raises(SchemaChangeError, match="part: float in the table and double"):
        keep("delta", tmp_path, 90, WIDE)


def test_an_older_schema_narrows_nothing(kind: str, tmp_path: Path) -> None:
    """Two jobs of which one has still the settings of before."""
    wide = NARROW if kind == "delta" else WIDE
    keep(kind, tmp_path, 120, wide)
    before = open_sink(kind, tmp_path).view().schema
    keep(kind, tmp_path, 160, NARROW)
    assert open_sink(kind, tmp_path).view().schema == before
