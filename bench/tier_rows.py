"""The rows of the remote log: the price of reading and writing history, for both brokers.

Every row writes a topic with `remote.storage.enable` and seconds of local retention, waits until
only the active segment is left on the local side, and verifies afterwards that every byte is still
there. The two backends differ as little as they can: both copy files to another directory of the
same disk (see `bench.tiered_node`).
"""

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench import wire
from bench.generator import LoadResult, ProduceLoad, produce, run_apart
from bench.latency import LatencyLoad, LatencyResult, measure
from bench.node import Node, OwnedNode, VarveNode
from bench.process import rss_bytes
from bench.replay import History, ReplayLoad, ReplayResult, reading, replay
from bench.rows import BROKER_CORE, GENERATOR_CORE, MIB, TRANSIENT, Bench, Metric, Row, undisturbed
from bench.tiered_node import CHUNK_BYTES, TieredVarveNode
from bench.verify import verify_partition

RECORDS, RECORD_SIZE = 64, 1000
VALUE = b"h" * RECORD_SIZE
TIERED = {
    **TRANSIENT,
    "remote.storage.enable": "true",
    "local.retention.bytes": "1",
    "local.retention.ms": "-1",
}
_SLOW_STORE_ANSWERS = 100
"""Empty answers in a row that a verifying pass bears."""


def _partition_directory(node: OwnedNode, topic: str, partition: int) -> Path:
    return node.data_directory / f"{topic}-{partition}"


def wait_until_tiered(
    node: OwnedNode, topic: str, partitions: tuple[int, ...], timeout_s: float = 600.0
) -> float:
    """Until only active segments are left on the local side; how many seconds that took."""
    begin = time.monotonic()
    while True:
        left = [
            len(list(_partition_directory(node, topic, partition).glob("*.log")))
            for partition in partitions
        ]
        if all(count == 1 for count in left):
            return time.monotonic() - begin
        node.check_alive()
        if time.monotonic() - begin > timeout_s:
            raise AssertionError(f"{node.name}: local segments {left} after {timeout_s} s")
        time.sleep(0.1)


def write_history(
    node: OwnedNode,
    topic: str,
    size: int,
    *,
    partitions: int = 1,
    segment_bytes: int = 64 * MIB,
) -> History:
    """Equal batches of 64 records in every partition, all but the active segments tiered."""
    batch = wire.record_batch([VALUE] * RECORDS)
    settings = {**TIERED, "segment.bytes": str(segment_bytes)}
    with node.connect() as connection:
        wire.create_topic(connection, topic, partitions, settings)
    indices = tuple(range(partitions))
    batches = size // partitions // len(batch)
    for index in indices:
        load = ProduceLoad(
            node.port, node.pid, topic, (index,), batch, 5, 3600.0, batches * len(batch)
        )
        filled: LoadResult = run_apart(None, produce, load)
        if filled.requests != batches:
            raise AssertionError(f"{filled.requests} batches in partition {index}, not {batches}")
    wait_until_tiered(node, topic, indices)
    return History(topic, indices, RECORDS, len(batch), batches * RECORDS)


def verify_history(node: Node, history: History, *, records: int | None = None) -> None:
    """Every byte is there; raises `VerificationError` otherwise."""
    with node.connect(timeout_s=60.0) as connection:
        for partition in history.partitions:
            verify_partition(
                connection,
                history.topic,
                partition,
                expected_records=records or history.end_offset,
                end_offset=records or history.end_offset,
                value=VALUE,
                empty_answers_max=_SLOW_STORE_ANSWERS,
            )


def _owned(node: Node) -> OwnedNode:
    assert isinstance(node, OwnedNode), "needs a broker of its own"
    return node


def history_bytes(bench: Bench) -> int:
    """How much is written, over all partitions."""
    return int(bench.tier_gib * (1 << 30))


def segment_bytes(size: int) -> int:
    """At least sixteen segments, as long as they are no smaller than a mebibyte."""
    return max(MIB, min(64 * MIB, size // 16))


# -- catching up -------------------------------------------------------------------------------


def _catch_up_row(partitions: int) -> Callable[[Bench, Node], dict[str, float]]:
    def run(bench: Bench, node: Node) -> dict[str, float]:
        owned, size = _owned(node), history_bytes(bench)
        begin = time.monotonic()
        history = write_history(
            owned,
            bench.topic(),
            size,
            partitions=partitions,
            segment_bytes=segment_bytes(size // partitions),
        )
        written = time.monotonic() - begin
        load = ReplayLoad(node.port, node.pid, history, readers=partitions, host=node.host)
        result: ReplayResult = run_apart(None, replay, load)
        if result.size_bytes != history.size_bytes:
            raise AssertionError(f"read {result.size_bytes} of {history.size_bytes} bytes")
        verify_history(node, history)
        with node.connect() as connection:
            wire.delete_topics(connection, [history.topic])
        return {
            "mb_per_s": result.size_bytes / result.seconds / 1e6,
            "cpu_s_per_gb": result.broker_cpu_s / result.size_bytes * 1e9,
            "longest_wait_ms": result.longest_wait_ms,
            "empty_answers": float(result.empty_answers),
            "written_and_tiered_s": written,
            "generator_busy": result.generator_busy,
        }

    return run


# -- others meanwhile --------------------------------------------------------------------------


def _latency(bench: Bench, node: Node, rate_per_s: int, settings: Mapping[str, str]) -> float:
    """p99 in milliseconds of 1 KB records, from the moment they were due to the acknowledgement."""
    topic = bench.topic()
    value = b"l" * 1024
    with node.connect() as connection:
        wire.create_topic(connection, topic, 1, settings)
    duration_s = bench.duration_s * (3 if rate_per_s < 1000 else 2)
    batch = wire.record_batch([value])
    load = LatencyLoad(node.port, node.pid, topic, batch, rate_per_s, duration_s, host=node.host)
    result: LatencyResult = run_apart(GENERATOR_CORE, measure, load)
    with node.connect() as connection:
        verify_partition(connection, topic, 0, value=value)
        wire.delete_topics(connection, [topic])
    return undisturbed(result)["ack_p99_ms"]


def _shared_history(bench: Bench, node: OwnedNode) -> History:
    """Written once per broker."""
    if node.name not in bench.histories:
        size = history_bytes(bench)
        bench.histories[node.name] = write_history(
            node, bench.topic(), size, segment_bytes=segment_bytes(size)
        )
    history: History = bench.histories[node.name]
    return history


def _history_reader_row(
    rate_per_s: int, reader_bytes_per_s: float | None
) -> Callable[[Bench, Node], dict[str, float]]:
    """The reader shares a core with the broker; the records' own process has the other one."""

    def run(bench: Bench, node: Node) -> dict[str, float]:
        history = _shared_history(bench, _owned(node))
        alone = _latency(bench, node, rate_per_s, TRANSIENT)
        load = ReplayLoad(
            node.port, node.pid, history, bytes_per_s=reader_bytes_per_s, host=node.host
        )
        results: list[ReplayResult] = []
        with reading(load, BROKER_CORE, results):
            time.sleep(0.5)
            beside = _latency(bench, node, rate_per_s, TRANSIENT)
        (read,) = results
        return {
            "p99_ms": alone,
            "p99_with_reader_ms": beside,
            "p99_times": beside / alone,
            "reader_mb_per_s": read.size_bytes / read.seconds / 1e6,
        }

    return run


@contextmanager
def _writing(node: Node, topic: str, bytes_per_s: float) -> Iterator[None]:
    """A paced producer of 64 KB batches on a thread of its own."""
    batch = wire.record_batch([VALUE] * RECORDS)
    stop = threading.Event()
    trouble: list[str] = []

    def write() -> None:
        written, begin = 0, time.monotonic()
        try:
            with node.connect() as connection:
                while not stop.wait(max(0.0, written / bytes_per_s - (time.monotonic() - begin))):
                    wire.produce(connection, topic, 0, batch)
                    written += len(batch)
        except (OSError, wire.WireError) as error:
            trouble.append(str(error))

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if trouble:
            raise AssertionError(trouble[0])


def _copy_tax(bench: Bench, node: Node) -> dict[str, float]:
    """The same second load on both sides of the ratio: once to a topic that is not tiered."""
    found = {}
    owned = _owned(node)
    for name, settings in (("local", TRANSIENT), ("tiered", TIERED)):
        topic = bench.topic()
        with node.connect() as connection:
            wire.create_topic(connection, topic, 1, {**settings, "segment.bytes": str(16 * MIB)})
        with _writing(node, topic, 40e6):
            time.sleep(1.0)
            found[name] = _latency(bench, node, 200, TRANSIENT)
        if name == "tiered":
            if not any(owned.directory.joinpath("remote").rglob("*.log")):
                raise AssertionError(f"{node.name}: nothing was copied meanwhile")
            wait_until_tiered(owned, topic, (0,))
        with node.connect() as connection:
            verify_partition(
                connection, topic, 0, value=VALUE, empty_answers_max=_SLOW_STORE_ANSWERS
            )
            wire.delete_topics(connection, [topic])
    return {
        "p99_ms": found["local"],
        "p99_while_copying_ms": found["tiered"],
        "p99_times": found["tiered"] / found["local"],
    }


# -- what reading costs ------------------------------------------------------------------------

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(\{[^}]*\})? ([0-9.eE+-]+|NaN)$")


def metric_sum(node: VarveNode, name: str, **labels: str) -> float:
    """The sum over all samples of a metric that carry these labels, from `/metrics`."""
    host, _, port = node.admin_address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    total, seen = 0.0, False
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match and match[1] == name and all(one in (match[2] or "") for one in wanted):
            total += float(match[3])
            seen = True
    if not seen and not re.search(rf"^# TYPE {re.escape(name)}\b", text, re.MULTILINE):
        raise AssertionError(f"no metric {name}")
    return total


COUNTERS_S = 3.0
"""After this the broker has the tier process's counters of all that was read before."""

STORE_CALLS = "varve_tier_store_calls_total"
"""Calls to the object store by the tier process, with the label `call`."""


def _second_read(bench: Bench, kind: str) -> dict[str, float]:
    """Reading a range again, and again after a restart: how often the store is asked.

    The store is a directory of this machine, so a chunk is not downloaded: it is read once,
    compared with its sum and referred to where it lies. That too counts as one `get_range`, and
    afterwards there is none, as with a bucket.
    """
    node = bench.new_tiered_node(kind, {})
    assert isinstance(node, TieredVarveNode)
    node.start()
    try:
        size = min(history_bytes(bench), 256 * MIB)
        history = write_history(node, "again", size, segment_bytes=segment_bytes(size))

        def read() -> float:
            before = metric_sum(node, STORE_CALLS, call="get_range")
            load = ReplayLoad(node.port, node.pid, history)
            run_apart(None, replay, load)
            # The tier process tells its counters now and then.
            time.sleep(COUNTERS_S)
            return metric_sum(node, STORE_CALLS, call="get_range") - before

        first = read()
        objects = node.remote_directory.rglob("*.log")
        chunks = sum(-(-path.stat().st_size // CHUNK_BYTES) for path in objects)
        if first < chunks:
            # Then nothing would follow from a second read without any.
            raise AssertionError(f"{chunks} chunks were read, {first:.0f} calls counted")
        second = read()
        node.stop()
        node.start()
        with node.connect() as connection:
            wire.wait_until_led(connection, history.topic, 1)
        restarted = read()
        verify_history(node, history)
        return {"first_gets": first, "second_gets": second, "gets_after_restart": restarted}
    finally:
        node.stop()


def _memory(bench: Bench, kind: str) -> dict[str, float]:
    """Ten readers replay the whole history; memory of broker and tier process together."""
    node = bench.new_tiered_node(kind, {})
    node.start()
    try:
        size = history_bytes(bench)
        history = write_history(node, "replayed", size, segment_bytes=segment_bytes(size))
        before = rss_bytes(node.pid)
        load = ReplayLoad(node.port, node.pid, history, readers=10)
        result: ReplayResult = run_apart(None, replay, load)
        if result.size_bytes != 10 * history.size_bytes:
            raise AssertionError(f"read {result.size_bytes} of {10 * history.size_bytes} bytes")
        verify_history(node, history)
        return {
            "rss_before_mb": before / 1e6,
            "rss_peak_mb": result.rss_peak_bytes / 1e6,
            "replayed_gb": result.size_bytes / 1e9,
            "mb_per_s": result.size_bytes / result.seconds / 1e6,
        }
    finally:
        node.stop()


_P99 = Metric("p99_ms", "ms", "lower")
_READER = Metric("reader_mb_per_s", "MB/s", "higher")
_CATCH_UP = (
    Metric("mb_per_s", "MB/s", "higher", 2.0),
    Metric("cpu_s_per_gb", "CPU s/GB", "lower", 0.5),
    Metric("longest_wait_ms", "ms", "lower"),
    Metric("empty_answers", "answers", "lower"),
    Metric("written_and_tiered_s", "s", "lower"),
    Metric("generator_busy", "cores", "lower"),
)
_BESIDE = (
    _P99,
    Metric("p99_with_reader_ms", "ms", "lower"),
    Metric("p99_times", "times", "lower", bound=1.5),
    _READER,
)

TIER_ROWS: tuple[Row, ...] = (
    Row(
        "tier-catch-up",
        "one consumer reads a tiered partition from offset 0",
        _CATCH_UP,
        _catch_up_row(1),
        tiered=True,
    ),
    Row(
        "tier-catch-up-4",
        "four consumers read a tiered partition each from offset 0",
        _CATCH_UP,
        _catch_up_row(4),
        tiered=True,
    ),
    Row(
        "tier-history-reader",
        "produce at 200/s beside a reader of history as fast as it goes",
        _BESIDE,
        _history_reader_row(200, None),
        pinned=True,
        tiered=True,
    ),
    Row(
        "tier-history-reader-2000",
        "produce at 2,000/s beside a reader of history as fast as it goes",
        _BESIDE,
        _history_reader_row(2000, None),
        pinned=True,
        tiered=True,
    ),
    Row(
        "tier-history-reader-paced",
        "produce at 200/s beside a reader of history at 50 MB/s",
        _BESIDE,
        _history_reader_row(200, 50e6),
        pinned=True,
        tiered=True,
    ),
    Row(
        "tier-copy-tax",
        "produce at 200/s beside 40 MB/s to a topic: local, and being copied",
        (
            _P99,
            Metric("p99_while_copying_ms", "ms", "lower"),
            Metric("p99_times", "times", "lower", bound=1.1),
        ),
        _copy_tax,
        pinned=True,
        tiered=True,
    ),
    Row(
        "tier-second-read",
        "GETs of a first read, a second, and one after a restart",
        (
            Metric("first_gets", "GETs", "lower"),
            Metric("second_gets", "GETs", "lower", bound=0),
            Metric("gets_after_restart", "GETs", "lower", bound=0),
        ),
        run_own=_second_read,
        pairs_max=1,
        only="varve",
    ),
    Row(
        "tier-memory",
        "ten readers replay a tiered partition",
        (
            Metric("rss_before_mb", "MB", "lower"),
            Metric("rss_peak_mb", "MB", "lower", 0.5),
            Metric("replayed_gb", "GB", "higher"),
            Metric("mb_per_s", "MB/s", "higher"),
        ),
        run_own=_memory,
        pairs_max=2,
    ),
)

__all__ = [
    "COUNTERS_S",
    "STORE_CALLS",
    "TIER_ROWS",
    "history_bytes",
    "metric_sum",
    "segment_bytes",
    "verify_history",
    "wait_until_tiered",
    "write_history",
]
