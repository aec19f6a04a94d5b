"""What a worker's memory is, measured from outside."""

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.plan.bucket import BucketOptions
from pipeline.plan.piece import RemotePiece
from pipeline.read.piece.piece_rows import ReadOptions
from protocol.records.compression import Codec
from tests.fakes.s3.memory_server import MemoryS3, Stored
from tests.unit.pipeline.read.piece.test_segment_rows import FORMS
from tests.unit.pipeline.read.segment_world import record_segment, segment_world

LIMIT = 256 * 1024 * 1024
MIB = 1024 * 1024
ROOT = Path(__file__).resolve().parents[4]

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell a process's peak"
)


@pytest.fixture
def s3() -> Iterator[MemoryS3]:
    with MemoryS3() as server:
        yield server


def measured(s3: MemoryS3, segment: Any, **settings: Any) -> dict[str, int]:
    """Read a segment from S3 in a process of its own."""
    with segment_world(**settings) as world:
        piece: RemotePiece = world.copy(segment)
        s3.objects = {key: Stored(one.data, 0) for key, one in world.store.objects.items()}
    options = ReadOptions(
        bucket=BucketOptions(
            "s3://bucket",
            endpoint=s3.url,
            region="us-east-1",
            path_style=True,
            access_key_id="id",
            secret_access_key="secret",
        ),
        columns=("key", "value", "topic", "partition", "offset", "timestamp", "timestampType"),
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.pipeline.read.measured_reader"],
        input=pickle.dumps(([piece], options)),
        capture_output=True,
        check=True,
        timeout=120,
        cwd=ROOT,
    )
    assert done.stderr == b""
    told: dict[str, int] = json.loads(done.stdout)
    return told


def test_a_worker_stays_small_at_the_defaults(s3: MemoryS3) -> None:
    segment = record_segment(48, records=1000, value_bytes=1024)
    told = measured(s3, segment, chunk_bytes=8 * MIB)
    assert (told["rows"], told["bytes"]) == (48_000, 48_000 * 1024)
    assert told["peak"] < LIMIT, told


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS[:2])
@pytest.mark.parametrize("chunk_bytes", [64 * 1024, 16 * MIB, 90 * MIB])
def test_a_worker_stays_small_whatever_the_chunks_are(
    s3: MemoryS3, chunk_bytes: int, form: dict[str, Any]
) -> None:
    segment = record_segment(90, records=1000, value_bytes=1024)
    told = measured(s3, segment, chunk_bytes=chunk_bytes, **form)
    assert (told["rows"], told["bytes"]) == (90_000, 90_000 * 1024)
    assert told["peak"] < LIMIT, told


@pytest.mark.slow
def test_a_worker_that_decompresses_a_lot_stays_small(s3: MemoryS3) -> None:
    """Batches that are nearly nothing when stored."""
    segment = record_segment(90, records=1000, value_bytes=1024, codec=Codec.ZSTD)
    told = measured(s3, segment, chunk_bytes=16 * MIB)
    assert told["bytes"] == 90_000 * 1024
    assert told["peak"] < LIMIT, told


@pytest.mark.slow
@pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.GZIP])
def test_half_a_gigabyte_out_of_one_batch_takes_no_more(s3: MemoryS3, codec: Codec) -> None:
    segment = record_segment(2, records=500, value_bytes=MIB, codec=codec)
    told = measured(s3, segment, chunk_bytes=8 * MIB)
    assert (told["rows"], told["bytes"]) == (1000, 1000 * MIB)
    assert told["peak"] < LIMIT, told


@pytest.mark.slow
def test_large_batches_are_held_one_at_a_time(s3: MemoryS3) -> None:
    """As they are stored: they have to be whole before their records are looked for."""
    segment = record_segment(3, records=32, value_bytes=MIB - 100)
    told = measured(s3, segment, chunk_bytes=8 * MIB)
    assert told["rows"] == 96
    assert told["peak"] < LIMIT, told
