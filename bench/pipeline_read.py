"""Reading a piece of a tiered segment, without Spark: MB/s per CPU second of `read_piece` alone.

    python -m bench.pipeline_read                       files, and versitygw if it is built
    python -m bench.pipeline_read --mib 512 --rounds 5 --server minio

A segment of batches of about 16 KiB (those of `bench.pipeline_decode`), stored in chunks of the
default size, is read again and again by one process; columns as Spark's Kafka source has them.

    rows      all of `read_piece`: fetch, sums, batches, rows in Arrow
    batches   without rows: what fetching, comparing and cutting costs
    gets      one loop of 8 MiB GETs by aiobotocore, four at a time, and nothing else: the anchor

CPU is the reading process's, user and system, with its threads; the store's is its own. MB are
10^6 stored bytes. The object is in the page cache.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from bench.pipeline_decode import Case, make_log
from bench.s3_server import (
    ACCESS_KEY_ID,
    REGION,
    SECRET_ACCESS_KEY,
    is_built,
    s3_server,
)
from pipeline.plan.bucket import BucketOptions
from pipeline.plan.piece import PartitionName, RemotePiece
from pipeline.read.bytes.batch_runs import batch_runs
from pipeline.read.bytes.byte_source import FileBytes, StoreBytes
from pipeline.read.bytes.chunk_stream import ChunkStream
from pipeline.read.bytes.open_buckets import OpenBuckets
from pipeline.read.bytes.open_segment import open_segment
from pipeline.read.piece.piece_rows import PieceReader, ReadOptions
from protocol.records.batch import crc32c, iterate_batches
from protocol.records.compression import Codec
from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from tiered.format.chunk_index import FixedChunkIndex
from tiered.format.manifest import SegmentManifest, StoredSideFile
from tiered.format.object_keys import ObjectKeys
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    TopicIdPartition,
)
from tiered.tier import SideFile, TopicFacts

MIB = 1 << 20
CHUNK_BYTES = 8 * MIB
BUCKET = "bench"
TOPIC = TopicIdPartition(UUID(int=1), "orders", 0)
GET_BYTES = 8 * MIB
GETS_AT_A_TIME = 4


class Stored(NamedTuple):
    """A segment as it lies in a bucket."""

    objects: dict[str, bytes]
    piece: RemotePiece
    rows: int
    size: int
    log_key: str


def make_segment(case: Case, size: int) -> Stored:
    """Chunks of `make_log` as one segment, each sum told, without side files."""
    log = b"".join(make_log(case, size))
    headers = [header for _, header in iterate_batches(memoryview(log))]
    end = headers[-1].next_offset
    metadata = RemoteLogSegmentMetadata(
        segment_id=RemoteLogSegmentId(TOPIC, UUID(int=case.value_size)),
        start_offset=0,
        end_offset=end - 1,
        max_timestamp_ms=0,
        broker_id=1,
        event_timestamp_ms=0,
        segment_size_bytes=len(log),
        segment_leader_epochs=(SegmentEpoch(0, 0),),
    )
    sums = array(
        "I", [crc32c(log[at : at + CHUNK_BYTES]) for at in range(0, len(log), CHUNK_BYTES)]
    )
    last = len(log) % CHUNK_BYTES or CHUNK_BYTES
    empty = StoredSideFile(0, 0, 0, crc32c(b""), crc32c(b""))
    manifest = SegmentManifest(
        metadata=metadata,
        chunk_index=FixedChunkIndex(CHUNK_BYTES, len(log), CHUNK_BYTES, last),
        chunk_crcs=sums,
        stored_crcs=sums,
        side_files={kind: empty for kind in SideFile if kind is not SideFile.TRANSACTION},
        compression=False,
        encryption=None,
        topic=TopicFacts(1, {}, "bench"),
        created_ms=0,
        software="bench",
    )
    keys = ObjectKeys().segment_keys(metadata)
    name = PartitionName(TOPIC.topic, TOPIC.topic_id, TOPIC.partition)
    piece = RemotePiece(name, metadata.id, 0, 0, len(log), 0, end)
    objects = {keys.log: log, keys.indexes: b"", keys.manifest: manifest.to_json()}
    return Stored(objects, piece, end, len(log), keys.log)


def cpu_s() -> float:
    """CPU of this process so far, with its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def in_directory(stored: Stored) -> Iterator[BucketOptions]:
    """The bucket is a directory."""
    with tempfile.TemporaryDirectory(prefix="varve-bench-") as directory:
        for key, data in stored.objects.items():
            path = Path(directory) / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield BucketOptions(f"file://{directory}")


@contextmanager
def on_server(stored: Stored, name: str) -> Iterator[BucketOptions]:
    """The bucket is on an S3 server of this machine."""
    with s3_server(name) as url:
        options = BucketOptions(
            f"s3://{BUCKET}",
            endpoint=url,
            region=REGION,
            path_style=True,
            access_key_id=ACCESS_KEY_ID,
            secret_access_key=SECRET_ACCESS_KEY,
        )
        asyncio.run(_upload(url, stored))
        yield options


def _session(url: str) -> Any:
    from aiobotocore.session import get_session  # heavy: only the S3 rows need it

    return get_session().create_client(
        "s3",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY_ID,
        aws_secret_access_key=SECRET_ACCESS_KEY,
    )


async def _upload(url: str, stored: Stored) -> None:
    async with _session(url) as client:
        await client.create_bucket(Bucket=BUCKET)
        for key, data in stored.objects.items():
            await client.put_object(Bucket=BUCKET, Key=key, Body=data)


async def _gets(url: str, stored: Stored) -> int:
    """All of the object by GETs of 8 MiB."""
    positions = [*range(0, stored.size, GET_BYTES)]
    total = 0

    async def work(client: Any) -> None:
        nonlocal total
        while positions:
            at = positions.pop(0)
            wanted = f"bytes={at}-{min(at + GET_BYTES, stored.size) - 1}"
            answer = await client.get_object(Bucket=BUCKET, Key=stored.log_key, Range=wanted)
            async with answer["Body"] as body:
                data = await body.read()
            total += len(data)

    async with _session(url) as client:
        await asyncio.gather(*(work(client) for _ in range(GETS_AT_A_TIME)))
    return total


def ways(
    stored: Stored, options: BucketOptions, buckets: OpenBuckets
) -> dict[str, Callable[[], int]]:
    """What is measured, by name; each gives the bytes or rows that it has seen."""
    filesystem = LocalFilesystem()
    read = ReadOptions(bucket=options)

    def rows() -> int:
        reader = PieceReader(read, buckets, filesystem, SystemClock())
        return sum(batch.num_rows for batch in reader.rows(stored.piece))

    def batches() -> int:
        bucket, thread = buckets.lend(options)
        call = open_segment(bucket.store, bucket.key_ring, bucket.manifests, stored.piece)
        segment = thread.run(call)
        key, size = segment.keys.log, segment.manifest.log_size
        path = bucket.store.local_path(key)
        source: Any = StoreBytes(thread, bucket.store, key, size)
        if path is not None:
            source = FileBytes(filesystem, path, key, size)
        stream = ChunkStream(segment, source, 0, stored.size)
        return sum(len(run.data) for run in batch_runs(stream, key, 0, stored.size))

    found = {"rows": rows, "batches": batches}
    if options.endpoint:
        found["gets"] = lambda: asyncio.run(_gets(options.endpoint, stored))
    return found


def measure(stored: Stored, options: BucketOptions, rounds: int) -> dict[str, tuple[float, float]]:
    """(MB/s per CPU s, MB/s of wall time) of each way, the best of several rounds in turn."""
    buckets = OpenBuckets()
    best: dict[str, tuple[float, float]] = {}
    expected = {"rows": stored.rows, "batches": stored.size, "gets": stored.size}
    for number in range(rounds + 1):
        for name, way in ways(stored, options, buckets).items():
            began, began_cpu = time.perf_counter(), cpu_s()
            seen = way()
            wall, cpu = time.perf_counter() - began, cpu_s() - began_cpu
            if seen != expected[name]:
                raise AssertionError(f"{name} has seen {seen} instead of {expected[name]}")
            if number:  # the first one warms up
                figures = (stored.size / cpu / 1e6, stored.size / wall / 1e6)
                before = best.get(name, (0.0, 0.0))
                best[name] = (max(before[0], figures[0]), max(before[1], figures[1]))
    buckets.close()
    return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=256, help="of the segment")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", default="versitygw")
    parser.add_argument("--sizes", default="1024,100")
    parser.add_argument("--only", default="", help="files or the server's name")
    arguments = parser.parse_args()
    print(f"{'from':10} {'bytes':>6} {'what':8} {'MB/CPU s':>9} {'MB/s':>7}")
    for size in map(int, arguments.sizes.split(",")):
        stored = make_segment(Case(size, Codec.NONE), arguments.mib * MIB)
        places: dict[str, Any] = {"files": in_directory(stored)}
        if is_built(arguments.server):
            places[arguments.server] = on_server(stored, arguments.server)
        for place, opened in places.items():
            if arguments.only not in ("", place):
                continue
            with opened as options:
                for name, (per_cpu, wall) in measure(stored, options, arguments.rounds).items():
                    print(f"{place:10} {size:6} {name:8} {per_cpu:9.0f} {wall:7.0f}", flush=True)


if __name__ == "__main__":
    main()
