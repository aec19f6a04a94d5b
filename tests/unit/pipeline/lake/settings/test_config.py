"""A job's settings: all mistakes at once, in words that help, and no secret repeated."""

import pickle

import pytest

from pipeline.lake.errors import JobConfigError
from pipeline.lake.settings.config import (
    ONCE,
    JobConfig,
    PartitionField,
    parse_job,
    parse_partition_field,
)

WHOLE = """
source:
  location: s3://bucket/prefix
  topic: orders
  bootstrap: localhost:9092
  isolation: read_committed
  start: earliest
  store: {access_key_id: someone, secret_access_key: hush-hush, path_style: true}
value: {format: json, schema: orders.json}
sink:
  type: delta
  table: s3://bucket/table
  partition_by: [day(timestamp)]
  target_file_bytes: 64 MiB
mode: append
errors: {quarantine: table}
batch: {max_bytes: 4 GiB, every: 60 s}
"""


def mistakes_of(text: str) -> tuple[str, ...]:
    with pytest.raises(JobConfigError) as refused:
        parse_job(text)
    return refused.value.mistakes


def test_the_documented_job_is_one() -> None:
    job = parse_job(WHOLE)
    assert job.sink.partition_by == (PartitionField("day", "timestamp"),)
    assert job.sink.target_file_bytes == 64 << 20
    assert job.batch.max_bytes == 4 << 30
    assert job.batch.every_ms == 60_000
    assert job.value.schema_file == "orders.json"
    assert job.job_name == "varve-orders"
    assert job.sink_store == job.source.store


def test_defaults_are_exactly_once_from_the_start_of_the_log() -> None:
    job = parse_job("{source: {topic: t, location: /b}, sink: {type: parquet, table: /t}}")
    assert job.source.isolation == "read_committed"
    assert job.source.start == "earliest"
    assert job.source.fail_on_data_loss
    assert job.batch.every_ms == ONCE
    assert job.errors.quarantine == "table"


def test_every_mistake_is_told_at_once() -> None:
    """With the names that are meant."""
    found = mistakes_of(
        """
        source: {locaton: /b, start: sometimes, location: /b}
        value: {format: xml}
        sink: {type: delta, table: /t, partition_by: [day(offset)], target_file_bytes: much}
        batch: {evry: 60 s}
        """
    )
    text = "\n".join(found)
    assert "source.topic: is needed" in text
    assert "source.locaton: is no setting; meant: location" in text
    assert "source.start: earliest, latest, a mapping" in text
    assert (
        "value.format: Input should be 'raw', 'string', 'json', 'avro', 'protobuf' or 'none'"
        in text
    )
    assert "sink.partition_by.0: of times, tables are partitioned by timestamp only" in text
    assert "sink.target_file_bytes: a size such as 128 MiB is expected" in text
    assert "batch.evry: is no setting; meant: every" in text
    assert len(found) == 7


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("sink: {type: iceberg, table: ns.t}", "an Iceberg table needs a catalog"),
        (
            "sink: {type: iceberg, table: t, catalog: {type: sql, uri: x}}",
            "an Iceberg table is named namespace.table",
        ),
        (
            "sink: {type: delta, table: /t, catalog: {type: sql, uri: x}}",
            "a delta table has no catalog",
        ),
        ("sink: {type: delta, table: t}", "s3://bucket/prefix or file:///dir is expected"),
        (
            "sink: {type: delta, table: /t, partition_by: [partition, partition]}",
            "names a field twice",
        ),
    ],
)
def test_settings_that_contradict_are_refused(section: str, problem: str) -> None:
    assert problem in mistakes_of(f"source: {{topic: t, location: /b}}\n{section}")[0]


def test_a_source_is_a_bucket_or_a_broker() -> None:
    text = "{source: {topic: t}, sink: {type: delta, table: /t}}"
    assert mistakes_of(text) == ("source: a location, a bootstrap or both are needed",)


@pytest.mark.parametrize("text", ["", "- 1", "a: [", "text"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    assert len(mistakes_of(text)) == 1


def test_secrets_are_shown_nowhere() -> None:
    """Not in the settings' text, and not in the error of another mistake."""
    job = parse_job(WHOLE)
    assert "hush" not in repr(job)
    assert "hush" not in str(job)
    found = mistakes_of(WHOLE.replace("access_key_id: someone, ", ""))
    assert "hush" not in "".join(found)
    assert "go together" in found[0]


def test_a_catalog_takes_what_pyiceberg_takes() -> None:
    job = parse_job(
        "{source: {topic: t, location: /b}, sink: {type: iceberg, table: ns.t, "
        "catalog: {type: rest, uri: 'http://c', warehouse: w, token: hush}}}"
    )
    assert job.sink.catalog is not None
    assert job.sink.catalog.properties() == {
        "type": "rest",
        "uri": "http://c",
        "warehouse": "w",
        "token": "hush",
    }
    assert "hush" not in repr(job)


def test_settings_can_be_pickled() -> None:
    """Parts of them go to executors."""
    job = parse_job(WHOLE)
    assert pickle.loads(pickle.dumps(job)) == job
    assert isinstance(job, JobConfig)


def test_a_field_names_its_column() -> None:
    assert parse_partition_field("hour( timestamp )").name == "timestamp_hour"
    assert parse_partition_field("partition").name == "partition"
    for text in ("key", "day()", "day(key)", "week(timestamp)", 7):
        with pytest.raises(ValueError, match=r"expected|partitioned by"):
            parse_partition_field(text)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("{format: avro}", "avro needs a schema or a registry"),
        ("{format: raw, schema: x}", "raw has no schema"),
        ("{format: json, message: x}", "message is for protobuf"),
        ("{format: none}", "none is for keys"),
        ("{format: avro, wire: plain, registry: {url: 'http://r'}}", "plain values"),
        ("{format: avro, registry: {url: 'http://me:pw@r'}}", "registry.url"),
    ],
)
def test_a_format_has_what_it_needs(value: str, problem: str) -> None:
    text = f"source: {{topic: t, location: /b}}\nsink: {{type: delta, table: /t}}\nvalue: {value}"
    (mistake,) = mistakes_of(text)
    assert problem in mistake
    assert "pw" not in mistake


def test_a_registry_means_its_wire_format() -> None:
    job = parse_job(
        "{source: {topic: t, location: /b}, sink: {type: delta, table: /t}, "
        "value: {format: avro, registry: {url: 'http://r'}}, key: {format: none}}"
    )
    assert job.value.wire_format == "confluent"
    assert job.key.wire_format == "plain"
