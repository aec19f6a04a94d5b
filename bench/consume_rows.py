"""Rows of hot consumers: from the page cache, beside what the machine gives without a broker.

The limit is taken on the same segment files, with the same consumers, half of it before and half
of it after the broker's sample: a shared machine's speed drifts.
"""

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from bench import wire
from bench.generator import (
    FetchLoad,
    LoadResult,
    ProduceLoad,
    fetch_all,
    produce,
    run_apart,
)
from bench.limit import LimitError, LimitLog, beside_limit, segments_of, serving
from bench.node import Node
from bench.rows import MIB, TRANSIENT, Bench, Metric, Row, rates
from bench.verify import verify_partition

RECORDS = 16
VALUE = b"v" * 1000
SIZE_BYTES = 512 * MIB


def _consume_row(consumers: int) -> Callable[[Bench, Node], dict[str, float]]:
    """512 MiB of 16 KiB batches, read again and again by each of the consumers."""
    batch = wire.record_batch([VALUE] * RECORDS)

    def run(bench: Bench, node: Node) -> dict[str, float]:
        topic = bench.topic()
        with node.connect() as connection:
            wire.create_topic(connection, topic, 1, {**TRANSIENT, "max.message.bytes": "2097152"})
        filling = ProduceLoad(
            *(node.port, node.pid, topic, (0,), batch, 5, 600.0, SIZE_BYTES), host=node.host
        )
        filled: LoadResult = run_apart(None, produce, filling)
        end_offset = filled.requests * RECORDS
        load = FetchLoad(
            *(node.port, node.pid, topic, len(batch), RECORDS, end_offset, MIB, bench.duration_s),
            host=node.host,
        )
        loads = [load] * consumers
        found = fetch_beside_limit(node, loads) if bench.beside_limit else None
        if found is None:
            found = rates(fetch_all(loads))
        with node.connect() as connection:
            verify_partition(connection, topic, 0, expected_records=end_offset, value=VALUE)
            wire.delete_topics(connection, [topic])
        return found

    return run


def fetch_beside_limit(
    node: Node, loads: Sequence[FetchLoad], programs: int = 1
) -> dict[str, float] | None:
    """A row's figures with its share of the limit; None, and a sentence, where there is none.

    Args:
        node: Whose segment files are sent.
        loads: One for each consumer.
        programs: As many send the partitions of the first loads, to the consumers in turn.
    """
    try:
        with contextlib.ExitStack() as stack:
            halves = []
            for load in loads[:programs]:
                segments = segments_of(node, load.topic, load.partition)
                log = LimitLog(load.topic, load.batch_size, load.batch_records, segments)
                port, pid = stack.enter_context(serving(log))
                half_s = load.duration_s / 2
                halves.append(
                    replace(load, port=port, pid=pid, host="127.0.0.1", duration_s=half_s)
                )
            limit = [halves[number % programs] for number in range(len(loads))]
            before = fetch_all(limit)
            ours = fetch_all(loads)
            after = fetch_all(limit)
    except LimitError as error:
        print(error, file=sys.stderr)
        return None
    return rates(ours) | beside_limit(ours, before, after)


def _metrics(goal: float) -> tuple[Metric, ...]:
    return (
        Metric("mb_per_s", "MB/s", "higher", goal),
        Metric("cpu_s_per_gb", "CPU s/GB", "lower", 0.9),
        Metric("limit_mb_per_s", "MB/s of the limit", "higher"),
        Metric("share_of_limit", "share of the limit", "higher", bound=0.9),
        Metric("cpu_x_limit", "times the limit's CPU", "lower"),
        Metric("generator_busy", "cores", "lower"),
    )


CONSUME_ROWS: tuple[Row, ...] = (
    Row(
        "consume",
        "hot consume, 16 KiB batches, 1 MiB fetches",
        _metrics(1.0),
        _consume_row(1),
    ),
    Row(
        "consume-8",
        "hot consume, 16 KiB batches, 1 MiB fetches, 8 consumers of one partition",
        _metrics(1.0),
        _consume_row(8),
    ),
)
