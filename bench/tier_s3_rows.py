"""The rows of the remote log on S3: Varve beside a plain parallel reader of the same objects.

Beside both the least that a broker with its chunks in files does (`bench.relay`): what it reaches
of the plain reader is what these cores leave to any such broker. And the least of one that keeps
no chunk (`unkept`), which a second reader, or a restart, would have fetched again.

The server is versitygw, on this machine and on the same cores as everything else, its objects in
the page cache. So no network hides what a read costs; the server and the reader share the CPU.

One run goes round: Varve, the plain reader with 4 ranges in flight, then with 8, the relay with 4,
and again. All read the tiered bytes and no others, in ranges of one chunk. Varve's chunk cache
holds half of the history. Before each of Varve's turns another topic is read that fills it, so
nothing of the history is in it (the GETs are counted), and it is full, as it is wherever it has
been in use: each chunk takes the place of another.

A cache that still grows would measure something else: on a virtual machine that gives free memory
back to its host, memory that is touched first is paid for with page faults there, ten times what
the copy takes, and more than all that is to be measured here.
"""

import os
import statistics
import time
from typing import Any

from bench.generator import run_apart
from bench.node import VarveNode
from bench.plain_reader import PlainLoad, PlainResult, read_plain
from bench.process import cpu_seconds
from bench.relay import relay
from bench.replay import History, ReplayLoad, ReplayResult, replay
from bench.rows import Bench, Metric, Row
from bench.s3_server import (
    ACCESS_KEY_ID,
    REGION,
    SECRET_ACCESS_KEY,
    broker_settings,
    is_built,
    running_s3_server,
)
from bench.tier_rows import (
    COUNTERS_S,
    STORE_CALLS,
    history_bytes,
    metric_sum,
    segment_bytes,
    verify_history,
    write_history,
)
from bench.tiered_node import CHUNK_BYTES

_SERVER = "versitygw"
_BUCKET = "bench"
_IN_FLIGHT = (4, 8)
_ROUNDS = 5


def _client(url: str) -> Any:
    import botocore.config  # heavy: only this row needs it
    import botocore.session  # likewise

    return botocore.session.get_session().create_client(
        "s3",
        region_name=REGION,
        endpoint_url=url,
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
        config=botocore.config.Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )


def _segments(client: Any, topic: str) -> list[tuple[str, int]]:
    """Signed address and size of the topic's `.log` objects, in the order of their offsets."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=_BUCKET, Prefix=f"{topic}-")
    found = sorted(
        (one["Key"], one["Size"])
        for page in pages
        for one in page.get("Contents", ())
        if one["Key"].endswith(".log")
    )
    return [
        (
            client.generate_presigned_url(
                "get_object", {"Bucket": _BUCKET, "Key": key}, ExpiresIn=24 * 3600
            ),
            size,
        )
        for key, size in found
    ]


def _tiered_part(history: History, size: int) -> History:
    """The first `size` bytes of the one partition."""
    batches, rest = divmod(size, history.batch_size)
    if rest or not batches:
        raise AssertionError(f"{size} bytes in the bucket are no whole batches")
    end_offset = batches * history.batch_records
    return History(
        history.topic, history.partitions, history.batch_records, history.batch_size, end_offset
    )


def _gets(node: VarveNode) -> float:
    # The tier process tells its counters now and then.
    time.sleep(COUNTERS_S)
    return metric_sum(node, STORE_CALLS, call="get_range")


def _read_cold(node: VarveNode, history: History, other: History) -> dict[str, float]:
    """What one consumer gets from a broker whose chunk cache is full of another topic."""
    run_apart(None, replay, ReplayLoad(node.port, node.pid, other))
    before = _gets(node)
    os.sync()
    result: ReplayResult = run_apart(None, replay, ReplayLoad(node.port, node.pid, history))
    if result.size_bytes != history.size_bytes:
        raise AssertionError(f"read {result.size_bytes} of {history.size_bytes} bytes")
    gets = _gets(node) - before
    if gets < history.size_bytes // CHUNK_BYTES:
        raise AssertionError(f"{gets:.0f} ranged GETs: not all of it came from the store")
    return {
        "mb_per_s": result.size_bytes / result.seconds / 1e6,
        "cpu_s_per_gb": result.broker_cpu_s / result.size_bytes * 1e9,
        "longest_wait_ms": result.longest_wait_ms,
        "empty_answers": float(result.empty_answers),
        "generator_busy": result.generator_busy,
        "gets": gets,
    }


def _round(
    node: VarveNode,
    server_pid: int,
    history: History,
    other: History,
    objects: list[tuple[str, int]],
) -> dict[str, float]:
    """Each reader once."""
    found = _read_cold(node, history, other)
    for in_flight in _IN_FLIGHT:
        os.sync()
        server_before = cpu_seconds(server_pid)
        plain: PlainResult = run_apart(None, read_plain, PlainLoad(objects, CHUNK_BYTES, in_flight))
        if plain.size_bytes != history.size_bytes:
            raise AssertionError(f"the plain reader got {plain.size_bytes} bytes")
        server_s = cpu_seconds(server_pid) - server_before
        found |= {
            f"plain_{in_flight}_mb_per_s": plain.size_bytes / plain.seconds / 1e6,
            f"plain_{in_flight}_cpu_s_per_gb": plain.cpu_s / plain.size_bytes * 1e9,
            f"plain_{in_flight}_server_cpu_s_per_gb": server_s / plain.size_bytes * 1e9,
        }
    plain_mb_per_s = max(found[f"plain_{in_flight}_mb_per_s"] for in_flight in _IN_FLIGHT)
    os.sync()
    least = relay(PlainLoad(objects, CHUNK_BYTES, _IN_FLIGHT[0]), node.data_directory)
    relay_mb_per_s = least.bytes_per_s / 1e6
    unkept = relay(
        PlainLoad(objects, CHUNK_BYTES, _IN_FLIGHT[0]), node.data_directory, in_memory=True
    )
    return found | {
        "unkept_share_of_plain": unkept.bytes_per_s / 1e6 / plain_mb_per_s,
        "unkept_cpu_s_per_gb": unkept.cpu_s_per_byte * 1e9,
        "share_of_plain": found["mb_per_s"] / plain_mb_per_s,
        "share_of_relay": found["mb_per_s"] / relay_mb_per_s,
        "relay_mb_per_s": relay_mb_per_s,
        "relay_cpu_s_per_gb": least.cpu_s_per_byte * 1e9,
        "relay_share_of_plain": relay_mb_per_s / plain_mb_per_s,
    }


def _s3_catch_up(bench: Bench, kind: str) -> dict[str, float]:
    """Medians of the rounds; of the share also its extremes."""
    if not is_built(_SERVER):
        raise RuntimeError(f"{_SERVER} is not built: .ci/s3-servers does it")
    with running_s3_server(_SERVER) as server:
        client = _client(server.url)
        client.create_bucket(Bucket=_BUCKET)
        size = history_bytes(bench)
        settings = {
            **broker_settings(server.url, _BUCKET),
            "rsm.config.fetch.chunk.cache.size": str(size // 2),
        }
        node = bench.new_tiered_node(kind, settings)
        assert isinstance(node, VarveNode)
        node.start()
        try:
            filling = size // 2 + 2 * segment_bytes(size)
            other = write_history(node, "other", filling, segment_bytes=segment_bytes(size))
            whole = write_history(node, "history", size, segment_bytes=segment_bytes(size))
            objects = _segments(client, whole.topic)
            tiered = _tiered_part(whole, sum(length for _, length in objects))
            rounds = [
                _round(node, server.pid, tiered, other, objects)
                for _ in range(1 if bench.quick else _ROUNDS)
            ]
            verify_history(node, whole)
        finally:
            node.stop()
    shares = [one["share_of_plain"] for one in rounds]
    return {
        **{name: statistics.median(one[name] for one in rounds) for name in rounds[0]},
        "share_lowest": min(shares),
        "share_highest": max(shares),
    }


TIER_S3_ROWS: tuple[Row, ...] = (
    Row(
        "tier-s3-catch-up",
        "one consumer reads a partition tiered on S3, beside a plain parallel reader",
        (
            Metric("share_of_plain", "times", "higher", bound=0.8),
            Metric("share_lowest", "times", "higher"),
            Metric("share_highest", "times", "higher"),
            Metric("share_of_relay", "times", "higher"),
            Metric("mb_per_s", "MB/s", "higher"),
            Metric("cpu_s_per_gb", "CPU s/GB", "lower"),
            Metric("relay_share_of_plain", "times", "higher"),
            Metric("relay_mb_per_s", "MB/s", "higher"),
            Metric("relay_cpu_s_per_gb", "CPU s/GB", "lower"),
            Metric("unkept_share_of_plain", "times", "higher"),
            Metric("unkept_cpu_s_per_gb", "CPU s/GB", "lower"),
            *(
                metric
                for count in _IN_FLIGHT
                for metric in (
                    Metric(f"plain_{count}_mb_per_s", "MB/s", "higher"),
                    Metric(f"plain_{count}_cpu_s_per_gb", "CPU s/GB", "lower"),
                    Metric(f"plain_{count}_server_cpu_s_per_gb", "CPU s/GB", "lower"),
                )
            ),
            Metric("longest_wait_ms", "ms", "lower"),
            Metric("empty_answers", "answers", "lower"),
            Metric("gets", "GETs", "lower"),
            Metric("generator_busy", "cores", "lower"),
        ),
        run_own=_s3_catch_up,
        pairs_max=1,
        only="varve",
    ),
)

__all__ = ["TIER_S3_ROWS"]
