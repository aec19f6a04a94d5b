"""A segment in a store that is a directory, and the tier over it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tests.unit.tiered.format.closed_segments import FACTS, Segment
from tests.unit.tiered.format.format_config import format_config
from tests.unit.tiered.storage_manager.memory_tier import CHUNK, PlainKeyRing, text_segment
from tiered.format.object_keys import ObjectKeys
from tiered.object_store.filesystem import FilesystemObjectStore
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager


@dataclass
class InPlaceWorld:
    """See the module; `place` is the file of the segment's log."""

    tier: RemoteStorageManager
    segment: Segment
    place: Path
    cache: str

    def chunk(self, number: int) -> bytes:
        """What it should be."""
        return bytes(self.segment.log[number * CHUNK : (number + 1) * CHUNK])

    def flip(self, position: int) -> None:
        """Change one byte of the object."""
        data = bytearray(self.place.read_bytes())
        data[position] ^= 1
        self.place.write_bytes(data)

    def references(self) -> list[Path]:
        """Files in the chunk cache."""
        return sorted(path for path in Path(self.cache).rglob("*") if path.is_file())


async def in_place_world(tmp_path: Path, **settings: Any) -> InPlaceWorld:
    """A segment of some 13 chunks has been copied; `settings` are those of `format_config`."""
    clock = ManualClock()
    filesystem = LocalFilesystem()
    store = FilesystemObjectStore(filesystem, str(tmp_path / "remote"), clock, SeededRandomness(1))
    tier = RemoteStorageManager(
        store,
        format_config(**{"chunk_bytes": CHUNK, **settings}),
        PlainKeyRing(),
        environment=Environment.without_loop(
            filesystem=filesystem, clock=clock, randomness=SeededRandomness(2)
        ),
        spool_directory=str(tmp_path / "spool"),
        software="test",
    )
    segment = text_segment()
    (tmp_path / "partition").mkdir()
    files = segment.write(filesystem, str(tmp_path / "partition"))
    await tier.copy_segment(segment.metadata, files, FACTS)
    place = tmp_path / "remote" / ObjectKeys().segment_keys(segment.metadata).log
    return InPlaceWorld(tier, segment, place, str(tmp_path / "cache"))
