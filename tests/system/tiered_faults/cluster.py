"""A broker process whose bucket is a `MemoryS3`, and whether the two agree.

Times are those of the defaults divided by thirty: a task interval of 1 s instead of 30, calls of
2 s instead of 60, a silence of 333 ms instead of 10 s.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bench.node import VarveNode
from storage.types.uuid_text import format_uuid
from tests.fakes.network.client import Client
from tests.fakes.s3.memory_server import MemoryS3
from tiered.format.object_keys import HISTORY_NAME, ObjectKeys
from tiered.metadata.history import HistoryState, decode_history

INTERVAL_MS = 1_000
CALL_TIMEOUT_MS = 2_000
READ_TIMEOUT_MS = 333
SEGMENT_BYTES = 1 << 20

PROPERTIES: dict[str, str] = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": str(INTERVAL_MS),
    "remote.log.manager.task.retry.backoff.ms": "50",
    "remote.log.manager.task.retry.backoff.max.ms": str(INTERVAL_MS),
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "remote.fetch.max.wait.ms": "300",
    "rsm.config.chunk.size": str(256 << 10),
    "tier.gc.grace.ms": "0",
    "tier.verify.bytes.per.second": "0",
}
S3_PROPERTIES: dict[str, str] = {
    "rsm.config.storage.backend.class": "s3",
    "rsm.config.storage.s3.bucket.name": "tiered",
    "rsm.config.storage.s3.region": "us-east-1",
    "rsm.config.storage.aws.access.key.id": "varve-test",
    "rsm.config.storage.aws.secret.access.key": "varve-test-secret",
    "rsm.config.storage.s3.multipart.upload.part.size": str(5 << 20),
    "tier.s3.checksum": "crc32c",
    "tier.store.connect.timeout.ms": str(READ_TIMEOUT_MS // 2),
    "tier.store.read.timeout.ms": str(READ_TIMEOUT_MS),
    "tier.store.call.timeout.ms": str(CALL_TIMEOUT_MS),
}
TIERED: dict[str, object] = {
    "remote_storage_enable": "true",
    "segment_bytes": SEGMENT_BYTES,
    "local_retention_bytes": 1,
    "file_delete_delay_ms": 0,
    "retention_ms": -1,
}
FOREIGN_KEYS = ("varve-cluster.json", "varve-clock.json", "varve-verified.json", f"/{HISTORY_NAME}")
"""Ends of the names of objects that are no segment's."""


def s3_node(
    directory: Path, s3: MemoryS3, properties: Mapping[str, str] | None = None
) -> VarveNode:
    """Not started."""
    endpoint = {"rsm.config.storage.s3.endpoint.url": s3.url}
    return VarveNode(directory, {**PROPERTIES, **S3_PROPERTIES, **endpoint, **(properties or {})})


Connect = Callable[[str], Awaitable[Client]]


@asynccontextmanager
async def clients_of(node: VarveNode) -> AsyncIterator[Connect]:
    """Makes clients by their id, which are closed at the end."""
    async with AsyncExitStack() as stack:

        async def connect(client_id: str) -> Client:
            client = await Client.connect(node.host, node.port, client_id)
            return await stack.enter_async_context(client)

        yield connect


async def admin(address: str, method: str, path: str) -> tuple[int, Any]:
    """Status and JSON of a page of the admin port."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nVarve-Action: test\r\n\r\n".encode()
        )
        answer = await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    if length is None or len(body) < int(length[1]):
        raise ConnectionResetError("the broker has died in the middle of an answer")
    return int(head.split(b" ", 2)[1]), json.loads(body)


async def partition(address: str, topic: str) -> dict[str, Any]:
    """What `/tier` says of partition 0 of a topic; empty while it is not led."""
    status, page = await admin(address, "GET", f"/tier?topic={topic}")
    return dict(page["partitions"][0]) if status == 200 else {}


async def is_copied(address: str, topic: str) -> bool:
    """Whether all closed segments are in the bucket, nothing is half done, the rest is local."""
    row = await partition(address, topic)
    if not row.get("ready"):
        return False
    local = row["local"]
    # A broker that died between a roll and its write leaves an empty active segment, and retention
    # by size, as Kafka's, keeps the one before it then.
    is_alone = not any(segment["bytes"] for segment in local[1:])
    # What is below the log start, and will stay there, was perhaps removed before it was copied.
    return bool(
        is_alone
        and row["unfinishedSegments"] == 0
        and max(row["highestRemote"], row["logStart"] - 1) >= local[-1]["start"] - 1
    )


async def until_copied(address: str, topic: str, timeout_s: float = 60.0) -> float:
    """Wait for it; how many seconds it took."""
    began = time.monotonic()
    while not await is_copied(address, topic):
        took = time.monotonic() - began
        assert took < timeout_s, await partition(address, topic)
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def disagreement(
    address: str, topics: Iterable[str], keys: Iterable[str]
) -> tuple[list[str], list[str]]:
    """(orphans, missing): keys that no metadata owns, and such as it names that are not there."""
    owned = set()
    for topic in topics:
        row = await partition(address, topic)
        assert row, topic
        for segment in row["remote"]:
            name = f"{segment['start']:020}-{segment['id']}"
            assert segment["state"] == "COPY_SEGMENT_FINISHED", segment
            stem = f"{topic}-{row['topicId']}/0/{name}"
            owned |= {f"{stem}{suffix}" for suffix in (".log", ".indexes", ".rsm-manifest")}
    present = {key for key in keys if not key.endswith(FOREIGN_KEYS)}
    return sorted(present - owned), sorted(owned - present)


def broken_promises(histories: Mapping[str, bytes], keys: Iterable[str]) -> list[str]:
    """What the bucket's histories promise readers and does not hold: names of missing objects.

    Args:
        histories: The objects, by name.
        keys: What was in the bucket when they were read, or a little before.
    """
    present = set(keys)
    return sorted(
        key
        for name, data in histories.items()
        for segment in decode_history(data, name).segments
        for key in ObjectKeys().segment_keys(segment)
        if key not in present
    )


def log_start_told(histories: Mapping[str, bytes], topic: str) -> int:
    """The log start of partition 0 that readers are told; 0 where they are told nothing."""
    found = [
        decode_history(data, name).summary
        for name, data in histories.items()
        if name.startswith(f"{topic}-")
    ]
    return max((one.log_start_offset for one in found if one.state is HistoryState.LIVE), default=0)


async def is_told(address: str, topic: str, histories: Mapping[str, bytes]) -> bool:
    """Whether the history of partition 0 says what the broker knows."""
    row = await partition(address, topic)
    if not row.get("ready"):
        return False
    stem = f"{topic}-{row['topicId']}/0/"
    data = histories.get(stem + HISTORY_NAME)
    if data is None:
        return not row["remote"]
    history = decode_history(data, stem)
    told = {f"{one.start_offset}-{format_uuid(one.id)}" for one in history.segments}
    known = {f"{one['start']}-{one['id']}" for one in row["remote"]}
    return told == known and history.summary.log_start_offset == row["logStart"]
