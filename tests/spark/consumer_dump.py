"""What a consumer gets of a topic, as Parquet with the columns of Spark's Kafka source.

The consumer is librdkafka's, which shares nothing with Spark's connector or with ours. It reads
from the beginning to the end that it is told of, at an isolation level.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Message,
)
from confluent_kafka import TopicPartition as Place

from pipeline.read.decode.row_schema import KAFKA_COLUMNS, schema_of

SCHEMA: Final = schema_of(KAFKA_COLUMNS)
MESSAGES: Final = 20_000
"""Asked for at a time."""


def dump(address: str, topic: str, partitions: int, level: str, folder: Path) -> int:
    """Write all records of a topic, a file for each partition; returns how many."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "dump",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": level,
            "check.crcs": True,
            "fetch.message.max.bytes": 4 << 20,
            "queued.max.messages.kbytes": 32 << 10,
        }
    )
    consumer.assign([Place(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    reading = set(range(partitions))
    folder.mkdir()
    rows = 0
    with ExitStack() as stack:
        stack.callback(consumer.close)
        writers = [
            stack.enter_context(pq.ParquetWriter(_file(folder, number), SCHEMA, compression="zstd"))
            for number in range(partitions)
        ]
        while reading:
            found: list[list[Message]] = [[] for _ in range(partitions)]
            for message in consumer.consume(MESSAGES, timeout=1):
                error = message.error()
                number = message.partition()
                assert number is not None
                if error is None:
                    found[number].append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    reading.discard(number)
                else:
                    raise AssertionError(str(error))
            for number, messages in enumerate(found):
                if messages:
                    writers[number].write_batch(_batch(messages))
                    rows += len(messages)
    return rows


def dumped(folder: Path, partition: int) -> Iterator[Any]:
    """Record batches of a partition, in the order of their offsets."""
    with pq.ParquetFile(_file(folder, partition)) as file:
        for batch in file.iter_batches():
            yield batch.cast(SCHEMA)


def _file(folder: Path, partition: int) -> Path:
    return folder / f"{partition}.parquet"


def _batch(messages: Sequence[Message]) -> Any:
    stamps = [message.timestamp() for message in messages]
    columns = [
        [message.key() for message in messages],
        [message.value() for message in messages],
        [message.topic() for message in messages],
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        [-1000 if kind == TIMESTAMP_NOT_AVAILABLE else ms * 1000 for kind, ms in stamps],
        [int(kind == TIMESTAMP_LOG_APPEND_TIME) for kind, _ in stamps],
        [_headers(message.headers()) for message in messages],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _headers(headers: Any) -> Any:
    return headers and [{"key": key, "value": value} for key, value in headers]
