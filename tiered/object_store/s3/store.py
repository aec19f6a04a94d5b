"""Object store on S3, or on anything that speaks its protocol.

Ranged reads, which are nearly all bytes that are read, go through
`tiered.object_store.s3.ranged_get`; everything else, and every ranged read whose answer is not
plain, through aiobotocore (imported at the first call). Connections: at most `max_connections` of
either kind.
"""

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final

from config.object_store import StoreSettings
from storage.environment.clock import Clock
from storage.environment.randomness import Randomness
from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreUnavailableError,
)
from tiered.object_store.base import Buffer, ObjectInfo, ObjectPage, PendingUpload
from tiered.object_store.deadline import Deadline, NotRetriedError
from tiered.object_store.keys import check_key, check_prefix
from tiered.object_store.s3.calls import Call, S3Calls
from tiered.object_store.s3.client import SLICE_BYTES, UploadBody
from tiered.object_store.s3.credentials import CredentialsSource
from tiered.object_store.s3.delete import S3Deleter
from tiered.object_store.s3.errors import NoSuchUploadError, NotImplementedByStoreError
from tiered.object_store.s3.http_connection import NotPlainError
from tiered.object_store.s3.http_range import body_window
from tiered.object_store.s3.upload import MultipartUpload, crc32c_header, part_bytes_for
from tiered.object_store.statistics import CallStatistics, StoreStatistics

PAGE_MAX: Final = 1000

UPLOAD_PAGES_MAX: Final = 20
"""Pages of 1,000 unfinished uploads read by one call; the rest when these are gone."""

BODY_BYTES: Final = 256 * 1024


class S3ObjectStore:
    """`ObjectStore` on S3; see the module. Belongs to the loop of its first call."""

    def __init__(
        self,
        settings: StoreSettings,
        clock: Clock,
        randomness: Randomness,
        *,
        credentials: CredentialsSource | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        fast_reads: bool = True,
    ) -> None:
        """No request is made yet.

        Args:
            settings: Of the backend "s3".
            clock: For the counters, and the time in signatures.
            randomness: For the spread of retries.
            credentials: To sign with; None: the default chain's.
            sleep: Between two attempts.
            fast_reads: Read ranges by our own client.
        """
        self.statistics = StoreStatistics(clock)
        self._settings = settings
        self._prefix = settings.key_prefix
        self._calls = S3Calls(
            settings,
            clock,
            randomness,
            self.statistics,
            credentials,
            sleep,
            fast_reads=fast_reads,
        )
        self._deleter = S3Deleter(self._calls, settings.key_prefix)
        self.name = self._calls.name

    def _checked(self, key: str) -> str:
        check_key(self._prefix + check_key(key))
        return key

    # -- storing -----------------------------------------------------------------------------

    async def put(self, key: str, data: Buffer) -> None:
        """PutObject; larger than a part: in parts."""
        if len(data) > part_bytes_for(len(data), self._settings.part_bytes):
            await self._put_parts("put", key, _one(data), len(data))
            return
        with self.statistics.measure("put", len(data)) as counters:
            async with self._calls.deadline(f"put {key}", len(data)):
                await self._put_whole(counters, self._checked(key), bytes(data))

    async def _put_whole(self, counters: CallStatistics, key: str, data: bytes) -> None:
        arguments: dict[str, Any] = {
            # A large one in slices, so that its progress can be reported.
            "Body": data if len(data) <= SLICE_BYTES else UploadBody(memoryview(data)),
            "StorageClass": self._settings.storage_class,
        }
        if self._settings.checksum == "crc32c":
            arguments["ChecksumCRC32C"] = crc32c_header(data)
        await self._calls.caller(counters)("put_object", key, arguments)

    async def put_stream(self, key: str, parts: AsyncIterable[Buffer], size: int) -> None:
        """PutObject up to one part, else in parts; waiting for the caller's parts is not timed."""
        await self._put_parts("put_stream", key, parts, size)

    async def _put_parts(
        self, name: str, key: str, parts: AsyncIterable[Buffer], size: int
    ) -> None:
        with self.statistics.measure(name, size) as counters:
            self._checked(key)
            call = self._calls.caller(counters)
            part_bytes = part_bytes_for(size, self._settings.part_bytes)
            async with self._calls.deadline(f"{name} {key}", size) as deadline:
                if size <= part_bytes:
                    data = await _gather(key, parts, size, deadline)
                    await self._put_whole(counters, key, data)
                    return

                async def is_stored() -> bool:
                    return await self._size_of(call, key) == size

                upload = MultipartUpload(
                    call,
                    key,
                    size,
                    part_bytes=part_bytes,
                    in_flight=self._settings.parts_in_flight,
                    with_crc32c=self._settings.checksum == "crc32c",
                    storage_class=self._settings.storage_class,
                    is_stored=is_stored,
                )
                await upload.run(parts, deadline)

    # -- reading -----------------------------------------------------------------------------

    async def get(self, key: str, *, max_bytes: int) -> bytes:
        """GetObject, refused before the body is read when it is too large."""
        with self.statistics.measure("get") as counters:
            self._checked(key)

            async def once() -> bytes:
                return await self._calls.with_client(
                    "get_object", key, lambda client: self._get(client, key, max_bytes)
                )

            async with self._calls.deadline(f"get {key}", max_bytes):
                data = await self._calls.retried(counters, once)
            counters.bytes += len(data)
            return data

    async def _get(self, client: Any, key: str, max_bytes: int) -> bytes:
        answer = await client.get_object(Bucket=self._settings.bucket, Key=self._prefix + key)
        body = answer["Body"]
        try:
            size = int(answer["ContentLength"])
            if size > max_bytes:
                raise RemoteStorageError(f"{key} has {size} bytes, more than {max_bytes}")
            data = bytes(await body.read())
        except BaseException:
            body.close()
            raise
        if len(data) != size:
            raise StoreUnavailableError(f"{key}: {len(data)} of {size} bytes came")
        return data

    async def get_range(self, key: str, position: int, length: int, into: memoryview) -> None:
        """Straight into the caller's memory where the answer is plain."""
        with self.statistics.measure("get_range", length) as counters:
            self._checked(key)
            if length == 0:
                return
            view = into[:length]

            async def once() -> None:
                await self._calls.with_client(
                    "get_object", key, lambda client: self._get_range(client, key, position, view)
                )

            async with self._calls.deadline(f"get_range {key}", length):
                await self._calls.retried(counters, once)

    async def _get_range(self, client: Any, key: str, position: int, view: memoryview) -> None:
        if self._calls.ranged is not None:
            try:
                await self._calls.ranged.read(self._prefix + key, position, view)
            except NotPlainError:
                self.statistics.fallbacks += 1
            else:
                return
        length = len(view)
        try:
            answer = await client.get_object(
                Bucket=self._settings.bucket,
                Key=self._prefix + key,
                Range=f"bytes={position}-{position + length - 1}",
            )
        except client.exceptions.ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("InvalidRange", "416"):
                raise NotRetriedError(f"{key} ends before byte {position + length}") from error
            raise
        body = answer["Body"]
        try:
            window = body_window(
                answer["ResponseMetadata"]["HTTPStatusCode"],
                answer.get("ContentRange", ""),
                answer.get("ContentLength", -1),
                position,
                length,
            )
            await _read_window(body, window.skip, view)
        finally:
            # Also after success: the rest of a longer body is not wanted.
            body.close()

    def local_path(self, key: str) -> str | None:
        """Objects are elsewhere."""
        return None

    async def head(self, key: str) -> ObjectInfo | None:
        """HeadObject."""
        with self.statistics.measure("head") as counters:
            self._checked(key)
            async with self._calls.deadline(f"head {key}"):
                answer = await self._head(self._calls.caller(counters), key)
            if answer is None:
                return None
            return ObjectInfo(key, int(answer["ContentLength"]), _ms(answer["LastModified"]))

    async def _head(self, call: Call, key: str) -> Any:
        try:
            return await call("head_object", key, {})
        except ObjectNotFoundError:
            return None

    async def _size_of(self, call: Call, key: str) -> int | None:
        answer = await self._head(call, key)
        return None if answer is None else int(answer["ContentLength"])

    # -- deleting, listing -------------------------------------------------------------------

    async def delete(self, keys: Sequence[str]) -> None:
        """DeleteObjects; one by one where the store has no such call."""
        with self.statistics.measure("delete") as counters:
            for key in keys:
                self._checked(key)
            if keys:
                async with self._calls.deadline(f"delete {len(keys)} objects"):
                    await self._deleter.delete(keys, counters)

    async def list(
        self,
        prefix: str,
        *,
        after: str = "",
        folders: bool = False,
        continuation: str | None = None,
        limit: int = PAGE_MAX,
    ) -> ObjectPage:
        """ListObjectsV2; a continuation is the store's own token."""
        with self.statistics.measure("list") as counters:
            arguments: dict[str, Any] = {
                "Prefix": self._prefix + check_prefix(prefix),
                "MaxKeys": max(1, min(limit, PAGE_MAX)),
            }
            check_prefix(after)
            if continuation is not None:
                arguments["ContinuationToken"] = continuation
            elif after:
                arguments["StartAfter"] = self._prefix + after
            if folders:
                arguments["Delimiter"] = "/"
            async with self._calls.deadline("list"):
                answer = await self._calls.caller(counters)("list_objects_v2", "", arguments)
            cut = len(self._prefix)
            objects = [
                ObjectInfo(found["Key"][cut:], int(found["Size"]), _ms(found["LastModified"]))
                for found in answer.get("Contents", ())
            ]
            # It is undocumented whether a folder is listed that StartAfter lies in.
            below = [
                folder
                for found in answer.get("CommonPrefixes", ())
                if (folder := found["Prefix"][cut:]) > after
            ]
            return ObjectPage(objects, answer.get("NextContinuationToken"), below)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        """ListMultipartUploads; empty where the store has no such call.

        MinIO knows no prefix here but a whole key, so an empty answer is not believed: all uploads
        in the bucket are then searched.
        """
        with self.statistics.measure("list_uploads") as counters:
            wanted = self._prefix + check_prefix(prefix)
            call = self._calls.caller(counters)
            async with self._calls.deadline("list_uploads"):
                try:
                    uploads = await self._uploads(call, wanted, wanted)
                    if uploads or not wanted:
                        return uploads
                except (NotImplementedByStoreError, ObjectNotFoundError):
                    return []
                try:
                    return await self._uploads(call, "", wanted)
                except StoreDeniedError:
                    # A policy may allow our own prefix alone.
                    return []

    async def _uploads(self, call: Call, prefix: str, wanted: str) -> Sequence[PendingUpload]:
        arguments: dict[str, Any] = {"Prefix": prefix} if prefix else {}
        uploads = []
        for _ in range(UPLOAD_PAGES_MAX):
            answer = await call("list_multipart_uploads", "", arguments)
            uploads += [
                PendingUpload(
                    found["Key"][len(self._prefix) :], found["UploadId"], _ms(found["Initiated"])
                )
                for found in answer.get("Uploads", ())
                if found["Key"].startswith(wanted)
            ]
            if not answer.get("IsTruncated"):
                break
            arguments["KeyMarker"] = answer["NextKeyMarker"]
            arguments["UploadIdMarker"] = answer["NextUploadIdMarker"]
        return uploads

    async def abort_upload(self, upload: PendingUpload) -> None:
        """AbortMultipartUpload."""
        with self.statistics.measure("abort_upload") as counters:
            self._checked(upload.key)
            async with self._calls.deadline(f"abort_upload {upload.key}"):
                try:
                    await self._calls.caller(counters)(
                        "abort_multipart_upload", upload.key, {"UploadId": upload.upload_id}
                    )
                except (NoSuchUploadError, ObjectNotFoundError):
                    return

    async def close(self) -> None:
        """Close all connections; calls under way fail."""
        await self._calls.close()


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


async def _one(data: Buffer) -> AsyncIterable[Buffer]:
    yield data


async def _gather(key: str, parts: AsyncIterable[Buffer], size: int, deadline: Deadline) -> bytes:
    """All parts as one; the clock stands while the caller makes them."""
    data = bytearray()
    deadline.pause()
    try:
        async for part in parts:
            data += part
            if len(data) > size:
                raise ValueError(f"{key}: more than the {size} bytes promised came")
    finally:
        deadline.resume()
    if len(data) != size:
        raise ValueError(f"{key}: {len(data)} bytes came, {size} were promised")
    return bytes(data)


async def _read_window(body: Any, skip: int, view: memoryview) -> None:
    """Fill `view` from a body after leaving out its first `skip` bytes."""
    filled = 0
    while filled < len(view):
        data = memoryview(await body.read(BODY_BYTES))
        if not data:
            raise StoreUnavailableError(f"the body ended after {filled} of {len(view)} bytes")
        if skip:
            left_out = min(skip, len(data))
            skip -= left_out
            data = data[left_out:]
        data = data[: len(view) - filled]
        view[filled : filled + len(data)] = data
        filled += len(data)
