"""Where a table's columns come from."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.lake.app.job_columns import JobColumns
from pipeline.lake.errors import ForeignTableError, JobConfigError
from pipeline.lake.schemas.registry import RegistryError
from pipeline.lake.settings.config import JobConfig, parse_job
from pipeline.lake.values.converter import Converter
from storage.environment.local_filesystem import LocalFilesystem
from tests.fakes.kafka.schema_registry import running_registry

ICEBERG = "iceberg, table: a.b, catalog: {type: sql, uri: x, warehouse: y}"


def config(value: str, key: str = "{format: raw}", *, sink: str = "delta, table: /t") -> JobConfig:
    return parse_job(
        f"source: {{topic: t, location: /b}}\nsink: {{type: {sink}}}\nvalue: {value}\nkey: {key}"
    )


def columns(given: JobConfig, sampled: Iterable[bytes | None] = ()) -> JobColumns:
    def sample(side: str) -> Iterable[bytes | None]:
        assert side in ("key", "value")
        return sampled

    return JobColumns(given, LocalFilesystem(), sample)


def test_raw_values_are_one_column() -> None:
    spec = columns(config("{format: raw}", "{format: none}")).spec(None)
    names = Converter(spec).row_schema.names
    assert names == ["topic", "partition", "offset", "timestamp", "value"]


def test_a_schema_that_is_given_is_taken(tmp_path: Path) -> None:
    (tmp_path / "s.ddl").write_text("id bigint, timestamp string")
    spec = columns(config(f"{{format: json, schema: {tmp_path}/s.ddl}}")).spec(None)
    assert Converter(spec).schema.names == ["id", "value_timestamp"]


def test_what_is_inferred_stays_fixed_by_the_table() -> None:
    """Later records look otherwise; the table's columns do not follow them."""
    first = columns(config("{format: json}"), [b'{"id": 1, "timestamp": "x"}']).spec(None)
    table = Converter(first).row_schema
    later = columns(config("{format: json}"), [b'{"other": true}']).spec(table)
    assert Converter(later).row_schema == table


@pytest.mark.parametrize("sink", ["delta, table: /t", "parquet, table: /t", ICEBERG])
def test_a_field_may_not_have_the_name_of_a_partition_column(sink: str) -> None:
    """Delta and Iceberg cannot have both; readers of a Parquet folder see the folder's value."""
    given = config("{format: json}", sink=f"{sink}, partition_by: [day(timestamp), topic]")
    with pytest.raises(ForeignTableError, match="Timestamp_Day and timestamp_day of sink"):
        columns(given, [b'{"id": 1, "Timestamp_Day": "x"}']).spec(None)
    assert columns(given, [b'{"id": 1, "timestamp_hour": "x"}']).spec(None)


def test_a_table_that_has_such_a_field_is_kept() -> None:
    plain = columns(config("{format: json}"), [b'{"timestamp_day": "x"}'])
    table = Converter(plain.spec(None)).row_schema
    sink = "parquet, table: /t, partition_by: [day(timestamp)]"
    assert Converter(columns(config("{format: json}", sink=sink)).spec(table)).row_schema == table


@pytest.mark.parametrize(
    "value",
    [
        b'{"a.b": 1, "a": {"b": 2}}',
        b'{"a.element": 1, "a": [2]}',
        b'{"a": {"b.c": 1, "b": {"c": 2}}}',
    ],
)
def test_full_names_are_told_apart_but_by_iceberg(value: bytes) -> None:
    assert columns(config("{format: json}"), [value]).spec(None)
    with pytest.raises(ForeignTableError, match=r"one full name, .*: a\.(b|element|b\.c)$"):
        columns(config("{format: json}", sink=ICEBERG), [value]).spec(None)


def test_keys_are_inferred_too() -> None:
    given = config("{format: raw}", "{format: json}")
    spec = columns(given, [b'{"id": 1}']).spec(None)
    table = Converter(spec).row_schema
    assert table.field("key").type == pa.struct([pa.field("id", pa.int64())])
    assert columns(given, []).spec(table) == spec


def test_a_sample_that_tells_nothing_is_told() -> None:
    with pytest.raises(ForeignTableError, match=r"name a file with it in value\.schema"):
        columns(config("{format: json}"), [b"no json"]).spec(None)


def test_a_registrys_schema_is_the_tables() -> None:
    """Its latest of the subject, which is the topic's where none is named."""
    with running_registry() as registry:
        text = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
        registry.register("t-value", text)
        given = config(f"{{format: avro, registry: {{url: '{registry.url}'}}}}")
        assert Converter(columns(given).spec(None)).schema.names == ["id"]
        missing = f"{{format: avro, registry: {{url: '{registry.url}', subject: none}}}}"
        with pytest.raises(ForeignTableError, match="has no subject none"):
            columns(config(missing)).spec(None)
        registry.faults = [(401, b"{}")]
        with pytest.raises(RegistryError, match="refuses user or password"):
            columns(given).spec(None)


def test_what_a_table_cannot_have_is_told() -> None:
    table = pa.schema([pa.field("id", pa.list_(pa.int64()))])
    with running_registry() as registry:
        url = registry.url
        wide = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
        found = registry.register("t-value", wide)
        job = columns(config(f"{{format: avro, registry: {{url: '{url}'}}}}"))
        with pytest.raises(ForeignTableError, match="id is list"):
            job.spec(table)
        spec = job.spec(None)
        with pytest.raises(ForeignTableError, match="has no schema 99"):
            job.evolved(spec, frozenset({99}))
        assert job.evolved(spec, frozenset({found})) == spec


def test_schema_files_are_read_before_anything_else(tmp_path: Path) -> None:
    (tmp_path / "bad.ddl").write_text("id bigbig")
    both = config(
        f"{{format: json, schema: {tmp_path}/none.ddl}}",
        f"{{format: json, schema: {tmp_path}/bad.ddl}}",
    )
    with pytest.raises(JobConfigError) as refused:
        columns(both)
    assert [mistake.partition(":")[0] for mistake in refused.value.mistakes] == [
        "value.schema",
        "key.schema",
    ]
