"""Interface of an object store.

Nothing here relies on conditional requests: names are unique per attempt, and overwriting an
object is always with the same meaning. Every call ends: `StoreDeadlines` bounds connecting, each
read, and the whole call; what a caller sees then is StoreTimeoutError.

Every failure is one of `tiered.errors.RemoteStorageError`'s. A cancelled call frees its connection
and, for an upload, aborts it as far as the store still answers.
"""

from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from tiered.object_store.statistics import StoreStatistics

Buffer: TypeAlias = bytes | bytearray | memoryview


class ObjectInfo(NamedTuple):
    """One object in a listing."""

    key: str
    size: int
    modified_ms: int


class ObjectPage(NamedTuple):
    """A part of a listing, in key order.

    Attributes:
        objects: Those listed one by one.
        continuation: Asks for the next part; None: there is none. A part may be empty and have one.
        folders: Folders in place of their objects, if requested; each ends in `/`.
    """

    objects: Sequence[ObjectInfo]
    continuation: str | None
    folders: Sequence[str] = ()


class PendingUpload(NamedTuple):
    """A multipart upload that was begun and neither completed nor aborted."""

    key: str
    upload_id: str
    started_ms: int


@dataclass(frozen=True, slots=True)
class StoreDeadlines:
    """Milliseconds; a call that moves many bytes gets `total_ms` per started 64 MiB."""

    connect_ms: int = 5_000
    read_ms: int = 10_000
    total_ms: int = 60_000


class ObjectStore(Protocol):
    """See the module. Keys are below the store's own prefix, `/`-separated, no leading `/`."""

    name: str
    """For log lines and the admin API: `s3://bucket/prefix`, `file:///path`."""

    statistics: StoreStatistics
    """Calls, errors, seconds and bytes so far."""

    async def put(self, key: str, data: Buffer) -> None:
        """Store a small object whole; it is durable when this returns."""
        ...

    async def put_stream(self, key: str, parts: AsyncIterable[Buffer], size: int) -> None:
        """Store an object of exactly `size` bytes from parts of any length.

        It appears whole or not at all. A part's memory is the caller's again when the next one is
        asked for. Raises ValueError when the parts do not add up to `size`; nothing is stored.
        """
        ...

    async def get(self, key: str, *, max_bytes: int) -> bytes:
        """A whole object; RemoteStorageError when it is larger than `max_bytes`."""
        ...

    async def get_range(self, key: str, position: int, length: int, into: memoryview) -> None:
        """Fill `into[:length]`; StoreUnavailableError when the object or the body is shorter."""
        ...

    def local_path(self, key: str) -> str | None:
        """The file of an object, where objects are files on this machine; None elsewhere.

        It must not be changed, and need not be there.
        """
        ...

    async def head(self, key: str) -> ObjectInfo | None:
        """Size and time of an object, None when there is none."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; missing ones are fine. Up to 1,000."""
        ...

    async def list(
        self,
        prefix: str,
        *,
        after: str = "",
        folders: bool = False,
        continuation: str | None = None,
        limit: int = 1000,
    ) -> ObjectPage:
        """Objects whose key begins with `prefix`, in key order.

        Args:
            prefix: Of their keys; may be empty, and may end inside a name.
            after: Only what comes behind this key or folder, which need not exist (S3: StartAfter).
            folders: List objects that have a `/` behind the prefix by what comes up to it, once
                (S3: Delimiter, CommonPrefixes). A folder that `after` lies in is left out.
            continuation: Of the part before; the other arguments are to be the same again.
            limit: Objects and folders of a part, at most 1,000.
        """
        ...

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        """Unfinished multipart uploads; empty where the store has none."""
        ...

    async def abort_upload(self, upload: PendingUpload) -> None:
        """Forget an unfinished upload and free its parts; an unknown one is fine."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
