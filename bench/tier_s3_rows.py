"""The rows of the remote log on S3: Varve beside a plain parallel reader of the same objects.

The server is versitygw, on this machine and on the same cores as everything else, its objects in
the page cache. So no network hides what a read costs; the server and whoever reads share the CPU.

One run goes round: Varve, the plain reader with 4 ranges in flight, then with 8, and again. Before
each of Varve's turns its chunk cache is removed while it is stopped, and one small topic is read:
imports, metadata and connections are a start's price, not a catch-up's. Both sides read the
tiered bytes and no others, in ranges of one chunk.

What Varve has read lies in its chunk cache, so it needs memory for page cache; the plain reader
drops what it gets. On a virtual machine that gives free memory back to its host, memory that is
touched first is paid for with page faults there, ten times what the copy takes: more than all that
is to be measured. So right before each of Varve's turns a file as large as what the turn will keep
is written and removed: the kernel then has that memory. What this took is told beside the figures
(`fresh_memory_s_per_gb`); on a machine without such a host it is 0.1 to 0.3.
"""

import os
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

from bench import wire
from bench.generator import run_apart
from bench.node import VarveNode
from bench.plain_reader import PlainLoad, PlainResult, read_plain
from bench.process import cpu_seconds
from bench.replay import History, ReplayLoad, ReplayResult, replay
from bench.rows import MIB, Bench, Metric, Row
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
_WARM_BYTES = 8 * MIB
_CACHE_BYTES = 1024 * MIB
"""`rsm.config.fetch.chunk.cache.size`, its default."""


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


def _claim_memory(directory: Path, size: int) -> float:
    """Have the kernel own the page cache that a turn needs; CPU seconds per GB that took."""
    path = directory / "claimed"
    block = bytes(CHUNK_BYTES)
    begin = time.process_time()
    with path.open("wb", buffering=0) as file:
        for _ in range(size // len(block)):
            file.write(block)
    taken = time.process_time() - begin
    path.unlink()
    return taken / size * 1e9


def _gets(node: VarveNode) -> float:
    # The tier process tells its counters now and then.
    time.sleep(COUNTERS_S)
    return metric_sum(node, STORE_CALLS, call="get_range")


def _read_cold(node: VarveNode, history: History, warm: History) -> dict[str, float]:
    """What one consumer gets from a broker whose chunk cache is empty."""
    node.stop()
    shutil.rmtree(node.data_directory / "varve-chunk-cache")
    node.start()
    with node.connect() as connection:
        for one in (warm, history):
            wire.wait_until_led(connection, one.topic, 1)
    run_apart(None, replay, ReplayLoad(node.port, node.pid, warm))
    before = _gets(node)
    os.sync()
    # At once, and again: the host takes back what is free after two seconds.
    fresh_s = _claim_memory(node.directory, min(history.size_bytes, _CACHE_BYTES))
    _claim_memory(node.directory, min(history.size_bytes, _CACHE_BYTES))
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
        "fresh_memory_s_per_gb": fresh_s,
    }


def _round(
    node: VarveNode,
    server_pid: int,
    history: History,
    warm: History,
    objects: list[tuple[str, int]],
) -> dict[str, float]:
    """Each reader once."""
    found = _read_cold(node, history, warm)
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
    found["share_of_plain"] = found["mb_per_s"] / max(
        found[f"plain_{in_flight}_mb_per_s"] for in_flight in _IN_FLIGHT
    )
    return found


def _s3_catch_up(bench: Bench, kind: str) -> dict[str, float]:
    """Medians of the rounds; of the share also its extremes."""
    if not is_built(_SERVER):
        raise RuntimeError(f"{_SERVER} is not built: .ci/s3-servers does it")
    with running_s3_server(_SERVER) as server:
        client = _client(server.url)
        client.create_bucket(Bucket=_BUCKET)
        settings = {
            **broker_settings(server.url, _BUCKET),
            "rsm.config.fetch.chunk.cache.size": str(_CACHE_BYTES),
        }
        node = bench.new_tiered_node(kind, settings)
        assert isinstance(node, VarveNode)
        node.start()
        try:
            size = history_bytes(bench)
            warm = write_history(node, "warm", _WARM_BYTES, segment_bytes=MIB)
            whole = write_history(node, "history", size, segment_bytes=segment_bytes(size))
            objects = _segments(client, whole.topic)
            tiered = _tiered_part(whole, sum(length for _, length in objects))
            rounds = [
                _round(node, server.pid, tiered, warm, objects)
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
            Metric("mb_per_s", "MB/s", "higher"),
            Metric("cpu_s_per_gb", "CPU s/GB", "lower"),
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
            Metric("fresh_memory_s_per_gb", "CPU s/GB", "lower"),
        ),
        run_own=_s3_catch_up,
        pairs_max=1,
        only="varve",
    ),
)

__all__ = ["TIER_S3_ROWS"]
