"""Pieces out of S3, over sockets, with the faults that stores and networks have."""

import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.plan.bucket import BucketOptions
from pipeline.plan.piece import RemotePiece
from pipeline.read.bytes.open_buckets import OpenBuckets
from pipeline.read.piece.piece_rows import PieceReader, ReadOptions
from pipeline.read.read_errors import DamagedDataError, LostOffsetsError
from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from tests.fakes.s3.memory_server import Fault, MemoryS3, Request, Stored
from tests.unit.pipeline.read.segment_world import record_segment, segment_world
from tiered.errors import StoreDeniedError, StoreUnavailableError

SECRET = "the-secret-of-the-bucket"
CHUNK = 64 * 1024


class World:
    """A segment of some 20 chunks on an S3 server, and a reader of it."""

    def __init__(self, s3: MemoryS3) -> None:
        self.s3 = s3
        self.buckets = OpenBuckets()
        with segment_world(chunk_bytes=CHUNK) as world:
            self.piece: RemotePiece = world.copy(record_segment(120, value_bytes=1000))
            s3.objects = {key: Stored(one.data, 0) for key, one in world.store.objects.items()}
        self.options = ReadOptions(
            bucket=BucketOptions(
                "s3://bucket",
                endpoint=s3.url,
                region="us-east-1",
                path_style=True,
                access_key_id="the-key-id",
                secret_access_key=SECRET,
                connect_timeout_ms=2000,
                read_timeout_ms=300,
                call_timeout_ms=3000,
                attempts=3,
            ),
            columns=("offset",),
        )

    def offsets(self, **changes: Any) -> list[int]:
        options = self.options._replace(**changes)
        reader = PieceReader(options, self.buckets, LocalFilesystem(), SystemClock())
        return [offset for rows in reader.rows(self.piece) for offset in rows.column(0).to_pylist()]

    def spoil_once(self, fault: Fault, kind: str) -> None:
        """The next request of a class, and no other."""
        self.s3.break_down(fault, kind)

        def heal(request: Request, done: bool) -> bool:
            if done and request.kind == kind:
                self.s3.heal()
            return True

        self.s3.hook = heal


@pytest.fixture
def world() -> Iterator[World]:
    with MemoryS3() as s3:
        world = World(s3)
        yield world
        world.buckets.close()


ALL = [*range(1000, 2200)]


def test_rows_come_from_s3(world: World) -> None:
    assert world.offsets() == ALL
    assert sum(one.kind == "fetch" for one in world.s3.requests) == 1
    assert world.offsets() == ALL
    assert sum(one.kind == "index" for one in world.s3.requests) == 1


@pytest.mark.parametrize("kind", ["fetch", "index"])
@pytest.mark.parametrize("fault", [Fault.WRONG, Fault.RESET, Fault.SHORT])
def test_one_fault_does_no_harm(world: World, fault: Fault, kind: str) -> None:
    world.spoil_once(fault, kind)
    assert world.offsets() == ALL


def test_bytes_that_stay_wrong_are_damage(world: World) -> None:
    world.s3.break_down(Fault.WRONG, "fetch")
    with pytest.raises(DamagedDataError, match="fails its CRC"):
        world.offsets()


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.RESET, Fault.HANG])
def test_a_store_that_stays_away_is_an_error_after_its_retries(world: World, fault: Fault) -> None:
    world.s3.break_down(fault, "fetch")
    with pytest.raises(StoreUnavailableError):
        world.offsets(fail_on_data_loss=False)
    assert world.s3.spoilt["fetch"] > 1


def test_a_denied_bucket_is_told_without_secrets(world: World) -> None:
    world.s3.break_down(Fault.DENIED)
    with pytest.raises(StoreDeniedError) as error:
        world.offsets(fail_on_data_loss=False)
    told = "".join(traceback.format_exception(error.value))
    assert SECRET not in told
    assert SECRET not in repr(world.options)
    assert "the-key-id" not in repr(world.options)


def test_objects_that_go_are_lost(world: World) -> None:
    for key in list(world.s3.objects):
        if key.endswith(".log"):
            del world.s3.objects[key]
    with pytest.raises(LostOffsetsError, match="offsets 1000 to 2199 are lost") as error:
        world.offsets()
    assert SECRET not in repr(pickle.loads(pickle.dumps(error.value)))
    assert world.offsets(fail_on_data_loss=False) == []


def test_a_reader_that_stops_early_leaves_nothing_under_way(world: World) -> None:
    options = world.options
    reader = PieceReader(options, world.buckets, LocalFilesystem(), SystemClock())
    rows = reader.rows(world.piece)
    next(rows)
    rows.close()  # type: ignore[attr-defined]  # a generator
    assert world.offsets() == ALL
