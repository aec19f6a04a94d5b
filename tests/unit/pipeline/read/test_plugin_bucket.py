"""A bucket that Apache Kafka filled with Aiven's plugin, from its files to rows.

What is right is what that Kafka itself gave a consumer (`tests/golden/plugin_history`).
"""

import asyncio
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.plan.bucket import BucketOptions, open_bucket
from pipeline.plan.bucket_log import read_bucket_log
from pipeline.plan.piece import RemotePiece
from pipeline.plan.splits import pieces
from pipeline.read.piece.piece_rows import ReadOptions, read_piece
from tiered.errors import RemoteStorageError

ARCHIVES = Path(__file__).resolve().parents[3] / "golden" / "plugin_history"


@pytest.fixture(params=["plain", "zstd", "encrypted", "custom"])
def moved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVES / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def options_of(moved: Path) -> BucketOptions:
    keys = moved / "keys" / "private.pem"
    return BucketOptions(
        f"file://{moved / 'store'}",
        key_pairs=(("key1", str(keys)),) if keys.exists() else (),
        key_prefix="some/prefix/",
    )


async def plan(options: BucketOptions, *, committed: bool) -> dict[tuple[str, int], Any]:
    """By partition its pieces and its end."""
    found: dict[tuple[str, int], tuple[list[RemotePiece], int]] = {}
    async with await open_bucket(options) as bucket:
        for name, topic in (await read_bucket_log(bucket)).items():
            for number, log in topic.partitions.items():
                end = log.end(read_committed=committed)
                planned = await pieces(
                    bucket,
                    log,
                    log.log_start_offset,
                    end,
                    read_committed=committed,
                    max_partition_bytes=3000,
                )
                found[name, number] = planned, end
    return found


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_rows_are_those_that_kafka_gave(moved: Path, isolation: str) -> None:
    told = json.loads((moved / "records.json").read_text(encoding="utf-8"))
    bucket = options_of(moved)
    committed = isolation == "read_committed"
    read = ReadOptions(
        bucket, columns=("offset", "timestamp", "key", "value"), read_committed=committed
    )
    count = 0
    for (topic, number), (planned, end) in asyncio.run(plan(bucket, committed=committed)).items():
        found = []
        for piece in planned:
            for batch in read_piece(piece, read):
                times = [us // 1000 for us in batch.column(1).cast("int64").to_pylist()]
                texts = (
                    ["" if one is None else one.decode() for one in batch.column(at).to_pylist()]
                    for at in (2, 3)
                )
                rows = zip(batch.column(0).to_pylist(), times, *texts, strict=True)
                found += [list(row) for row in rows]
        expected = [row for row in _rows(told, isolation, topic, number) if row[0] < end]
        assert found == expected
        count += len(found)
    assert count > 100


def _rows(told: Any, isolation: str, topic: str, number: int) -> Any:
    return told[f"{isolation}/{topic}-{number}"]


def test_without_the_key_pair_its_name_is_told(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVES / "encrypted.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    planned = asyncio.run(plan(options_of(tmp_path), committed=False))
    bucket = options_of(tmp_path)._replace(key_pairs=())
    piece = planned["history", 0][0][0]
    with pytest.raises(RemoteStorageError, match="needs the key pair 'key1'"):
        list(read_piece(piece, ReadOptions(bucket)))
