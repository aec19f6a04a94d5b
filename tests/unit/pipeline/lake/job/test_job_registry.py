"""Jobs whose values name their schema: when it grows, the table grows in the same batch."""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pipeline.lake.app.assembly import job_settings
from pipeline.lake.app.job_columns import JobColumns
from pipeline.lake.app.locations import OpenTableStore
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.job.job import LakeJob
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.settings.config import JobConfig, parse_job
from pipeline.lake.work.local_runner import LocalRunner
from pipeline.lake.work.task import TableTarget, TaskSpec
from pipeline.plan.piece import Piece
from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness
from tests.fakes.kafka.schema_registry import FakeSchemaRegistry, running_registry
from tests.fakes.lake.numbers_log import FakeLog, is_marker, read_rows
from tests.fakes.lake.tables import KINDS, coordinates, open_sink, read_table


def schema(*fields: tuple[str, Any]) -> str:
    found = [
        {"name": name, "type": kind, **({"default": None} if isinstance(kind, list) else {})}
        for name, kind in fields
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": found})


OLD = schema(("id", "long"))
NEW = schema(("id", "long"), ("note", ["null", "string"]))
GROWS_AT = 17
"""The offset from which on records are of the newer schema."""


@pytest.fixture
def registry() -> Iterator[FakeSchemaRegistry]:
    with running_registry() as running:
        yield running


def written(text: str, schema_id: int, row: dict[str, Any]) -> bytes:
    """As Confluent's serializer does."""
    out = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(text)), row)
    return out.getvalue()


class AvroRows:
    """The rows of a made-up log, as Avro of two schemas."""

    def __init__(self, old_id: int, new_id: int) -> None:
        self.old_id, self.new_id = old_id, new_id

    def __call__(self, piece: Piece, /) -> Iterator[pa.RecordBatch]:
        for batch in read_rows(piece):
            values = [self.value(offset) for offset in batch.column("offset").to_pylist()]
            at = batch.schema.get_field_index("value")
            column = pa.array(values, pa.binary())
            yield batch.set_column(at, batch.schema.field(at), column)

    def value(self, offset: int) -> bytes:
        if offset < GROWS_AT:
            return written(OLD, self.old_id, {"id": offset})
        return written(NEW, self.new_id, {"id": offset, "note": f"n{offset}"})


def config(root: Path, registry: FakeSchemaRegistry) -> JobConfig:
    return parse_job(
        f"name: orders-lake\nsource: {{topic: orders, location: /b}}\n"
        f"value: {{format: avro, registry: {{url: '{registry.url}'}}}}\n"
        f"key: {{format: none}}\nsink: {{type: delta, table: {root}/orders}}\n"
        "batch: {max_bytes: 2500}\n"
    )


def job(kind: str, root: Path, registry: FakeSchemaRegistry, rows: AvroRows) -> LakeJob:
    settings = config(root, registry)
    sink = open_sink(kind, root)
    quarantine = open_sink(kind, root, name="orders_quarantine")
    store = settings.sink_store

    def spec(converter: ConverterSpec) -> TaskSpec:
        targets: Sequence[TableTarget] = [
            TableTarget(OpenTableStore(one.store.uri, store), one.folder, WriterOptions())
            for one in (sink, quarantine)
        ]
        return TaskSpec(targets[0], targets[1], converter)

    return LakeJob(
        job_settings(settings)._replace(task_bytes=1000),
        FakeLog({0: (0, 40)}),
        sink,
        quarantine,
        spec,
        JobColumns(settings, LocalFilesystem(), lambda side: ()),
        LocalRunner(rows),
        SystemClock(),
        SystemRandomness(),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_grows_in_the_batch_that_needs_it(
    kind: str, tmp_path: Path, registry: FakeSchemaRegistry
) -> None:
    """Rows before have none of the new field; no row is lost, doubled or cut short."""
    rows = AvroRows(registry.register("orders-value", OLD), 2)
    keeper = job(kind, tmp_path, registry, rows)
    assert rows.new_id == registry.register("other-subject", NEW)
    while keeper.step() is not None:
        pass
    table = read_table(kind, tmp_path).sort_by("offset")
    offsets = [offset for offset in range(40) if not is_marker(offset)]
    assert coordinates(table) == [(0, offset) for offset in offsets]
    assert table.column("id").to_pylist() == offsets
    notes = [None if offset < GROWS_AT else f"n{offset}" for offset in offsets]
    assert table.column("note").to_pylist() == notes
    assert job(kind, tmp_path, registry, rows).step() is None
