"""Rows of Kafka's own tools, as they are released: what a newcomer measures with.

A tool lives for seconds, so that much of what it reports is Java's warming up, on either side; its
own CPU is not counted, the broker's is.

    kafka-producer-perf-test   1000 records sent, 500.0 records/sec (0.48 MB/sec), 2.31 ms avg
                               latency, 310.00 ms max latency, 1 ms 50th, 5 ms 95th, 12 ms 99th,
                               20 ms 99.9th.                                         one line
    kafka-consumer-perf-test   a line of column names, a line of values, between them commas
    kafka-e2e-latency          Avg latency: 0.5432 ms
                               Percentiles: 50th = 0, 99th = 2, 99.9th = 5        whole ms

Source: Kafka, ProducerPerformance.java, ConsumerPerformance.java, EndToEndLatency.java.
"""

import re
from collections.abc import Callable
from typing import Final

from bench import wire
from bench.generator import LoadResult, ProduceLoad, produce, run_apart
from bench.kafka_release import (
    CONSUMER_PERFORMANCE,
    END_TO_END_LATENCY,
    PERFORMANCE_OPTIONS,
    PRODUCER_PERFORMANCE,
    KafkaRelease,
)
from bench.node import Node
from bench.process import cpu_seconds
from bench.rows import MIB, TRANSIENT, Bench, Metric, Row
from bench.verify import verify_partition

RECORD_BYTES: Final = 1000
PRODUCED_A_SECOND: Final = 100_000
"""Records a second of the row's duration: about what one producer manages."""
CONSUMED_A_SECOND: Final = 400_000
LATENCIES_A_SECOND: Final = 1_000

_PRODUCED: Final = re.compile(
    r"^(?P<records>\d+) records sent, (?P<rate>[\d.]+) records/sec \((?P<mib>[\d.]+) MB/sec\), "
    r"(?P<average>[\d.]+) ms avg latency, [\d.]+ ms max latency, (?P<p50>\d+) ms 50th, "
    r"\d+ ms 95th, (?P<p99>\d+) ms 99th",
    re.MULTILINE,
)
_LATENCY: Final = re.compile(
    r"^Avg latency: (?P<average>[\d.]+) ms\n+"
    r"Percentiles: 50th = (?P<p50>\d+), 99th = (?P<p99>\d+)",
    re.MULTILINE,
)


class ToolOutputError(RuntimeError):
    """A tool printed something else than its result."""


def parse_produced(text: str) -> dict[str, float]:
    """The last line of kafka-producer-perf-test; its "MB" are MiB.

    Raises:
        ToolOutputError: There is none.
    """
    found = list(_PRODUCED.finditer(text))
    if not found:
        raise ToolOutputError(f"no result of kafka-producer-perf-test:\n{text}")
    last = found[-1]
    return {
        "records": float(last["records"]),
        "mb_per_s": float(last["mib"]) * MIB / 1e6,
        "avg_ms": float(last["average"]),
        "p50_ms": float(last["p50"]),
        "p99_ms": float(last["p99"]),
    }


def parse_consumed(text: str) -> dict[str, float]:
    """Head and values of kafka-consumer-perf-test, between which it may have warned of something.

    Raises:
        ToolOutputError: They are not there.
    """
    lines = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    heads = [number for number, cells in enumerate(lines) if cells[0] == "start.time"]
    if heads:
        head = lines[heads[0]]
        for cells in lines[heads[0] + 1 :]:
            if len(cells) == len(head):
                values = dict(zip(head, cells, strict=True))
                return {
                    "records": float(values["data.consumed.in.nMsg"]),
                    "mb_per_s": float(values["fetch.MB.sec"]) * MIB / 1e6,
                    "join_ms": float(values["rebalance.time.ms"]),
                }
    raise ToolOutputError(f"no result of kafka-consumer-perf-test:\n{text}")


def parse_latency(text: str) -> dict[str, float]:
    """Average and percentiles of kafka-e2e-latency.

    Raises:
        ToolOutputError: They are not there.
    """
    found = _LATENCY.search(text)
    if found is None:
        raise ToolOutputError(f"no result of kafka-e2e-latency:\n{text}")
    return {
        "avg_ms": float(found["average"]),
        "p50_ms": float(found["p50"]),
        "p99_ms": float(found["p99"]),
    }


def _run(node: Node, main_class: str, topic: str, count: int, *arguments: str) -> tuple[str, float]:
    """A tool's output, and the CPU seconds of the broker meanwhile."""
    before = cpu_seconds(node.pid)
    done = KafkaRelease.resolve().tool(
        main_class,
        *("--bootstrap-server", node.address, "--topic", topic, "--num-records", str(count)),
        *arguments,
        timeout_s=600.0,
        options=PERFORMANCE_OPTIONS,
    )
    return done.stdout, cpu_seconds(node.pid) - before


def _with_topic(
    measured: Callable[[Bench, Node, str], dict[str, float]],
) -> Callable[[Bench, Node], dict[str, float]]:
    """Give a row a topic, and see that every record is in it afterwards."""

    def run(bench: Bench, node: Node) -> dict[str, float]:
        topic = bench.topic()
        with node.connect() as connection:
            wire.create_topic(connection, topic, 1, TRANSIENT)
        found = measured(bench, node, topic)
        with node.connect() as connection:
            verify_partition(connection, topic, 0, expected_records=int(found["records"]))
            wire.delete_topics(connection, [topic])
        return found

    return run


def _produce(bench: Bench, node: Node, topic: str) -> dict[str, float]:
    count = int(PRODUCED_A_SECOND * bench.duration_s)
    text, cpu_s = _run(
        *(node, PRODUCER_PERFORMANCE, topic, count),
        *("--record-size", str(RECORD_BYTES), "--throughput", "-1"),
    )
    return parse_produced(text) | {"cpu_s_per_gb": cpu_s / (count * RECORD_BYTES) * 1e9}


def _consume(bench: Bench, node: Node, topic: str) -> dict[str, float]:
    batch = wire.record_batch([b"v" * RECORD_BYTES] * 16)
    size = int(CONSUMED_A_SECOND * bench.duration_s) // 16 * len(batch)
    load = ProduceLoad(*(node.port, node.pid, topic, (0,), batch, 5, 600.0, size), host=node.host)
    filled: LoadResult = run_apart(None, produce, load)
    count = filled.requests * 16
    text, cpu_s = _run(node, CONSUMER_PERFORMANCE, topic, count, "--timeout", "60000")
    return parse_consumed(text) | {"cpu_s_per_gb": cpu_s / (count * RECORD_BYTES) * 1e9}


def _latency(bench: Bench, node: Node, topic: str) -> dict[str, float]:
    count = int(LATENCIES_A_SECOND * bench.duration_s)
    text, cpu_s = _run(
        *(node, END_TO_END_LATENCY, topic, count),
        *("--producer-acks", "all", "--record-size", str(RECORD_BYTES)),
    )
    found = parse_latency(text)
    return found | {"records": float(count), "cpu_us_per_record": cpu_s / count * 1e6}


_MB = Metric("mb_per_s", "MB/s", "higher", 1.0)
_CPU_GB = Metric("cpu_s_per_gb", "CPU s/GB", "lower", 1.0)

TOOL_ROWS: tuple[Row, ...] = (
    Row(
        "tool-producer-perf",
        "kafka-producer-perf-test, 1,000 B, as fast as it goes",
        (
            _MB,
            _CPU_GB,
            Metric("avg_ms", "ms", "lower"),
            Metric("p50_ms", "ms", "lower"),
            Metric("p99_ms", "ms", "lower"),
        ),
        _with_topic(_produce),
        warm_up_s=2.0,
    ),
    Row(
        "tool-consumer-perf",
        "kafka-consumer-perf-test, 1,000 B",
        (_MB, _CPU_GB, Metric("join_ms", "ms", "lower")),
        _with_topic(_consume),
        warm_up_s=2.0,
    ),
    Row(
        "tool-e2e-latency",
        "kafka-e2e-latency, 1,000 B, acks=all",
        (
            Metric("avg_ms", "ms", "lower", 1.0),
            Metric("p50_ms", "whole ms", "lower"),
            Metric("p99_ms", "whole ms", "lower"),
            Metric("cpu_us_per_record", "CPU us/record", "lower"),
        ),
        _with_topic(_latency),
        warm_up_s=2.0,
    ),
)
