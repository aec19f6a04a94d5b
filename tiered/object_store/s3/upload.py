"""Multipart upload of a large object.

    begin ──> part 1, part 2, ... (some in flight) ──> complete ──> the object is there
      │                    │                              │
      └────────────────────┴──────── trouble ─────────────┴──> abort ──> nothing is there

The answer to `complete` may be lost after it has succeeded. Asked again the store says that there
is no such upload; then an object of the right size shows that it was done.
"""

import asyncio
import base64
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any, Final

from fastcrc import crc32

from tiered.errors import RemoteStorageError, StoreUnavailableError
from tiered.object_store.base import Buffer
from tiered.object_store.deadline import Deadline
from tiered.object_store.s3.calls import Call
from tiered.object_store.s3.client import UploadBody
from tiered.object_store.s3.errors import NoSuchUploadError

ABORT_MS: Final = 5_000
"""Time for the abort after a failure; what it leaves is found by `list_uploads`."""

PARTS_MAX: Final = 10_000

PART_BYTES_MIN: Final = 5 * 1024 * 1024


def part_bytes_for(size: int, wanted: int) -> int:
    """Bytes of a part: as wanted, but at least S3's minimum, and few enough parts."""
    return max(wanted, PART_BYTES_MIN, -(-size // PARTS_MAX))


def crc32c_header(data: Buffer) -> str:
    """CRC-32C as S3 wants it: base64 of four bytes, big endian."""
    return base64.b64encode(int(crc32.iscsi(data)).to_bytes(4, "big")).decode()


class MultipartUpload:
    """One object on its way.

    At most `in_flight` parts are being sent while one is filled, so the memory is
    `in_flight + 1` parts.
    """

    def __init__(
        self,
        call: Call,
        key: str,
        size: int,
        *,
        part_bytes: int,
        in_flight: int,
        with_crc32c: bool,
        storage_class: str,
        is_stored: Callable[[], Awaitable[bool]],
    ) -> None:
        self._call = call
        self._key = key
        self._size = size
        self._part_bytes = part_bytes_for(size, part_bytes)
        self._with_crc32c = with_crc32c
        self._storage_class = storage_class
        self._is_stored = is_stored
        self._upload_id = ""
        self._sending: set[asyncio.Task[None]] = set()
        self._in_flight = max(1, in_flight)
        self._spare: list[bytearray] = []
        self._parts: dict[int, dict[str, Any]] = {}

    async def run(self, parts: AsyncIterable[Buffer], deadline: Deadline) -> None:
        """Send all; ValueError when the parts do not add up to the size."""
        arguments: dict[str, Any] = {"StorageClass": self._storage_class}
        if self._with_crc32c:
            arguments["ChecksumAlgorithm"] = "CRC32C"
        answer = await self._call("create_multipart_upload", self._key, arguments)
        self._upload_id = answer["UploadId"]
        try:
            await self._send_all(parts, deadline)
            await self._complete()
        except BaseException:
            await self._stop_and_abort()
            raise

    async def _send_all(self, parts: AsyncIterable[Buffer], deadline: Deadline) -> None:
        buffer = self._buffer()
        filled = 0
        total = 0
        iterator = aiter(parts)
        while True:
            deadline.pause()
            try:
                part = await anext(iterator, None)
            finally:
                deadline.resume()
            if part is None:
                break
            total += len(part)
            if total > self._size:
                raise ValueError(f"{self._key}: more than the {self._size} bytes promised came")
            view = memoryview(part)
            while view:
                count = min(len(view), self._part_bytes - filled)
                buffer[filled : filled + count] = view[:count]
                view = view[count:]
                filled += count
                if filled == self._part_bytes:
                    await self._send(buffer, filled)
                    buffer = self._buffer()
                    filled = 0
        if total != self._size:
            raise ValueError(f"{self._key}: {total} bytes came, {self._size} were promised")
        if filled:
            await self._send(buffer, filled)
        await self._wait_until_in_flight(0)

    def _buffer(self) -> bytearray:
        return self._spare.pop() if self._spare else bytearray(self._part_bytes)

    async def _send(self, buffer: bytearray, size: int) -> None:
        """Begin to send a part as soon as fewer than `in_flight` are under way."""
        await self._wait_until_in_flight(self._in_flight - 1)
        number = len(self._parts) + 1
        self._parts[number] = {"PartNumber": number}
        self._sending.add(asyncio.create_task(self._send_part(number, buffer, size)))

    async def _send_part(self, number: int, buffer: bytearray, size: int) -> None:
        view = memoryview(buffer)[:size]
        arguments: dict[str, Any] = {
            "UploadId": self._upload_id,
            "PartNumber": number,
            "Body": UploadBody(view),
        }
        if self._with_crc32c:
            self._parts[number]["ChecksumCRC32C"] = crc32c_header(view)
            arguments["ChecksumCRC32C"] = self._parts[number]["ChecksumCRC32C"]
        answer = await self._call("upload_part", self._key, arguments)
        self._parts[number]["ETag"] = answer["ETag"]
        self._spare.append(buffer)

    async def _wait_until_in_flight(self, most: int) -> None:
        while len(self._sending) > most:
            done, self._sending = await asyncio.wait(
                self._sending, return_when=asyncio.FIRST_COMPLETED
            )
            # Of each: a task whose error is never looked at has asyncio log a traceback.
            errors = [error for task in done if (error := task.exception()) is not None]
            if errors:
                raise errors[0]

    async def _complete(self) -> None:
        parts = {"Parts": [self._parts[number] for number in sorted(self._parts)]}
        try:
            await self._call(
                "complete_multipart_upload",
                self._key,
                {"UploadId": self._upload_id, "MultipartUpload": parts},
            )
        except NoSuchUploadError as error:
            if not await self._is_stored():
                raise StoreUnavailableError(f"{error}: another process has aborted it") from error

    async def _stop_and_abort(self) -> None:
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        try:
            async with Deadline(ABORT_MS, f"abort the upload of {self._key}"):
                await self._call("abort_multipart_upload", self._key, {"UploadId": self._upload_id})
        except RemoteStorageError:
            # Unknown already, or the store does not answer: `list_uploads` will show it.
            return
