"""A topic whose schema changes while its table is kept: columns come before their rows."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pipeline.lake.job.job import LakeJob
from pipeline.lake.schemas.registry import RegistryClient, RegistryError
from pipeline.lake.schemas.spec import RegistrySpec
from pipeline.lake.values.table_columns import FieldSettings, TableColumns
from pipeline.plan.piece import Piece
from tests.fakes.kafka.schema_registry import FakeSchemaRegistry, running_registry
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, read_rows, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, read_table

LOG = {0: (0, 60), 1: (5, 33)}

CHANGED = 28
"""From here on producers write the second schema; every third record still the first."""

ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": ["null", "string"]}
V1 = {"type": "record", "name": "Order", "fields": [ID]}
V2 = {"type": "record", "name": "Order", "fields": [ID, NOTE]}


@pytest.fixture
def registry() -> Iterator[FakeSchemaRegistry]:
    with running_registry() as running:
        running.register("orders-value", json.dumps(V1))
        yield running


def _is_new(offset: int) -> bool:
    return offset >= CHANGED and offset % 3 != 0


class AvroRows:
    """Reads pieces as a real reader does, of values that name their schema."""

    def __init__(self, registry: FakeSchemaRegistry) -> None:
        self._registry = registry

    def __call__(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        for batch in read_rows(piece):
            values = [self._value(offset) for offset in batch.column("offset").to_pylist()]
            at = batch.schema.get_field_index("value")
            yield batch.set_column(at, "value", pa.array(values, pa.binary()))

    def _value(self, offset: int) -> bytes:
        if is_bad(offset):
            return b"\0\0\0\xff\xff?"
        schema = V2 if _is_new(offset) else V1
        row = {"id": offset, "note": f"n{offset}"}
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        number = self._registry.register("orders-value", json.dumps(schema))
        return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def _job(kind: str, root: Path, registry: FakeSchemaRegistry, log: FakeLog) -> LakeJob:
    settings = FieldSettings(
        "avro", "confluent", registry=RegistrySpec(registry.url), subject="orders-value"
    )
    columns = TableColumns(
        settings,
        FieldSettings(),
        open_client=lambda spec: RegistryClient(spec, pause_ms=lambda ms: None),
    )
    return lake_job(kind, root, log, read_piece=AvroRows(registry), columns=columns)


def _check(kind: str, root: Path) -> None:
    table = read_table(kind, root)
    good = [(partition, offset) for partition, offset in rows_of(LOG) if not is_bad(offset)]
    bad = [(partition, offset) for partition, offset in rows_of(LOG) if is_bad(offset)]
    assert coordinates(table) == good
    assert coordinates(read_table(kind, root, "orders_quarantine")) == bad
    rows: list[dict[str, Any]] = table.select(["offset", "id", "note"]).to_pylist()
    for row in rows:
        offset = row["offset"]
        assert (row["id"], row["note"]) == (offset, f"n{offset}" if _is_new(offset) else None)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_added_before_rows_that_need_them(
    kind: str, registry: FakeSchemaRegistry, tmp_path: Path
) -> None:
    """Within one run of the job: a batch is converted again, and no row lacks its note."""
    job = _job(kind, tmp_path, registry, FakeLog(LOG))
    assert job.step() is not None
    assert "note" not in read_table(kind, tmp_path).schema.names
    assert run(job) == 3
    _check(kind, tmp_path)


def test_a_job_that_is_started_again_finds_the_columns(
    registry: FakeSchemaRegistry, tmp_path: Path
) -> None:
    """By the table and the registry; at every batch another job goes on."""
    while _job("delta", tmp_path, registry, FakeLog(LOG)).step() is not None:
        pass
    _check("delta", tmp_path)


def test_a_registry_that_is_away_stops_a_batch_and_quarantines_nothing(
    registry: FakeSchemaRegistry, tmp_path: Path
) -> None:
    """The next attempt makes it."""
    job = _job("delta", tmp_path, registry, FakeLog(LOG))
    assert job.step() is not None
    registry.faults = [(403, b"{}")]
    with pytest.raises(RegistryError):
        run(job)
    registry.faults = []
    run(job)
    _check("delta", tmp_path)
