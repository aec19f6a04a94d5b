"""Microseconds per message of the Produce and Fetch codec, beside two other Python codecs.

Run `python -m bench.hot_codec`. Columns: `protocol.hot` (ours, by hand), our generated messages,
kio, kafka-python. Bodies only, without header and frame. The best of several repeats: the machine
is shared, and the least disturbed run says most about the code. Encoding gives one `bytes` in the
other codecs, a list of buffers in ours, where the records are not copied.

Before anything is timed, every codec decodes or encodes the same bytes.
"""

import datetime
import json
import os
import sys
import timeit
import uuid
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from kio.serial import entity_reader, entity_writer

from protocol.hot import fetch as hot_fetch
from protocol.hot import produce as hot_produce
from protocol.messages import fetch as generated_fetch
from protocol.messages import produce as generated_produce
from protocol.records import batch as record_batch
from protocol.records.builder import build_batch
from protocol.records.record import check_records, iterate_records, iterate_stamps

with warnings.catch_warnings():
    # Importing the package reads its resources in a way that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer import fetch as kafka_python_fetch
    from kafka.protocol.producer import produce as kafka_python_produce
    from kafka.record.default_records import DefaultRecordBatch

Row = tuple[str, list[float]]

KIB_16 = 16 * 1024
TOPIC = "benchmark"
TOPIC_ID = uuid.UUID(int=0x1234567890ABCDEF1234567890ABCDEF)
RECORDS = os.urandom(KIB_16)

GENERATED = {"produce": generated_produce, "fetch": generated_fetch}
HOT = {"produce": hot_produce, "fetch": hot_fetch}
KAFKA_PYTHON = {"produce": kafka_python_produce, "fetch": kafka_python_fetch}


def microseconds(function: Callable[[], object]) -> float:
    """Best of seven repeats of about 50 ms each."""
    number = 1
    while timeit.timeit(function, number=number) < 0.01:
        number *= 4
    number = max(1, number * 5)
    return min(timeit.repeat(function, number=number, repeat=7)) / number * 1e6


class BytesOut:
    """What kio's writers want of a file, at the least cost."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, part: bytes) -> None:
        """Keep a part."""
        self.parts.append(part)


def others(api: str, kind: str, version: int, body: bytes, *, decode: bool) -> list[float]:
    """Generated, kio, kafka-python: µs to decode `body`, or to encode what it decodes to."""
    name = f"{api.title()}{kind.title()}"
    module = GENERATED[api]
    kio_class = getattr(import_module(f"kio.schema.{api}.v{version}.{kind}"), name)
    kafka_python_class = getattr(KAFKA_PYTHON[api], name)
    view = memoryview(body)

    decode_generated = getattr(module, f"decode_{kind}")
    encode_generated = getattr(module, f"encode_{kind}")
    read = entity_reader(kio_class)
    write: Callable[[Any, Any], None] = entity_writer(kio_class)
    generated = decode_generated(view, version)
    entity = read(body, 0)[0]
    message = kafka_python_class.decode(body, version=version)
    # Set by its constructor alone; without it a decoded message cannot be encoded again.
    message._header = None

    def kio_encode() -> bytes:
        out = BytesOut()
        write(out, entity)
        return b"".join(out.parts)

    def kafka_python_encode() -> bytes:
        return bytes(message.encode(version=version))

    assert encode_generated(generated, version) == body
    assert kio_encode() == body
    assert kafka_python_encode() == body
    if decode:
        return [
            microseconds(lambda: decode_generated(view, version)),
            microseconds(lambda: read(body, 0)),
            microseconds(lambda: kafka_python_class.decode(body, version=version)),
        ]
    return [
        microseconds(lambda: encode_generated(generated, version)),
        microseconds(kio_encode),
        microseconds(kafka_python_encode),
    ]


def request_row(api: str, version: int, body: bytes, text: str) -> Row:
    """Decoding one request."""
    view = memoryview(bytearray(body))
    decode: Callable[[memoryview, int, int], object] = HOT[api].decode_request
    ours = microseconds(lambda: decode(view, 0, version))
    label = f"decode {api} request v{version}, {text}"
    return label, [ours, *others(api, "request", version, body, decode=True)]


def response_row(api: str, version: int, topics: Any, text: str) -> Row:
    """Encoding one response; the objects are given, as the log and the partition give them."""
    encode: Callable[[Any, int], Any] = HOT[api].encode_response
    buffers = encode(topics, version)
    body = buffers if isinstance(buffers, bytes) else b"".join(buffers)
    ours = microseconds(lambda: encode(topics, version))
    label = f"encode {api} response v{version}, {text}"
    return label, [ours, *others(api, "response", version, body, decode=False)]


def produce_body(version: int, partitions: int) -> bytes:
    """A Produce request of 16 KiB per partition."""
    return generated_produce.encode_request(
        generated_produce.ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                generated_produce.TopicProduceData(
                    name=TOPIC,
                    topic_id=TOPIC_ID,
                    partition_data=[
                        generated_produce.PartitionProduceData(index=index, records=RECORDS)
                        for index in range(partitions)
                    ],
                )
            ],
        ),
        version,
    )


def fetch_body(version: int, partitions: int) -> bytes:
    """A Fetch request of a consumer without a session."""
    return generated_fetch.encode_request(
        generated_fetch.FetchRequest(
            replica_id=-1,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 << 20,
            topics=[
                generated_fetch.FetchTopic(
                    topic=TOPIC,
                    topic_id=TOPIC_ID,
                    partitions=[
                        generated_fetch.FetchPartition(
                            partition=index, fetch_offset=1000, partition_max_bytes=1 << 20
                        )
                        for index in range(partitions)
                    ],
                )
            ],
        ),
        version,
    )


def produce_topics(version: int, partitions: int) -> Any:
    """What a produce handler answers."""
    topic = TOPIC_ID.bytes if version >= 13 else TOPIC
    responses = [
        hot_produce.ProducePartitionResponse(index, 0, 1000, -1, 0) for index in range(partitions)
    ]
    return [(topic, responses)]


def fetch_topics(version: int, partitions: int) -> Any:
    """What a fetch handler answers."""
    topic = TOPIC_ID.bytes if version >= 13 else TOPIC
    responses = [
        hot_fetch.FetchPartitionResponse(index, 0, 1000, 1000, 0, records=RECORDS)
        for index in range(partitions)
    ]
    return [(topic, responses)]


def codec_rows() -> list[Row]:
    """All messages."""
    one, ten, hundred = "1 partition", "10 partitions", "100 partitions"
    return [
        *(request_row("produce", v, produce_body(v, 1), one) for v in (3, 9, 11, 13)),
        request_row("produce", 9, produce_body(9, 10), ten),
        *(response_row("produce", v, produce_topics(v, 1), one) for v in (7, 9, 13)),
        response_row("produce", 9, produce_topics(9, 10), ten),
        *(request_row("fetch", v, fetch_body(v, 1), one) for v in (11, 12, 17)),
        request_row("fetch", 12, fetch_body(12, 100), hundred),
        *(response_row("fetch", v, fetch_topics(v, 1), one) for v in (11, 12, 17)),
        response_row("fetch", 12, fetch_topics(12, 100), hundred),
    ]


def batch_rows() -> list[tuple[str, float]]:
    """µs for what the log does with a batch."""
    data = build_batch([(None, RECORDS, (), 0)])
    view = memoryview(data)
    header = record_batch.read_header(view)
    return [
        ("read a batch header", microseconds(lambda: record_batch.read_header(view))),
        ("read and check a header", microseconds(lambda: record_batch.checked_header(view))),
        ("CRC-32C of 16 KiB", microseconds(lambda: record_batch.crc_matches(view, 0, header))),
        (
            "set base offset and leader epoch",
            microseconds(lambda: record_batch.set_offset_and_epoch(view, 0, 5, 6)),
        ),
    ]


def record_rows() -> list[tuple[str, float]]:
    """Million records per second, 100-byte values, 5,000 in a batch."""
    count = 5000
    base = int(datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC).timestamp() * 1000)
    records = [(b"key-%d" % n, RECORDS[n : n + 100], (), base + n) for n in range(count)]
    data = build_batch(records)
    view = memoryview(data)

    def drain(iterator: Any) -> None:
        for _ in iterator:
            pass

    def rate(function: Callable[[], object]) -> float:
        return count / microseconds(function)

    limit = len(data)
    return [
        ("iterate_records", rate(lambda: drain(iterate_records(view, max_size=limit)))),
        ("iterate_stamps", rate(lambda: drain(iterate_stamps(view, max_size=limit)))),
        ("check_records", rate(lambda: check_records(view, max_size=limit))),
        ("build_batch", rate(lambda: build_batch(records))),
        ("kafka-python, iterate", rate(lambda: drain(DefaultRecordBatch(data)))),
    ]


def main() -> None:
    """Print the tables; with `--json` one object instead."""
    codec, batches, records = codec_rows(), batch_rows(), record_rows()
    if "--json" in sys.argv[1:]:
        columns = ("hot", "generated", "kio", "kafka_python")
        result = {
            "codec_us": {label: dict(zip(columns, us, strict=True)) for label, us in codec},
            "batch_us": dict(batches),
            "million_records_per_s": dict(records),
        }
        print(json.dumps(result, indent=2))
        return
    print(
        f"{'us per message, 16 KiB of records a partition':52} ours  gener.     kio  kafka-python"
    )
    for label, us in codec:
        print(f"{label:50} {us[0]:6.2f} {us[1]:7.2f} {us[2]:7.2f} {us[3]:13.2f}")
    print("\nus per batch")
    for label, value in batches:
        print(f"{label:50} {value:6.2f}")
    print("\nmillion records per second")
    for label, value in records:
        print(f"{label:50} {value:6.2f}")


if __name__ == "__main__":
    main()
