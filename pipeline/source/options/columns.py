"""Columns of the rows: those of Spark's Kafka source, and further fields of a batch's header.

    key            BINARY     null where the record has none
    value          BINARY     null where the record has none
    topic          STRING
    partition      INT
    offset         BIGINT
    timestamp      TIMESTAMP  of the record, or of its append
    timestampType  INT        0: set by the producer, 1: by the broker
    headers        ARRAY<STRUCT<key: STRING, value: BINARY>>   `includeHeaders`; null where there
                              are none
    leaderEpoch    INT        `batchMetadata`: of the leader that appended the batch
    producerId     BIGINT     `batchMetadata`: -1 where the producer is not idempotent
    transactional  BOOLEAN    `batchMetadata`
    tier           STRING     `batchMetadata`: "bucket" or "broker", where the row was read

Source: Spark, KafkaRecordToRowConverter.scala.
"""

from collections.abc import Sequence

TYPES = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestampType": "INT",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "leaderEpoch": "INT",
    "producerId": "BIGINT",
    "transactional": "BOOLEAN",
    "tier": "STRING",
}
"""Every column there is, in order, with its type in Spark's SQL."""

TIER_COLUMN = "tier"
RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
METADATA_COLUMNS = ("leaderEpoch", "producerId", "transactional", TIER_COLUMN)

_SPELT = {name.lower(): name for name in TYPES}


def parse_columns(text: str) -> Sequence[str]:
    """The option `columns`: names between commas, in the order they shall have.

    Raises:
        ValueError: A name is unknown, or there twice, or there is none; the rest of a sentence.
    """
    names = [word.strip() for word in text.split(",") if word.strip()]
    if not names:
        raise ValueError(f"is {text!r}, which names no column")
    unknown = [name for name in names if name.lower() not in _SPELT]
    if unknown:
        raise ValueError(f"names {', '.join(unknown)}; there are {', '.join(TYPES)}")
    columns = tuple(_SPELT[name.lower()] for name in names)
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ValueError(f"names {', '.join(twice)} twice")
    return columns


def default_columns(*, headers: bool, metadata: bool) -> Sequence[str]:
    """Columns where none are named."""
    columns = RECORD_COLUMNS + (("headers",) if headers else ())
    return columns + (METADATA_COLUMNS if metadata else ())


def schema_text(columns: Sequence[str]) -> str:
    """The schema in Spark's SQL."""
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)


def simple_schema_text(columns: Sequence[str]) -> str:
    """The same as Spark's `simpleString` has it: without a session nothing parses the other."""
    fields = ",".join(f"{name}:{TYPES[name].lower().replace(' ', '')}" for name in columns)
    return f"struct<{fields}>"
