"""What every `Tier` does, whatever process it works in: a suite that a test module takes in.

    class TestMine(TierSuite):
        @pytest.fixture
        async def world(self, tmp_path, format_settings):
            yield World(...)

The world's files are on a real disk, and its bucket can be reached from outside, as another process
would. `format_settings` goes through all four ways of storing chunks.
"""

import asyncio
import base64
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import cramjam
import pytest

from config.remote_kinds import KeyFiles
from config.tier import TierConfig
from protocol.records.batch import crc32c
from storage.environment.local_filesystem import LocalFilesystem
from tests.unit.tiered.format.closed_segments import FACTS, Segment, make_segment
from tiered.errors import (
    CorruptRemoteDataError,
    CorruptSegmentError,
    ObjectNotFoundError,
    RemoteStorageError,
)
from tiered.format.object_keys import ObjectKeys, SegmentKeys
from tiered.segment_metadata import RemoteLogSegmentId, RemoteLogSegmentMetadata
from tiered.tier import SegmentFiles, SideFile, Tier

CHUNK = 1000


class Bucket(Protocol):
    """The bucket as others see it."""

    def keys(self) -> list[str]:
        """What is in it, in order."""
        ...

    def read(self, key: str) -> bytes:
        """One object."""
        ...

    def write(self, key: str, data: bytes) -> None:
        """Put one there, or another in its place."""
        ...

    def remove(self, key: str) -> None:
        """Take one away."""
        ...


@dataclass
class World:
    """A tier, its bucket, and a folder for local files."""

    tier: Tier
    bucket: Bucket
    folder: Path

    @property
    def cache(self) -> Path:
        folder = self.folder / "cache"
        folder.mkdir(exist_ok=True)
        return folder

    def write(self, segment: Segment) -> SegmentFiles:
        return segment.write(LocalFilesystem(), str(self.folder / "partition"))

    async def copied(self, segment: Segment) -> RemoteLogSegmentMetadata:
        await self.tier.copy_segment(segment.metadata, self.write(segment), FACTS)
        return segment.metadata

    async def read_log(self, metadata: RemoteLogSegmentMetadata, manifest: str = "") -> bytes:
        """All chunks, as a reader gets them."""
        count = -(-metadata.segment_size_bytes // CHUNK)
        data = b""
        for number in range(count):
            path = self.cache / f"chunk-{number}"
            result = await self.tier.fetch_chunk(metadata, manifest, number, str(path))
            chunk = path.read_bytes()
            assert result.length == len(chunk)
            assert result.crc == crc32c(chunk)
            assert result.downloaded_bytes > 0
            data += chunk
        return data

    async def tier_fault(
        self, metadata: RemoteLogSegmentMetadata, number: int, path: Path
    ) -> tuple[str, int] | None:
        """Where a chunk is corrupt; None: it was fetched."""
        try:
            await self.tier.fetch_chunk(metadata, "", number, str(path))
        except CorruptRemoteDataError as error:
            return error.key, error.position
        return None

    def files(self) -> list[str]:
        """Names in the cache folder."""
        return sorted(path.name for path in self.cache.iterdir())

    def flip(self, key: str, position: int) -> None:
        data = bytearray(self.bucket.read(key))
        data[position] ^= 4
        self.bucket.write(key, bytes(data))


def keys_of(metadata: RemoteLogSegmentMetadata) -> SegmentKeys:
    return ObjectKeys().segment_keys(metadata)


def a_segment(**changes: Any) -> Segment:
    """Some 13 KiB in 30 batches: text that compresses, one abort, two epochs."""
    payloads = [
        b"%03d: some text of a log, again and again; " % number * 10 for number in range(30)
    ]
    return make_segment(payloads, **{"abort_at": 20, "second_epoch_at": 10, **changes})


def again(segment: Segment, number: int) -> Segment:
    """The same for another attempt, under an id of its own."""
    segment_id = RemoteLogSegmentId(segment.metadata.partition, UUID(int=number))
    return replace(segment, metadata=replace(segment.metadata, segment_id=segment_id))


class TierSuite:
    """See the module."""

    @pytest.fixture(params=["plain", "zstd", "aes", "zstd+aes"])
    def format_settings(self, request: pytest.FixtureRequest, rsa_pair: KeyFiles) -> TierConfig:
        return TierConfig(
            rsm_config_chunk_size=CHUNK,
            rsm_config_compression_enabled="zstd" in request.param,
            rsm_config_encryption_enabled="aes" in request.param,
            rsm_config_encryption_key_pair_id="pair-1",
            rsm_config_encryption_key_pairs_files={"pair-1": rsa_pair},
        )

    async def test_a_segment_comes_back_byte_for_byte(self, world: World) -> None:
        segment = a_segment()
        metadata = segment.metadata
        result = await world.tier.copy_segment(metadata, world.write(segment), FACTS)
        assert world.bucket.keys() == sorted(keys_of(metadata))
        assert result.uploaded_bytes == sum(
            len(world.bucket.read(key)) for key in keys_of(metadata)
        )
        assert await world.read_log(metadata) == segment.log
        for kind in SideFile:
            assert await world.tier.fetch_side_file(metadata, kind) == segment.parts[kind]
        assert list(await world.tier.verify_segment(metadata)) == []
        assert await world.tier.is_complete(metadata)

    async def test_indexes_go_to_files_the_manifest_beside_them(self, world: World) -> None:
        segment = a_segment()
        metadata = await world.copied(segment)
        result = await world.tier.fetch_indexes(metadata, str(world.cache), "x")
        assert {name: (world.cache / name).read_bytes() for name in world.files()} == {
            "x.index": segment.parts[SideFile.OFFSET],
            "x.timeindex": segment.parts[SideFile.TIMESTAMP],
            "x.txnindex": segment.parts[SideFile.TRANSACTION],
            "x.manifest": world.bucket.read(keys_of(metadata).manifest),
        }
        size = len(segment.log)
        assert result[:3] == (CHUNK, -(-size // CHUNK), size)
        assert await world.read_log(metadata, str(world.cache / "x.manifest")) == segment.log

    async def test_a_segment_without_aborts_has_no_transaction_index(self, world: World) -> None:
        segment = a_segment(abort_at=None)
        metadata = await world.copied(segment)
        await world.tier.fetch_indexes(metadata, str(world.cache), "x")
        assert not (world.cache / "x.txnindex").exists()
        with pytest.raises(ObjectNotFoundError):
            await world.tier.fetch_side_file(metadata, SideFile.TRANSACTION)
        assert list(await world.tier.verify_segment(metadata)) == []

    async def test_a_small_segment_without_index_entries(self, world: World) -> None:
        segment = make_segment([b"x"], index_every=5)
        assert not segment.parts[SideFile.OFFSET]
        metadata = await world.copied(segment)
        assert await world.read_log(metadata) == segment.log
        await world.tier.fetch_indexes(metadata, str(world.cache), "x")
        assert (world.cache / "x.index").read_bytes() == b""
        assert list(await world.tier.verify_segment(metadata)) == []

    @pytest.mark.parametrize("size", [CHUNK - 61, CHUNK - 60, 2 * CHUNK - 61])
    async def test_the_last_chunk_may_be_whole_or_one_byte(self, world: World, size: int) -> None:
        segment = make_segment([b"z" * size])
        metadata = await world.copied(segment)
        assert await world.read_log(metadata) == segment.log
        count = -(-len(segment.log) // CHUNK)
        with pytest.raises(RemoteStorageError):
            await world.tier.fetch_chunk(metadata, "", count, str(world.cache / "no"))
        assert not (world.cache / "no").exists()

    @pytest.mark.parametrize("part", range(8))
    async def test_a_flipped_byte_of_the_log_is_found_and_not_served(
        self, world: World, part: int
    ) -> None:
        segment = a_segment()
        metadata = await world.copied(segment)
        key = keys_of(metadata).log
        size = len(world.bucket.read(key))
        position = min(part * size // 7, size - 1)
        world.flip(key, position)
        (fault,) = await world.tier.verify_segment(metadata)
        assert fault.key == key
        assert fault.position <= position
        wrong = 0
        for number in range(-(-len(segment.log) // CHUNK)):
            path = world.cache / f"c{number}"
            place = await world.tier_fault(metadata, number, path)
            if place is not None:
                assert place == (key, fault.position)
                assert not path.exists()
                wrong += 1
            else:
                assert path.read_bytes() == segment.log[number * CHUNK : (number + 1) * CHUNK]
        assert wrong == 1
        assert not [name for name in world.files() if name.endswith(".tmp")]

    @pytest.mark.parametrize("kind", SideFile)
    async def test_a_flipped_byte_of_an_index_is_found_and_not_served(
        self, world: World, kind: SideFile
    ) -> None:
        metadata = await world.copied(a_segment())
        keys = keys_of(metadata)
        fields = json.loads(world.bucket.read(keys.manifest))
        place = fields["segmentIndexes"][kind.value]
        world.flip(keys.indexes, place["position"] + place["size"] - 1)
        (fault,) = await world.tier.verify_segment(metadata)
        assert fault[:2] == (keys.indexes, place["position"])
        with pytest.raises(CorruptRemoteDataError) as caught:
            await world.tier.fetch_side_file(metadata, kind)
        assert (caught.value.key, caught.value.position) == fault[:2]
        if kind in (SideFile.OFFSET, SideFile.TIMESTAMP, SideFile.TRANSACTION):
            with pytest.raises(CorruptRemoteDataError):
                await world.tier.fetch_indexes(metadata, str(world.cache), "x")
            assert world.files() == []

    async def test_a_flipped_byte_of_the_manifest_is_found(self, world: World) -> None:
        metadata = await world.copied(a_segment())
        key = keys_of(metadata).manifest
        world.flip(key, world.bucket.read(key).index(b"endOffset") + 12)
        (fault,) = await world.tier.verify_segment(metadata)
        assert fault.key == key
        with pytest.raises(CorruptRemoteDataError):
            await world.tier.fetch_indexes(metadata, str(world.cache), "x")
        # Not taken for one that is missing: the segment would be deleted.
        with pytest.raises(CorruptRemoteDataError):
            await world.tier.is_complete(metadata)
        assert world.files() == []

    async def test_a_damaged_manifest_on_this_disk_is_fetched_again(self, world: World) -> None:
        segment = a_segment()
        metadata = await world.copied(segment)
        path = world.cache / "damaged.manifest"
        path.write_bytes(b"{}")
        assert await world.read_log(metadata, str(path)) == segment.log

    @pytest.mark.parametrize("part", [0, 3, 6])
    async def test_a_truncated_log_is_found(self, world: World, part: int) -> None:
        segment = a_segment()
        metadata = await world.copied(segment)
        key = keys_of(metadata).log
        data = world.bucket.read(key)
        kept = part * len(data) // 7
        world.bucket.write(key, data[:kept])
        (fault,) = await world.tier.verify_segment(metadata)
        assert fault[:2] == (key, kept)
        assert not await world.tier.is_complete(metadata)
        last = -(-len(segment.log) // CHUNK) - 1
        with pytest.raises(CorruptRemoteDataError) as caught:
            await world.tier.fetch_chunk(metadata, "", last, str(world.cache / "no"))
        assert (caught.value.key, caught.value.position) == (key, kept)

    async def test_truncated_indexes_and_manifests_are_found(self, world: World) -> None:
        metadata = await world.copied(a_segment())
        keys = keys_of(metadata)
        for key in (keys.indexes, keys.manifest):
            data = world.bucket.read(key)
            world.bucket.write(key, data[:-1])
            (fault,) = await world.tier.verify_segment(metadata)
            assert fault.key == key
            with pytest.raises(CorruptRemoteDataError):
                await world.tier.fetch_indexes(metadata, str(world.cache), "x")
            world.bucket.write(key, data)

    async def test_an_object_that_grew_is_found(self, world: World) -> None:
        metadata = await world.copied(a_segment())
        key = keys_of(metadata).log
        data = world.bucket.read(key)
        world.bucket.write(key, data + b"x")
        (fault,) = await world.tier.verify_segment(metadata)
        assert fault[:2] == (key, len(data))

    async def test_missing_objects(self, world: World) -> None:
        metadata = await world.copied(a_segment())
        keys = keys_of(metadata)
        for key in keys:
            data = world.bucket.read(key)
            world.bucket.remove(key)
            (fault,) = await world.tier.verify_segment(metadata)
            assert fault[:2] == (key, -1)
            assert not await world.tier.is_complete(metadata)
            if key == keys.log:
                with pytest.raises(ObjectNotFoundError):
                    await world.read_log(metadata)
            else:
                with pytest.raises(ObjectNotFoundError):
                    await world.tier.fetch_indexes(metadata, str(world.cache), "x")
            world.bucket.write(key, data)
        assert await world.tier.is_complete(metadata)

    async def test_another_segments_manifest_is_not_believed(self, world: World) -> None:
        one, other = a_segment(), again(a_segment(), 2)
        await world.copied(one)
        await world.copied(other)
        data = world.bucket.read(keys_of(other.metadata).manifest)
        world.bucket.write(keys_of(one.metadata).manifest, data)
        with pytest.raises(CorruptRemoteDataError, match="manifest is of"):
            await world.tier.fetch_indexes(one.metadata, str(world.cache), "x")

    async def test_a_corrupt_segment_is_not_copied(self, world: World) -> None:
        for position in (0, 16, 3000, 13_000, -1):
            segment = a_segment()
            segment.log[position] ^= 1
            with pytest.raises(CorruptSegmentError) as caught:
                await world.copied(segment)
            assert caught.value.path.endswith(".log")
            assert not caught.value.rebuildable
            assert world.bucket.keys() == []

    @pytest.mark.parametrize("kind", [SideFile.OFFSET, SideFile.TIMESTAMP])
    async def test_a_corrupt_index_is_not_copied(self, world: World, kind: SideFile) -> None:
        segment = a_segment()
        segment.parts[kind][-1] ^= 1
        with pytest.raises(CorruptSegmentError) as caught:
            await world.copied(segment)
        assert caught.value.path.endswith("index")
        assert caught.value.rebuildable
        assert world.bucket.keys() == []

    async def test_a_log_of_another_length_is_not_copied(self, world: World) -> None:
        segment = a_segment()
        segment.log += b"\0"
        with pytest.raises(CorruptSegmentError, match="the log has"):
            await world.copied(segment)
        assert world.bucket.keys() == []

    async def test_deleting_twice_is_fine(self, world: World) -> None:
        segment = a_segment()
        metadata = await world.copied(segment)
        await world.tier.delete_segment(metadata)
        assert world.bucket.keys() == []
        await world.tier.delete_segment(metadata)
        with pytest.raises(ObjectNotFoundError):
            await world.tier.fetch_chunk(metadata, "", 0, str(world.cache / "no"))

    async def test_every_attempt_has_objects_of_its_own(self, world: World) -> None:
        segment = a_segment()
        second = again(segment, 9)
        await world.copied(segment)
        await world.copied(second)
        assert len(world.bucket.keys()) == 6
        await world.tier.delete_segment(segment.metadata)
        assert world.bucket.keys() == sorted(keys_of(second.metadata))
        assert await world.read_log(second.metadata) == segment.log

    async def test_copying_the_same_again_is_fine(self, world: World) -> None:
        """An answer that got lost: the same id, the same meaning."""
        segment = a_segment()
        await world.copied(segment)
        await world.copied(segment)
        assert await world.read_log(segment.metadata) == segment.log

    async def test_many_at_a_time(self, world: World) -> None:
        """Memory is shared; what is read must not be."""
        segments = [
            again(make_segment([bytes([number]) * 700] * 20, start_offset=number * 1000), number)
            for number in range(1, 9)
        ]
        files = [(segment, world.write(segment)) for segment in segments]
        await asyncio.gather(
            *(world.tier.copy_segment(segment.metadata, file, FACTS) for segment, file in files)
        )

        async def read(segment: Segment, number: int) -> None:
            path = world.cache / f"{segment.metadata.id}-{number}"
            await world.tier.fetch_chunk(segment.metadata, "", number, str(path))
            assert path.read_bytes() == segment.log[number * CHUNK : (number + 1) * CHUNK]

        await asyncio.gather(
            *(
                read(segment, number)
                for segment in segments
                for number in range(len(segment.log) // CHUNK)
            )
        )

    async def test_stored_chunks_are_what_the_manifest_says(
        self, world: World, format_settings: TierConfig
    ) -> None:
        """Anyone can read a segment that is not encrypted, with `zstd` and `dd`."""
        segment = a_segment()
        metadata = await world.copied(segment)
        keys = keys_of(metadata)
        manifest = aivens_reader(world.bucket.read(keys.manifest))
        assert (manifest["encryption"] is not None) == format_settings.rsm_config_encryption_enabled
        assert manifest["compression"] == format_settings.rsm_config_compression_enabled
        stored = world.bucket.read(keys.log)
        assert sum(manifest["sizes"]) == len(stored)
        if format_settings.rsm_config_encryption_enabled:
            assert b"some text of a log" not in stored
            return
        at = 0
        original = b""
        for size in manifest["sizes"]:
            piece = stored[at : at + size]
            original += bytes(cramjam.zstd.decompress(piece)) if manifest["compression"] else piece
            at += size
        assert original == segment.log

    async def test_objects(self, world: World) -> None:
        await world.tier.put_object("a/b.json", b"{}")
        assert await world.tier.get_object("a/b.json") == b"{}"
        page = await world.tier.list_objects("a/", None)
        assert [info.key for info in page.objects] == ["a/b.json"]
        await world.tier.delete_objects(["a/b.json", "a/none"])
        with pytest.raises(ObjectNotFoundError):
            await world.tier.get_object("a/b.json")
        assert list(await world.tier.list_uploads("")) == []


def aivens_reader(data: bytes) -> dict[str, Any]:
    """Read a manifest as strictly as Jackson reads SegmentManifestV1: no unknown field anywhere.

    What Aiven's class never reads (remoteLogSegmentMetadata) is skipped, as there.
    """

    def take(fields: dict[str, Any], required: set[str], optional: set[str]) -> None:
        assert required <= fields.keys() <= required | optional, fields.keys()

    fields = json.loads(data)
    take(
        fields,
        {"version", "chunkIndex", "segmentIndexes", "compression"},
        {"encryption", "remoteLogSegmentMetadata"},
    )
    assert fields["version"] == "1"
    index = fields["chunkIndex"]
    count = -(-index["originalFileSize"] // index["originalChunkSize"])
    if index["type"] == "fixed":
        sizes = {"originalChunkSize", "originalFileSize"}
        take(index, {"type", "transformedChunkSize", "finalTransformedChunkSize"} | sizes, set())
        stored = [index["transformedChunkSize"]] * (count - 1) + [
            index["finalTransformedChunkSize"]
        ]
    else:
        assert index["type"] == "variable"
        take(index, {"type", "originalChunkSize", "originalFileSize", "transformedChunks"}, set())
        packed = cramjam.zstd.decompress(base64.b64decode(index["transformedChunks"]))
        stored = packed_sizes(bytes(packed))
        assert len(stored) == count
    take(
        fields["segmentIndexes"],
        {"offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction"},
        set(),
    )
    for place in fields["segmentIndexes"].values():
        if place is not None:
            take(place, {"position", "size"}, set())
    encryption = fields.get("encryption")
    if encryption is not None:
        take(encryption, {"dataKey", "aad"}, set())
        assert len(encryption["dataKey"].split(":")) == 2
        assert len(base64.b64decode(encryption["aad"])) == 32
    return {"sizes": stored, "compression": fields["compression"], "encryption": encryption}


def packed_sizes(data: bytes) -> list[int]:
    """ChunkSizesBinaryCodec.decode, said once more."""
    count = int.from_bytes(data[:4], "big")
    if count == 1:
        return [int.from_bytes(data[4:], "big")]
    base, width = int.from_bytes(data[4:8], "big"), data[8]
    middle = data[9:-4]
    assert len(middle) == (count - 1) * width
    return [
        base + int.from_bytes(middle[at : at + width], "big") for at in range(0, len(middle), width)
    ] + [int.from_bytes(data[-4:], "big")]
