"""Interface of remote storage (`Tier`): the broker's calls for copies, reads and deletions.

`tiered.storage_manager.remote_storage_manager` does it where it is called; `tiered.worker` does it
in a process of its own, and then only these arguments and results cross: paths, keys and numbers,
never payload.

Cancelling an awaited call stops the work (a download's connection is closed within a second).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from tiered.object_store.base import ObjectPage, PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata

if TYPE_CHECKING:
    from config.tier import TierConfig
    from storage.environment.environment import Environment


class SideFile(StrEnum):
    """What lies in a segment's `.indexes` object; values as in Aiven's manifest."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    PRODUCER_SNAPSHOT = "producerSnapshot"
    LEADER_EPOCH = "leaderEpoch"
    TRANSACTION = "transaction"


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The local files of one closed segment (Kafka: LogSegmentData).

    Attributes:
        log, offset_index, time_index, producer_snapshot: Paths; the snapshot is the one taken at
            the next segment's base offset.
        transaction_index: Path, None when nothing was aborted.
        leader_epochs: Text of a leader-epoch checkpoint, up to the segment's end.
        empty_from: Where the segments begin that lie directly before this one and have no record;
            None: there are none.
    """

    log: str
    offset_index: str
    time_index: str
    producer_snapshot: str
    transaction_index: str | None
    leader_epochs: bytes
    empty_from: int | None = None


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a manifest says of the topic, so that a bucket alone is enough to have it back.

    Attributes:
        partitions: How many the topic has.
        overrides: Its own settings, Kafka's names and texts.
        cluster_id: Of the broker that copied it.
    """

    partitions: int
    overrides: Mapping[str, str]
    cluster_id: str


class CopyResult(NamedTuple):
    """What a copy has done; `uploaded_bytes` after compression and encryption, all objects."""

    uploaded_bytes: int
    custom_metadata: bytes | None


class IndexesResult(NamedTuple):
    """What reading a remote segment needs, beside the files that were written.

    Attributes:
        chunk_bytes: Bytes of every chunk but the last, before compression.
        chunk_count: Of the segment's log.
        log_bytes: Of the segment's log, before compression.
        downloaded_bytes: Over the network.
    """

    chunk_bytes: int
    chunk_count: int
    log_bytes: int
    downloaded_bytes: int


class ChunkResult(NamedTuple):
    """A chunk that is here now.

    Attributes:
        length: Its bytes.
        crc: CRC-32C of them.
        downloaded_bytes: What came over the network, or from the store's files.
        is_reference: The file only says where they are (`chunk_reference`).
    """

    length: int
    crc: int
    downloaded_bytes: int
    is_reference: bool = False


class FoundChunk(NamedTuple):
    """A chunk that lies on this machine as it is, at a position in the object's file."""

    chunk: int
    length: int
    crc: int
    position: int


class FoundChunks(NamedTuple):
    """Chunks of one object that were compared where they lie.

    Attributes:
        path: Of the object's file; empty where the segment is stored in another form, or elsewhere.
        size, modified_ns: Of the file before it was read (`chunk_reference`).
        chunks: Those that are what the manifest says.
    """

    path: str
    size: int
    modified_ns: int
    chunks: Sequence[FoundChunk]


class Fault(NamedTuple):
    """A fault of a remote segment; `position` in the object, -1 if unknown."""

    key: str
    position: int
    problem: str


def bytes_moved(statistics: Mapping[str, Any], segment: UUID) -> int:
    """How far a copy is, by a tier's counters; 0: it is not under way, or nothing is known."""
    return int(statistics.get("copying", {}).get(segment.hex, 0))


class Tier(Protocol):
    """See the module. All raise `tiered.errors`."""

    async def copy_segment(
        self, metadata: RemoteLogSegmentMetadata, files: SegmentFiles, topic: TopicFacts
    ) -> CopyResult:
        """Verify every batch and index, then upload: log, indexes, and the manifest last.

        On failure the objects that were uploaded are removed as far as possible; the caller deletes
        the segment all the same.

        Raises:
            CorruptSegmentError: Nothing was uploaded.
        """
        ...

    async def fetch_indexes(
        self, metadata: RemoteLogSegmentMetadata, directory: str, stem: str
    ) -> IndexesResult:
        """Write `<stem>.index`, `.timeindex`, `.manifest`, and `.txnindex` if there is one.

        Each is written under a name ending in `.tmp` and renamed, the manifest last.

        Raises:
            CorruptRemoteDataError: A checksum does not fit; nothing was written.
        """
        ...

    async def fetch_chunk(
        self, metadata: RemoteLogSegmentMetadata, manifest: str, chunk: int, path: str
    ) -> ChunkResult:
        """Write one chunk of the log, as it was before compression, to `path`.

        Args:
            metadata: Of the segment.
            manifest: Path of the manifest that `fetch_indexes` wrote.
            chunk: Counted from 0.
            path: Replaced atomically; `<path>.tmp` meanwhile. Where the chunk lies in a file on
                this machine as it is, a reference to it is written instead of a copy.

        Raises:
            CorruptRemoteDataError: The checksum does not fit; nothing was written.
        """
        ...

    async def refer_to_chunks(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> FoundChunks:
        """Compare chunks where they lie, if that is on this machine, and write references to them.

        Args:
            metadata: Of the segment.
            manifest: Path of the manifest that `fetch_indexes` wrote.
            chunks: Counted from 0.
            directory: Of the chunk cache, where references are written under their names
                (`chunk_file`). Which are there afterwards the result says, whatever it leaves out:
                what is missing in it is to be fetched.
        """
        ...

    async def fetch_side_file(self, metadata: RemoteLogSegmentMetadata, kind: SideFile) -> bytes:
        """One side file, for a follower or a restore; ObjectNotFoundError if there is none."""
        ...

    async def delete_segment(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Remove the manifest first, then the rest; what is missing is fine."""
        ...

    async def is_complete(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """Whether the manifest is there and names objects that are there with the sizes it says."""
        ...

    async def verify_segment(self, metadata: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        """Read all of a segment again and compare it with its manifest; empty: it is whole."""
        ...

    async def list_objects(self, prefix: str, continuation: str | None) -> ObjectPage:
        """A page of what is in the bucket."""
        ...

    async def delete_objects(self, keys: Sequence[str]) -> None:
        """Remove orphaned objects."""
        ...

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        """Unfinished multipart uploads."""
        ...

    async def abort_upload(self, upload: PendingUpload) -> None:
        """Forget one."""
        ...

    async def put_object(self, key: str, data: bytes) -> None:
        """A small object of the metadata's own (snapshots, claims)."""
        ...

    async def get_object(self, key: str) -> bytes:
        """As it was put; ObjectNotFoundError when it is not there. At most 64 MiB."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """Newest known counters: per call and outcome, requests, seconds, bytes (see worker)."""
        ...

    async def close(self) -> None:
        """End; what is under way fails with TierProcessError."""
        ...


OpenTier: TypeAlias = "Callable[[TierConfig, Environment], Tier]"
"""Opens remote storage for a broker, by its settings and what it has of the machine."""
